"""Words drawn: a row for each protocol, and names at the ends of curves."""

from collections.abc import Sequence
from dataclasses import dataclass

from casemate.report.markup import Markup, joined, tag
from casemate.report.scales import Bands, Logarithmic
from casemate.report.svg import LETTER, Margins, Plot, Tone

ROW = 24
"""The height of one row, in units of the drawing."""

LINE = 14.0
"""The least distance of two lines of text."""


@dataclass(frozen=True)
class Row:
    """One protocol, how many words it sends, and how much it stands out."""

    label: str
    words: float
    tone: Tone = Tone.PLAIN


def rows_drawn(name: str, title: str, rows: Sequence[Row]) -> Markup:
    """A dot for each row on a scale of ratios, the first row on top; `name` is unique."""
    shown = list(reversed(rows))
    labels = tuple(each.label for each in shown)
    margins = Margins(top=20, right=92, left=18 + LETTER * max(map(len, labels)))
    height = margins.top + margins.bottom + ROW * len(shown)
    scale = ratios([each.words for each in rows])
    plot = Plot(scale, Bands(labels), height=height, margins=margins)
    told = "; ".join(f"{each.label}: {each.words:,.0f}" for each in rows)
    return plot.drawn(
        name,
        title,
        f"{told}.",
        plot.axes("words", ""),
        *(_row(plot, place, each) for place, each in enumerate(shown)),
    )


def _row(plot: Plot, place: int, row: Row) -> Markup:
    along = tag(
        "text",
        f"{row.words:,.0f}",
        x=plot.across(row.words) + 8,
        y=plot.down(place) + 4,
        class_="value",
    )
    return joined([plot.points([(row.words, place)], row.tone), along])


def ratios(values: Sequence[float], room: float = 1.6) -> Logarithmic:
    """A scale of ratios on which all values, and some room around them, are found."""
    low, high = max(1.0, min(values)), max(1.0, *values)
    return Logarithmic(low / room, high * room)


def end_names(plot: Plot, ends: Sequence[tuple[str, tuple[float, float], str]]) -> Markup:
    """The name of each curve (name, its last point, a class) beside its end, none over another."""
    ordered = sorted(ends, key=lambda end: plot.down(end[1][1]))
    heights = apart([plot.down(point[1]) for _, point, _ in ordered], LINE)
    names = [
        tag("text", name, x=plot.across(point[0]) + 7, y=height + 4, class_=kind)
        for (name, point, kind), height in zip(ordered, heights, strict=True)
    ]
    return tag("g", *names, class_="names")


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Ascending places, moved as little as need be so that neighbours are a gap apart.

    >>> apart([10, 11, 30], 4)
    [8.5, 12.5, 30.0]
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _top(groups[-1], gap) - _bottom(groups[-2], gap) < gap:
            last = groups.pop()
            groups[-1] += last
    return [_top(group, gap) + gap * i for group in groups for i in range(len(group))]


def _top(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _bottom(group: Sequence[float], gap: float) -> float:
    return _top(group, gap) + gap * (len(group) - 1)
