"""What is known beforehand, as people write it: options, and a CSV of records."""

import csv
from fractions import Fraction
from pathlib import Path

from casemate.errors import Misconfigured
from casemate.published.knowledge import Knowledge
from casemate.query.expression import Scalar
from casemate.solve.box import Bound


def read_knowledge(known: Path | None, bounds: str | None, integer: bool) -> Knowledge:
    """Knowledge from `--known`, `--bounds` and `--integer`."""
    low, high = (None, None) if bounds is None else read_bounds(bounds)
    return Knowledge(low, high, integer, {} if known is None else read_known(known))


def read_bounds(text: str) -> tuple[Bound, Bound]:
    """LO:HI, either of which may be left out.

    >>> read_bounds("3:10.5")
    (Fraction(3, 1), Fraction(21, 2))
    """
    low, separator, high = text.partition(":")
    if not separator:
        raise Misconfigured(f"--bounds {text} is not LO:HI; write for example --bounds 0:100")
    ends = _end(low, text), _end(high, text)
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise Misconfigured(f"--bounds {text} is empty: the first end must not be above the second")
    return ends


def _end(text: str, whole: str) -> Bound:
    if not text.strip():
        return None
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise Misconfigured(
            f"--bounds {whole} is not LO:HI; write for example --bounds 0:100"
        ) from None


def share(text: str) -> Fraction:
    """A share such as 10% or 0.1.

    >>> share("10%"), share("0.25")
    (Fraction(1, 10), Fraction(1, 4))
    """
    try:
        number = Fraction(text.strip().removesuffix("%"))
    except (ValueError, ZeroDivisionError):
        raise Misconfigured(f"--protect {text} is not a share; write for example 10%") from None
    found = number / 100 if text.strip().endswith("%") else number
    if found < 0:
        raise Misconfigured(f"--protect {text} must not be negative; write for example 10%")
    return found


def read_known(path: Path) -> dict[Scalar, tuple[Bound, Bound]]:
    """A CSV `record,value` or `record,lo,hi`; what stands in it is never quoted in a message."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{path} cannot be read; expected a CSV record,value") from None
    header = [cell.strip().lower() for cell in lines[0]] if lines else []
    if header not in (["record", "value"], ["record", "lo", "hi"]):
        raise Misconfigured(f"{path} must begin with record,value or record,lo,hi")
    known: dict[Scalar, tuple[Bound, Bound]] = {}
    for line, cells in enumerate(lines[1:], start=2):
        if cells:
            record, ends = _known_line(cells, len(header), f"{path}, line {line}")
            known[record] = ends
    return known


def _known_line(cells: list[str], width: int, where: str) -> tuple[Scalar, tuple[Bound, Bound]]:
    if len(cells) != width:
        raise Misconfigured(f"{where} has {len(cells)} cells; expected {width}")
    try:
        ends = [Fraction(cell.strip()) if cell.strip() else None for cell in cells[1:]]
    except (ValueError, ZeroDivisionError):
        raise Misconfigured(f"{where} holds something that is not a number") from None
    record = cells[0].strip()
    digits = record.removeprefix("-")
    whole = digits.isdecimal() and digits.isascii() and str(int(record)) == record
    name: Scalar = int(record) if whole else record
    return name, (ends[0], ends[-1])
