"""Simulated trackers and their predicted words: as text, as JSON objects, as HTML pages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from casemate.report import (
    Code,
    Drawing,
    Facts,
    Figure,
    Listing,
    Paragraph,
    Report,
    Section,
    TableBlock,
    Where,
    count_of,
)
from casemate.report.plots import (
    LETTER_WIDTH,
    Bands,
    Bar,
    LinearScale,
    Logarithmic,
    Margins,
    Markup,
    Plot,
    Tone,
    join,
    tag,
)
from casemate.track.modes import BREAKS, MODES, WordsForecast
from casemate.track.setting import Setting
from casemate.track.simulate.runs import Simulation

SIMULATION_SCHEMA = "casemate.track-simulation/1"
PLAN_SCHEMA = "casemate.track-plan/1"

RUNS_DRAWN = 400
"""The most runs that are drawn; of more, those evenly apart in the order of their errors."""

WORD = (
    "A word is one message, in either direction; to call all sites is a word for each of them, and "
    "so are their answers."
)
AT_ONCE = (
    "Messages arrive at once here. In a network, items that are on their way are not yet counted: "
    "a live count shows that lag apart, and alpha does not cover it."
)
EVEN = "Predictions are for items that come evenly to all sites."


def _assumptions(*sentences: str) -> Section:
    listing = Listing(sentences)
    return Section("assumptions", "What was taken for granted", [listing], where=Where.PAGE)


def _items(setting: Setting) -> str:
    return f"{count_of(setting.items, 'item')} at {count_of(setting.sites, 'site')}"


def _promise(mode: str, setting: Setting) -> Paragraph:
    promise = MODES[mode].promise
    delta = f" (delta = {setting.delta:g})" if "delta" in promise else ""
    alpha = f" is within alpha = {setting.alpha:g} of the truth at all times: {promise}{delta}."
    return Paragraph((Code(mode), alpha), where=Where.PAGE)


# Runs --------------------------------------------------------------------------------------------


def simulation_report(found: Simulation, forecasts: Sequence[WordsForecast] = ()) -> Report:
    """Some runs, beside what every protocol was predicted to send."""
    setting = found.setting
    words_per_item = f"{found.words / setting.items:.3g}"
    violations = f"{found.violations:,} of {len(found.runs):,}"
    numbers = [
        ("words", f"{found.words:,.0f}"),
        ("words an item", words_per_item),
        ("largest error, alpha", f"{found.max_error_over_alpha:.3f}"),
        ("runs ever off by more", violations),
        ("rounds", f"{found.rounds:,.0f}"),
        ("seconds", f"{found.seconds:.1f}"),
    ]
    outcome = (
        f" against {found.adversary}: {found.words:,.0f} words for {_items(setting)} "
        f"({words_per_item} words an item)"
    )
    largest = f"largest error at any time: {found.max_error_over_alpha:.3f} alpha"
    who = f"the adversary {found.adversary} chose the site of each item, seeing every count shown"
    kinds = [(kind, f"{words:,.0f}") for kind, words in found.words_by_kind.items()]
    sent = TableBlock("Words by kind", ("kind", "words"), kinds, line="{:>8} {:>15}".format)
    cost = Paragraph(f"{found.rounds:,.0f} rounds, {found.seconds:.1f} s", where=Where.TEXT)
    compared = Figure(lambda: _draw_comparison(found, forecasts))
    return Report(
        "casemate track simulate",
        (Code(found.mode), outcome),
        lambda: _simulation_fields(found),
        [
            Facts(numbers),
            Paragraph(f"{largest} (alpha = {setting.alpha:g})"),
            Paragraph(f"runs that ever were off by more: {violations}"),
            Paragraph(who, where=Where.PAGE),
            _promise(found.mode, setting),
        ],
        [
            Section("words", "What was sent", [Figure(lambda: _draw_kinds(found)), sent], label=""),
            Section("cost", "What it took", [cost], label=""),
            Section("errors", "How far it was off", [Figure(lambda: _draw_errors(found))]),
            Section("compared", "Beside every protocol", [compared]),
            _assumptions(WORD, AT_ONCE, EVEN),
        ],
    )


def _simulation_fields(found: Simulation) -> dict[str, Any]:
    """Some runs as the fields of the JSON object."""
    setting = found.setting
    return {
        "schema": SIMULATION_SCHEMA,
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


def _draw_kinds(found: Simulation) -> Drawing:
    words = found.words_by_kind
    plot = Plot(Bands(tuple(words)), LinearScale.over(words.values()), height=230)
    bars = [Bar(place, height, f"{height:,.0f}") for place, height in enumerate(words.values())]
    described = ", ".join(f"{kind} {number:,.0f}" for kind, number in words.items())
    svg = plot.draw(
        "kinds",
        "Words by kind",
        f"{described}.",
        plot.axes("", "words of a run"),
        plot.bars(bars, 0.5),
    )
    caption = (
        "What a run sent, on average: reports of sites by themselves, calls for all exact counts, "
        "the answers to them, and new rules."
    )
    return Drawing(svg, caption)


def _draw_errors(found: Simulation) -> Drawing:
    """The largest error of each run, in their order, and the line that it may not pass."""
    errors = sorted(run.max_error_over_alpha for run in found.runs)
    ranked = evenly_apart(list(enumerate(errors, start=1)), RUNS_DRAWN)
    plot = Plot(LinearScale(0, len(errors) + 1), LinearScale.over([1.0, *errors]))
    middle = errors[len(errors) // 2]
    svg = plot.draw(
        "errors-of-runs",
        "The largest error of each run, in units of alpha",
        f"From {errors[0]:.3f} to {errors[-1]:.3f}, {middle:.3f} in the middle.",
        plot.axes("runs, by their error", "largest error at any time, in units of alpha"),
        plot.curve([(0, 1), (len(errors) + 1, 1)], Tone.OTHER),
        plot.points([(rank, error) for rank, error in ranked if error <= 1]),
        plot.points([(rank, error) for rank, error in ranked if error > 1], Tone.STRONG),
    )
    return Drawing(svg, f"A dot is a run; the line is alpha. {_allowance(found)}")


def _allowance(found: Simulation) -> str:
    if MODES[found.mode].promise is BREAKS:
        return "This protocol promises nothing against somebody who adapts."
    share = f"{found.violations:,} of {count_of(len(found.runs), 'run')} passed it"
    return f"{share}; each may with probability {found.setting.delta:g} at most."


def evenly_apart(ranked: list[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """At most so many, evenly apart, the first and the last among them.

    >>> evenly_apart([(i, 0.0) for i in range(1, 8)], 3)
    [(1, 0.0), (4, 0.0), (7, 0.0)]
    """
    if len(ranked) <= most:
        return ranked
    step = (len(ranked) - 1) / (most - 1)
    return [ranked[round(step * i)] for i in range(most)]


def _draw_comparison(found: Simulation, forecasts: Sequence[WordsForecast]) -> Drawing:
    measured = ProtocolRow(f"{found.mode}, measured", found.words, Tone.STRONG)
    rows = [measured, *(ProtocolRow(each.mode, each.words, _tone(each)) for each in forecasts)]
    svg = draw_rows("compared", "Words measured here, and predicted for every protocol", rows)
    caption = (
        "On top what was measured, below it what is predicted under an even load. Pale dots are "
        "protocols that somebody who adapts can break. The scale is one of ratios."
    )
    return Drawing(svg, caption)


# Plans -------------------------------------------------------------------------------------------


def plan_report(forecasts: Sequence[WordsForecast], curves: Sequence["WordsCurve"] = ()) -> Report:
    """Predicted words of every protocol, the cheapest first."""
    setting, best = forecasts[0].setting, _recommend(forecasts)
    numbers = [
        ("sites", f"{setting.sites:,}"),
        ("items", f"{setting.items:,}"),
        ("alpha", f"{setting.alpha:g}"),
        ("delta", f"{setting.delta:g}"),
        ("words an item", f"{best.words / setting.items:.3g}"),
    ]
    least = max(forecasts[0].words, 1.0)
    rows = [
        (each.mode, f"{each.words:,.0f}", f"{each.words / least:.2f}x", each.promise)
        for each in forecasts
    ]
    header = ("mode", "words", "of the cheapest", "within alpha")
    modes = TableBlock("The cheapest first", header, rows, numeric=(1, 2), rows_in_text=None)
    words = Figure(lambda: _draw_modes(forecasts, best))
    growth = Figure(lambda: _draw_growth(setting, forecasts, curves))
    predicted = f" is predicted to send {best.words:,.0f} words for {_items(setting)}."
    return Report(
        "casemate track plan",
        (Code(best.mode), predicted),
        lambda: _plan_fields(forecasts),
        [Facts(numbers), _promise(best.mode, setting)],
        [
            Section("words", "Words of every protocol", [words]),
            Section("growth", "With more sites, and with fewer", [growth]),
            Section("promises", "What each promises", [modes], label=""),
            _assumptions(WORD, EVEN, AT_ONCE),
        ],
        headline_where=Where.PAGE,
    )


def _plan_fields(forecasts: Sequence[WordsForecast]) -> dict[str, Any]:
    """Predicted words as the fields of the JSON object."""
    setting = forecasts[0].setting
    return {
        "schema": PLAN_SCHEMA,
        "sites": setting.sites,
        "alpha": setting.alpha,
        "delta": setting.delta,
        "horizon": setting.items,
        "modes": [
            {"mode": each.mode, "words": each.words, "promise": each.promise} for each in forecasts
        ],
    }


def _recommend(forecasts: Sequence[WordsForecast]) -> WordsForecast:
    """The cheapest that promises something; of several the one that is chosen by itself."""
    safe = [each for each in forecasts if each.promise is not BREAKS]
    return min(safe, key=lambda each: (each.words, each.mode != "auto"))


def _draw_modes(forecasts: Sequence[WordsForecast], best: WordsForecast) -> Drawing:
    rows = [
        ProtocolRow(each.mode, each.words, Tone.STRONG if each is best else _tone(each))
        for each in forecasts
    ]
    svg = draw_rows("modes", "Predicted words of every protocol", rows)
    caption = (
        "Pale dots are protocols that somebody who adapts can break; they are for simulations "
        "only. The scale is one of ratios."
    )
    return Drawing(svg, caption)


def _draw_growth(
    setting: Setting, forecasts: Sequence[WordsForecast], curves: Sequence["WordsCurve"]
) -> Drawing:
    """Words against the number of sites, and where this plan stands."""
    modes = {curve.mode for curve in curves}
    here = [(setting.sites, each.words) for each in forecasts if each.mode in modes]
    points = [point for curve in curves for point in curve.points]
    plot = Plot(
        ratios([x for x, _ in (*points, *here)], 1.0 + 1e-9),
        ratios([y for _, y in (*points, *here)]),
        height=380,
        margins=Margins(right=100),
    )
    ordered = sorted(curves, key=lambda curve: curve.mode != "auto")  # it runs below the others
    svg = plot.draw(
        "growth",
        "Predicted words against the number of sites",
        _describe(curves),
        plot.axes("sites", "words"),
        _upright_line(plot, setting.sites),
        *(_curve(plot, curve) for curve in ordered),
        plot.points(here),
        end_names(plot, [(curve.mode, curve.points[-1], "value") for curve in curves]),
    )
    caption = (
        f"For {count_of(setting.items, 'item')}, alpha = {setting.alpha:g} and delta = "
        f"{setting.delta:g}. The upright line and the dots are this plan's "
        f"{count_of(setting.sites, 'site')}, the wide line is auto."
    )
    return Drawing(svg, caption)


def _describe(curves: Sequence["WordsCurve"]) -> str:
    ends = [(curve.mode, curve.points[0], curve.points[-1]) for curve in curves]
    return "; ".join(
        f"{mode}: from {first[1]:,.0f} words at {first[0]:,} sites to {last[1]:,.0f} at {last[0]:,}"
        for mode, first, last in ends
    )


def _upright_line(plot: Plot, sites: int) -> Markup:
    x, bottom = plot.across(sites), plot.height - plot.margins.bottom
    line = tag("line", x1=x, y1=plot.margins.top, x2=x, y2=bottom, class_="axis")
    name = tag("text", f"{sites:,}", x=x, y=plot.margins.top - 6, text_anchor="middle")
    return join([line, name])


def _curve(plot: Plot, curve: "WordsCurve") -> Markup:
    if curve.mode != "auto":
        return plot.curve(curve.points, _CURVE_TONES.get(curve.mode, Tone.OTHER))
    places = " ".join(f"{plot.across(x):.1f},{plot.down(y):.1f}" for x, y in curve.points)
    return tag("polyline", points=places, class_="curve soft", style="stroke-width: 8")


def _tone(forecast: WordsForecast) -> Tone:
    return Tone.SOFT if forecast.promise is BREAKS else Tone.PLAIN


# Words drawn: the curve of each protocol ---------------------------------------------------------


CURVE_SITES = tuple(4**power for power in range(1, 9))
"""The numbers of sites at which a curve is computed."""


@dataclass(frozen=True)
class WordsCurve:
    """The words of one protocol against the number of sites."""

    mode: str
    points: tuple[tuple[int, float], ...]


def curves(setting: Setting, sites: Sequence[int] = CURVE_SITES) -> list[WordsCurve]:
    """The words of every protocol that has a curve."""
    settings = [replace(setting, sites=k) for k in sites]
    return [
        WordsCurve(mode.name, tuple((each.sites, mode.words(each)) for each in settings))
        for mode in MODES.values()
        if mode.drawn
    ]


# Words drawn: a row for each protocol, and names at the ends of curves ---------------------------


ROW_HEIGHT = 24
LINE_HEIGHT = 14.0
"""The least distance of two lines of text, in units of the drawing."""

_CURVE_TONES = {"deterministic": Tone.PLAIN, "sampled": Tone.STRONG}


@dataclass(frozen=True)
class ProtocolRow:
    """One protocol, how many words it sends, and how much it stands out."""

    label: str
    words: float
    tone: Tone = Tone.PLAIN


def draw_rows(name: str, title: str, rows: Sequence[ProtocolRow]) -> Markup:
    """A dot for each row on a scale of ratios, the first row on top; `name` is unique."""
    shown = list(reversed(rows))
    labels = tuple(each.label for each in shown)
    margins = Margins(top=20, right=92, left=18 + LETTER_WIDTH * max(map(len, labels)))
    height = margins.top + margins.bottom + ROW_HEIGHT * len(shown)
    scale = ratios([each.words for each in rows])
    plot = Plot(scale, Bands(labels), height=height, margins=margins)
    described = "; ".join(f"{row.label}: {row.words:,.0f}" for row in rows)
    return plot.draw(
        name,
        title,
        f"{described}.",
        plot.axes("words", ""),
        *(_row(plot, place, row) for place, row in enumerate(shown)),
    )


def _row(plot: Plot, place: int, row: ProtocolRow) -> Markup:
    along = tag(
        "text",
        f"{row.words:,.0f}",
        x=plot.across(row.words) + 8,
        y=plot.down(place) + 4,
        class_="value",
    )
    return join([plot.points([(row.words, place)], row.tone), along])


def ratios(values: Sequence[float], room: float = 1.6) -> Logarithmic:
    """A scale of ratios on which all values, and some room around them, are found."""
    low, high = max(1.0, min(values)), max(1.0, *values)
    return Logarithmic(low / room, high * room)


def end_names(plot: Plot, ends: Sequence[tuple[str, tuple[float, float], str]]) -> Markup:
    """The name of each curve (name, its last point, a class) beside its end, none over another."""
    ordered = sorted(ends, key=lambda end: plot.down(end[1][1]))
    heights = apart([plot.down(point[1]) for _, point, _ in ordered], LINE_HEIGHT)
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
