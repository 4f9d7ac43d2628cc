"""Simulated trackers and their predicted words, as text and as JSON objects.

Predicted words against the number of sites: for curves, so to a few per cent, and quickly.

Words drawn: a row for each protocol, and names at the ends of curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from casemate.report import (
    LETTER,
    Bands,
    Logarithmic,
    Margins,
    Markup,
    Plot,
    Tone,
    counted,
    joined,
    tag,
)
from casemate.track.modes import MODES, WordsForecast
from casemate.track.setting import Setting
from casemate.track.simulate.runs import Simulation

SIMULATION = "casemate.track-simulation/1"
PLAN = "casemate.track-plan/1"


def simulation_text(found: Simulation) -> str:
    """Some runs as lines to read."""
    setting = found.setting
    share = found.words / setting.items
    lines = [
        f"{found.mode} against {found.adversary}: {found.words:,.0f} words for "
        f"{counted(setting.items, 'item')} at {counted(setting.sites, 'site')} "
        f"({share:.3g} words an item)",
        f"largest error at any time: {found.max_error_over_alpha:.3f} alpha "
        f"(alpha = {setting.alpha:g})",
        f"runs that ever were off by more: {found.violations} of {len(found.runs)}",
        "",
    ]
    lines += [f"{kind:>10} {words:>15,.0f}" for kind, words in found.words_by_kind.items()]
    lines += ["", f"{found.rounds:,.0f} rounds, {found.seconds:.1f} s"]
    return "\n".join(lines)


def simulation_json(found: Simulation) -> dict[str, Any]:
    """Some runs as the object that `--format json` prints."""
    setting = found.setting
    return {
        "schema": SIMULATION,
        "mode": found.mode,
        "adversary": found.adversary,
        "sites": setting.sites,
        "alpha": setting.alpha,
        "delta": setting.delta,
        "items": setting.items,
        "runs": len(found.runs),
        "finished": found.finished,
        "words": found.words,
        "words_by_kind": found.words_by_kind,
        "max_error_over_alpha": found.max_error_over_alpha,
        "violations": found.violations,
        "rounds": found.rounds,
        "seconds": round(found.seconds, 3),
    }


def plan_text(forecasts: Sequence[WordsForecast]) -> str:
    """Predicted words as a table, the cheapest first."""
    lines = [f"{'mode':<20} {'words':>15} {'of the cheapest':>16}  within alpha"]
    least = max(forecasts[0].words, 1.0)
    for each in forecasts:
        ratio = f"{each.words / least:.2f}x"
        lines.append(f"{each.mode:<20} {each.words:>15,.0f} {ratio:>16}  {each.promise}")
    return "\n".join(lines)


def plan_json(forecasts: Sequence[WordsForecast]) -> dict[str, Any]:
    """Predicted words as the object that `--format json` prints."""
    setting = forecasts[0].setting
    return {
        "schema": PLAN,
        "sites": setting.sites,
        "alpha": setting.alpha,
        "delta": setting.delta,
        "horizon": setting.items,
        "modes": [
            {"mode": each.mode, "words": each.words, "promise": each.promise} for each in forecasts
        ],
    }


# Track curves -----------------------------------------------------------------------------------


SITES = tuple(4**power for power in range(1, 9))
"""The numbers of sites at which a curve is computed."""


@dataclass(frozen=True)
class WordsCurve:
    """The words of one protocol against the number of sites."""

    mode: str
    points: tuple[tuple[int, float], ...]


def curves(setting: Setting, sites: Sequence[int] = SITES) -> list[WordsCurve]:
    """The words of every protocol that has a curve."""
    settings = [replace(setting, sites=k) for k in sites]
    return [
        WordsCurve(mode.name, tuple((each.sites, mode.curve(each)) for each in settings))
        for mode in MODES.values()
        if mode.curve is not None
    ]


# Track words ------------------------------------------------------------------------------------


ROW = 24
"""The height of one row, in units of the drawing."""

LINE = 14.0
"""The least distance of two lines of text."""


@dataclass(frozen=True)
class ProtocolRow:
    """One protocol, how many words it sends, and how much it stands out."""

    label: str
    words: float
    tone: Tone = Tone.PLAIN


def rows_drawn(name: str, title: str, rows: Sequence[ProtocolRow]) -> Markup:
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


def _row(plot: Plot, place: int, row: ProtocolRow) -> Markup:
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
