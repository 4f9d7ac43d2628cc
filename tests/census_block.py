"""The block of seven people of the literature, as a file of its published statistics."""

from casemate.audit.small_block.model import Person

HEADER = "statistic,sex,race,married,age,count,median,mean"
PUBLISHED = {
    "1A": ",,,,7,30,38",
    "2A": "F,,,,4,30,33.5",
    "2B": "M,,,,3,30,44",
    "2C": ",B,,,4,51,48.5",
    "2D": ",W,,,3,24,24",
    "3A": ",,S,18+,,,",
    "3B": ",,M,18+,4,51,54",
    "4A": "F,B,,,3,36,36.7",
    "rule": ",,M,<15,0,,",
}


def seven(*suppressed: str, more: str = "") -> str:
    """The file, with the numbers of some rows left blank."""
    rows = [
        f"{name}," + (",".join([*row.split(",")[:4], "", "", ""]) if name in suppressed else row)
        for name, row in PUBLISHED.items()
    ]
    return "\n".join([HEADER, *rows, more])


def people(text: str) -> tuple[Person, ...]:
    """People written as in the literature: 8FBS is 8 years old, female, Black and single."""
    return tuple((int(each[:-3]), *each[-3:]) for each in text.split())


TRUTH = people("8FBS 18MWS 24FWS 30MWM 36FBM 66FBM 84MBM")
SECOND = people("2FBS 12MWS 24FWM 30MBM 36FWS 72FBM 90MBM")
COMMON = people("8FBS 36FBM 66FBM 84MBM")
