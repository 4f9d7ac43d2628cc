"""Simulated trackers and their predicted words, each as one HTML page."""

from collections.abc import Sequence

from casemate.report import (
    Bands,
    Bar,
    LinearScale,
    Margins,
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
    tag,
)
from casemate.track.modes import BREAKS, MODES, WordsForecast
from casemate.track.report import ProtocolRow, WordsCurve, end_names, ratios, rows_drawn
from casemate.track.setting import Setting
from casemate.track.simulate.runs import Simulation

DOTS_SHOWN = 400
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
_TONES = {"deterministic": Tone.PLAIN, "sampled": Tone.STRONG}


# Runs -----------------------------------------------------------------------------------------


def simulation_html(found: Simulation, forecasts: Sequence[WordsForecast]) -> str:
    """Some runs as a self-contained page, beside what every protocol was predicted to send."""
    return page(
        "casemate track simulate",
        _headline(found),
        _introduction(found),
        [_kinds(found), _errors(found), _compared(found, forecasts), _notes(WORD, AT_ONCE, EVEN)],
    )


def _headline(found: Simulation) -> str:
    end = "was never off by more than alpha"
    if found.violations:
        end = f"was off by more than alpha in {found.violations:,} of {len(found.runs):,} runs"
    return f"{found.mode} sent {found.words:,.0f} words for {_items(found.setting)}, and {end}."


def _items(setting: Setting) -> str:
    return f"{counted(setting.items, 'item')} at {counted(setting.sites, 'site')}"


def _introduction(found: Simulation) -> Markup:
    setting = found.setting
    numbers = [
        ("words", f"{found.words:,.0f}"),
        ("words an item", f"{found.words / setting.items:.3g}"),
        ("largest error, alpha", f"{found.max_error_over_alpha:.3f}"),
        ("runs ever off by more", f"{found.violations:,} of {len(found.runs):,}"),
        ("rounds", f"{found.rounds:,.0f}"),
        ("seconds", f"{found.seconds:.1f}"),
    ]
    who = f"The adversary {found.adversary} chose the site of each item, seeing every count shown."
    return joined([facts(numbers), paragraph(who), paragraph(_promise(found.mode, setting))])


def _promise(mode: str, setting: Setting) -> str:
    promise = MODES[mode].promise
    delta = f" (delta = {setting.delta:g})" if "delta" in promise else ""
    return (
        f"{mode} is within alpha = {setting.alpha:g} of the truth at all times: {promise}{delta}."
    )


def _kinds(found: Simulation) -> Markup:
    words = found.words_by_kind
    plot = Plot(Bands(tuple(words)), LinearScale.over(words.values()), height=230)
    bars = [Bar(place, height, f"{height:,.0f}") for place, height in enumerate(words.values())]
    told = ", ".join(f"{kind} {number:,.0f}" for kind, number in words.items())
    drawn = plot.drawn(
        "kinds", "Words by kind", f"{told}.", plot.axes("", "words of a run"), plot.bars(bars, 0.5)
    )
    caption = (
        "What a run sent, on average: reports of sites by themselves, calls for all exact counts, "
        "the answers to them, and new rules."
    )
    return section("words", "What was sent", figure(drawn, caption))


def _errors(found: Simulation) -> Markup:
    """The largest error of each run, in their order, and the line that it may not pass."""
    errors = sorted(run.max_error_over_alpha for run in found.runs)
    ranked = thinned(list(enumerate(errors, start=1)), DOTS_SHOWN)
    plot = Plot(LinearScale(0, len(errors) + 1), LinearScale.over([1.0, *errors]))
    within = [each for each in ranked if each[1] <= 1]
    beyond = [each for each in ranked if each[1] > 1]
    told = (
        f"From {errors[0]:.3f} to {errors[-1]:.3f}, {errors[len(errors) // 2]:.3f} in the middle."
    )
    drawn = plot.drawn(
        "errors-of-runs",
        "The largest error of each run, in units of alpha",
        told,
        plot.axes("runs, by their error", "largest error at any time, in units of alpha"),
        plot.curve([(0, 1), (len(errors) + 1, 1)], Tone.OTHER),
        plot.points(within),
        plot.points(beyond, Tone.STRONG),
    )
    caption = f"A dot is a run; the line is alpha. {_allowed(found)}"
    return section("errors", "How far it was off", figure(drawn, caption))


def _allowed(found: Simulation) -> str:
    if MODES[found.mode].promise is BREAKS:
        return "This protocol promises nothing against somebody who adapts."
    share = f"{found.violations:,} of {counted(len(found.runs), 'run')} passed it"
    return f"{share}; each may with probability {found.setting.delta:g} at most."


def thinned(ranked: list[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """At most so many, evenly apart, the first and the last among them.

    >>> thinned([(i, 0.0) for i in range(1, 8)], 3)
    [(1, 0.0), (4, 0.0), (7, 0.0)]
    """
    if len(ranked) <= most:
        return ranked
    step = (len(ranked) - 1) / (most - 1)
    return [ranked[round(step * i)] for i in range(most)]


def _compared(found: Simulation, forecasts: Sequence[WordsForecast]) -> Markup:
    measured = ProtocolRow(f"{found.mode}, measured", found.words, Tone.STRONG)
    rows = [measured, *(ProtocolRow(each.mode, each.words, _tone(each)) for each in forecasts)]
    drawn = rows_drawn("compared", "Words measured here, and predicted for every protocol", rows)
    caption = (
        "On top what was measured, below it what is predicted under an even load. Pale dots are "
        "protocols that somebody who adapts can break. The scale is one of ratios."
    )
    return section("compared", "Beside every protocol", figure(drawn, caption))


# Plans ----------------------------------------------------------------------------------------


def plan_html(forecasts: Sequence[WordsForecast], curves: Sequence[WordsCurve]) -> str:
    """Predicted words, the cheapest first, as a self-contained page."""
    setting, best = forecasts[0].setting, _recommended(forecasts)
    numbers = [
        ("sites", f"{setting.sites:,}"),
        ("items", f"{setting.items:,}"),
        ("alpha", f"{setting.alpha:g}"),
        ("delta", f"{setting.delta:g}"),
        ("words an item", f"{best.words / setting.items:.3g}"),
    ]
    headline = f"{best.mode} is predicted to send {best.words:,.0f} words for {_items(setting)}."
    return page(
        "casemate track plan",
        headline,
        joined([facts(numbers), paragraph(_promise(best.mode, setting))]),
        [
            _rows(forecasts, best),
            _growth(forecasts, curves),
            _promises(forecasts, best),
            _notes(WORD, EVEN, AT_ONCE),
        ],
    )


def _recommended(forecasts: Sequence[WordsForecast]) -> WordsForecast:
    """The cheapest that promises something; of several the one that is chosen by itself."""
    safe = [each for each in forecasts if each.promise is not BREAKS]
    return min(safe, key=lambda each: (each.words, each.mode != "auto"))


def _rows(forecasts: Sequence[WordsForecast], best: WordsForecast) -> Markup:
    rows = [
        ProtocolRow(each.mode, each.words, Tone.STRONG if each is best else _tone(each))
        for each in forecasts
    ]
    drawn = rows_drawn("modes", "Predicted words of every protocol", rows)
    caption = (
        "Pale dots are protocols that somebody who adapts can break; they are for simulations "
        "only. The scale is one of ratios."
    )
    return section("words", "Words of every protocol", figure(drawn, caption))


def _growth(forecasts: Sequence[WordsForecast], curves: Sequence[WordsCurve]) -> Markup:
    """Words against the number of sites, and where this plan stands."""
    setting, modes = forecasts[0].setting, {curve.mode for curve in curves}
    here = [(setting.sites, each.words) for each in forecasts if each.mode in modes]
    points = [point for curve in curves for point in curve.points]
    plot = Plot(
        ratios([x for x, _ in (*points, *here)], 1.0 + 1e-9),
        ratios([y for _, y in (*points, *here)]),
        height=380,
        margins=Margins(right=100),
    )
    ordered = sorted(curves, key=lambda curve: curve.mode != "auto")  # it runs below the others
    drawn = plot.drawn(
        "growth",
        "Predicted words against the number of sites",
        _told(curves),
        plot.axes("sites", "words"),
        _upright(plot, setting.sites),
        *(_line(plot, curve) for curve in ordered),
        plot.points(here),
        end_names(plot, [(curve.mode, curve.points[-1], "value") for curve in curves]),
    )
    caption = (
        f"For {counted(setting.items, 'item')}, alpha = {setting.alpha:g} and delta = "
        f"{setting.delta:g}. The upright line and the dots are this plan's "
        f"{counted(setting.sites, 'site')}, the wide line is auto; curves are good to a few per "
        "cent."
    )
    return section("growth", "With more sites, and with fewer", figure(drawn, caption))


def _told(curves: Sequence[WordsCurve]) -> str:
    ends = [(curve.mode, curve.points[0], curve.points[-1]) for curve in curves]
    return "; ".join(
        f"{mode}: from {first[1]:,.0f} words at {first[0]:,} sites to {last[1]:,.0f} at {last[0]:,}"
        for mode, first, last in ends
    )


def _upright(plot: Plot, sites: int) -> Markup:
    x, bottom = plot.across(sites), plot.height - plot.margins.bottom
    line = tag("line", x1=x, y1=plot.margins.top, x2=x, y2=bottom, class_="axis")
    name = tag("text", f"{sites:,}", x=x, y=plot.margins.top - 6, text_anchor="middle")
    return joined([line, name])


def _line(plot: Plot, curve: WordsCurve) -> Markup:
    if curve.mode != "auto":
        return plot.curve(curve.points, _TONES.get(curve.mode, Tone.OTHER))
    places = " ".join(f"{plot.across(x):.1f},{plot.down(y):.1f}" for x, y in curve.points)
    return tag("polyline", points=places, class_="curve soft", style="stroke-width: 8")


def _promises(forecasts: Sequence[WordsForecast], best: WordsForecast) -> Markup:
    rows = [
        (each.mode, f"{each.words:,.0f}", f"{each.words / best.words:.2f}x", each.promise)
        for each in forecasts
    ]
    header = ("mode", "words", f"of {best.mode}", "within alpha")
    return section("promises", "What each promises", table("The cheapest first", header, rows))


# Both -----------------------------------------------------------------------------------------


def _tone(forecast: WordsForecast) -> Tone:
    return Tone.SOFT if forecast.promise is BREAKS else Tone.PLAIN


def _notes(*sentences: str) -> Markup:
    return section("assumptions", "What was taken for granted", listing(sentences))
