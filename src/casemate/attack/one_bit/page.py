"""An attack through yes/no answers as one HTML page: errors against queries, with the limit.

Without `reveal` no value is written, and errors are rounded: see `one_bit_findings`.
"""

from casemate.attack.one_bit.attack import OneBitFound
from casemate.attack.one_bit.report import (
    DIGITS_ALONG,
    KINDS,
    against_the_limit,
    certainty,
    defence,
    digits,
    headline,
    setting,
    size,
)
from casemate.report import (
    Logarithmic,
    Markup,
    Plot,
    Tone,
    counted,
    facts,
    figure,
    joined,
    listing,
    page,
    paragraph,
    section,
    table,
)

SCOPE = (
    "An attack that fails proves nothing: another may succeed, and another stream of queries may "
    "tell more.",
    "The limit is a benchmark for long streams: no learner is better everywhere. While the noise "
    "is small beside what is unknown, nobody reaches it, because a bit is at most one bit.",
    "Means of groups are found. What they say about one person is inference where the group is "
    "large, and disclosure where it is small.",
)


def as_html(found: OneBitFound, *, reveal: bool = False) -> str:
    """An attack as a self-contained page."""
    return page(
        "casemate attack one-bit",
        _sentence(headline(found)),
        _introduction(found, reveal),
        [
            _curve(found),
            section("defence", "What to do about it", listing(_sentences(defence(found)))),
            _values(found) if reveal else Markup(),
            section("assumptions", "What was taken for granted", listing(SCOPE)),
        ],
    )


def _introduction(found: OneBitFound, reveal: bool) -> Markup:
    errors = found.errors
    numbers = facts(
        [
            ("error", size(errors.error)),
            ("limit", size(errors.limit)),
            ("ratio", "–" if errors.ratio is None else f"{errors.ratio:.2f}"),
            ("one half of everything", size(errors.baseline)),
            ("queries", f"{found.queries:,}"),
            ("CPU seconds", f"{found.seconds:.1f}"),
        ]
    )
    said = [setting(found), *against_the_limit(found), certainty(found, reveal)]
    notes = [paragraph(each) for each in _sentences(said)]
    if not found.finished:
        notes.append(paragraph("The work was interrupted: this is the best so far."))
    if not reveal:
        hidden = "No values are written, and errors and widths are rounded."
        notes.append(paragraph(hidden, kind="note"))
    return joined([numbers, *notes])


def _curve(found: OneBitFound) -> Markup:
    """The average error up to each number of queries, beside the limit and one half."""
    errors = [(each.queries, digits(each.error, DIGITS_ALONG) or 0.0) for each in found.curve]
    limits = [(each.queries, each.limit) for each in found.curve]
    heights = [height for _, height in (*errors, *limits) if height > 0]
    if len(errors) < 2 or not heights:
        return Markup()
    baseline = found.errors.baseline or heights[-1]
    low, high = min(*heights, baseline) / 1.5, max(*heights, baseline) * 1.5
    plot = Plot(Logarithmic(1, errors[-1][0]), Logarithmic(low, high), height=340)
    drawn = plot.drawn(
        "error-curve",
        "Error and limit against queries",
        "; ".join(f"{q:,} queries: error {size(e)}" for q, e in errors) + ".",
        plot.axes("queries", f"average error of totals of {found.totals.private}"),
        plot.curve([(1, baseline), (errors[-1][0], baseline)], Tone.SOFT),
        plot.curve([each for each in limits if each[1] > 0], Tone.OTHER),
        plot.curve([each for each in errors if each[1] > 0]),
        plot.points([each for each in errors if each[1] > 0]),
    )
    caption = (
        "Dots: the average error of all answers up to there. The other falling line is the limit, "
        f"{KINDS[found.errors.kind]}; the level one is answering one half of everything."
    )
    return section("error", "What every bit adds", figure(drawn, caption))


def _values(found: OneBitFound) -> Markup:
    rows = [
        (each.name, f"{each.records:,}", *(f"{x:.6g}" for x in (each.value, each.low, each.high)))
        for each in found.values
    ]
    caption = f"{counted(len(rows), 'group')}, and the mean of {found.totals.private} in each"
    header = ("group", "records", "mean", "from", "to")
    return section("values", "What was found", table(caption, header, rows))


def _sentences(said: list[str]) -> list[str]:
    return [_sentence(each) for each in said]


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."
