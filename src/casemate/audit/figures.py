"""The figures of an audit's page: who is exposed by which statement, and how much ranges shrank."""

from collections import Counter
from collections.abc import Sequence

from casemate.audit.words import Fields, Words, statements_behind, whose
from casemate.report import Drawing, Link, Prose
from casemate.report.plots import Bands, Bar, LinearScale, Mark, Matrix, Plot, Tone

MAP_ROWS, MAP_COLUMNS = 40, 36
HISTOGRAM_BINS = 10


def draw_exposure_map(exposed: Sequence[Fields], words: Words) -> Drawing | None:
    """Which statements take part in which exposure, as a matrix of dots."""
    traced = [each for each in exposed if statements_behind(each)]
    if not traced:
        return None
    shown = traced[:MAP_ROWS]
    used = Counter(number for each in shown for number in statements_behind(each))
    tipped = Counter(each["by"] for each in shown)
    ranked = sorted(used, key=lambda number: (-tipped[number], -used[number], number))
    columns = sorted(ranked[:MAP_COLUMNS])
    several = len({each["column"] for each in exposed}) > 1
    matrix = Matrix(
        tuple(_name(each) + (f", {each['column']}" if several else "") for each in shown),
        tuple(map(words.query, columns)),
    )
    marks = [
        _mark(row, column, each, number, words)
        for row, each in enumerate(shown)
        for column, number in enumerate(columns)
        if number in statements_behind(each)
    ]
    svg = matrix.draw(
        "map",
        "Who is exposed by which statement",
        f"{len(shown)} exposed values in rows and {len(columns)} statements in columns; a dot "
        f"where the statement takes part, a large one where it was the last that was needed.",
        marks,
    )
    return Drawing(svg, _map_caption(len(exposed) - len(shown), len(used) - len(columns)))


def _name(finding: Fields) -> str:
    """Whose value it is, without a description: there is little room."""
    return whose({**finding, "described": None})


def _mark(row: int, column: int, finding: Fields, number: int, words: Words) -> Mark:
    tipped = number == finding["by"]
    part = "is the last one needed" if tipped else "takes part"
    says = f"{_name(finding)}: {words.query(number)} {part}"
    return Mark(row, column, Tone.STRONG if tipped else Tone.SOFT, says)


def _map_caption(more_values: int, more_statements: int) -> Prose:
    caption: list[Prose] = [
        "A small dot: the statement takes part in the combination that gives the value. "
        "A large dot: it was the last one that was needed."
    ]
    if more_values:
        link = Link("the table of exposed values", "exposed")
        caption += [f" And {more_values:,} more in ", link, "."]
    if more_statements:
        link = Link("the table of statements", "statements")
        caption += [f" {more_statements:,} more statements take part: see ", link, "."]
    return tuple(caption)


def draw_shrinkage(fields: Fields) -> Drawing | None:
    """How many private numbers lost how much of their range, the exposed ones last.

    Of whoever is undecided or unchecked the range may be narrower than what is proved of it.
    """
    exposed: Sequence[Fields] = fields["exposed"]
    known = {(each["record"], each["column"]) for each in (*exposed, *fields["missing"])}
    hidden = [each for each in fields["bounds"] if (each["record"], each["column"]) not in known]
    left_open = {*fields["undecided"], *fields["unchecked"]}
    decided = [each for each in hidden if each["record"] not in left_open]
    shares = [each["shrinkage"] for each in decided]
    measured = [share for share in shares if share is not None]
    if not measured:
        return None
    counts = Counter(min(int(share * HISTOGRAM_BINS), HISTOGRAM_BINS - 1) for share in measured)
    heights = [counts[place] for place in range(HISTOGRAM_BINS)]
    bars = [
        Bar(place, height, f"{height:,}" if height else "") for place, height in enumerate(heights)
    ]
    bars.append(Bar(HISTOGRAM_BINS, len(exposed), f"{len(exposed):,}", Tone.STRONG))
    labels = (*(f"{10 * place}–{10 * place + 10}" for place in range(HISTOGRAM_BINS)), "exposed")
    plot = Plot(Bands(labels), LinearScale.over([*heights, len(exposed)]))
    svg = plot.draw(
        "shrinkage",
        "How much of each private number's range is excluded",
        f"A histogram of {len(measured)} numbers in ten bins from 0 to 100 per cent, and the "
        f"{len(exposed)} exposed values beside them.",
        plot.axes("per cent of the range that is excluded by what was published", "values"),
        plot.bars(bars),
    )
    caption = "How much less is possible for each value than before anything was published."
    if unmeasured := len(shares) - len(measured):
        caption += f" {unmeasured:,} without bounds on both sides are not in it."
    if undecided := len(hidden) - len(decided):
        caption += f" {undecided:,} of records that are left open are not in it either."
    return Drawing(svg, caption)
