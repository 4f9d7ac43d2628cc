"""The figures of an attack's page: what is right, how far off values are, how sure it is.

Of all figures only the scatter of found against true values shows values.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from casemate.attack.attack import Attacked, NoisePoint
from casemate.attack.words import certainties, fractions, percent, rule, size_of, widths
from casemate.report import Drawing
from casemate.report.plots import Bands, Bar, LinearScale, Logarithmic, Markup, Plot, Tone

POINTS_DRAWN = 2_000
BAR_LABELS = {
    "leave_one_out": "leave one out",
    "majority": "majority",
    "marginal": "marginal",
    "prior_mean": "prior mean",
}
TOLERANCE_CUTS = (1, 2, 5, 10, 20, 50)
"""Where the histogram of errors is cut, in tolerances."""

CERTAINTY_CUTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
PER_CENT = LinearScale(0, 100)


# What is right --------------------------------------------------------------------------------


def draw_baselines(place: int, name: str, found: Attacked) -> Drawing:
    """The attack beside four guesses, with the interval of the difference to the best of them."""
    score = found.scores[name]
    shares = {key: getattr(score.baseline, key) for key in BAR_LABELS}
    guesses = {BAR_LABELS[key]: share for key, share in shares.items() if share is not None}
    labels = ("this attack", *guesses)
    heights = [100 * share for share in (score.recovered, *guesses.values())]
    plot = Plot(Bands(labels), PER_CENT)
    bars = [
        Bar(i, height, f"{height:.1f}", Tone.PLAIN if i == 0 else Tone.SOFT)
        for i, height in enumerate(heights)
    ]
    comparison = score.comparison
    ends = (comparison.leave_one_out + end for end in (comparison.low, comparison.high))
    whisker = [(0.47, 100 * min(1.0, max(0.0, end))) for end in ends]
    svg = plot.draw(
        f"baselines-{place}",
        f"The share of {name} that is right",
        f"Bars for {', '.join(f'{a} {b:.1f}' for a, b in zip(labels, heights, strict=True))}.",
        plot.axes("", f"per cent right ({rule(found, name)})"),
        plot.bars(bars),
        plot.curve(whisker, Tone.STRONG),
    )
    return Drawing(
        svg,
        f"{name}. The line beside the first bar: where it would have to end for the difference to "
        f"leave one out to be at the ends of its {100 * score.confidence:g} % interval "
        f"({comparison.targets} people).",
    )


def _scored_unknowns(found: Attacked, name: str) -> NDArray[np.int64]:
    """The unknowns of a private column that are judged."""
    evidence = found.evidence
    free = evidence.problem.low < evidence.problem.high
    return np.flatnonzero(evidence.subjects(name).scored & free)


def draw_errors(place: int, name: str, found: Attacked, truth: NDArray[np.float64]) -> Drawing:
    """How far off the values are, in tolerances."""
    unknowns = _scored_unknowns(found, name)
    reach = max(found.scores[name].tolerance, 1e-9)
    times = np.abs(found.reconstruction.values - truth)[unknowns] / reach
    bins = np.searchsorted(TOLERANCE_CUTS, times * (1 - 1e-9))
    labels = (
        "up to 1",
        *(f"to {each}" for each in TOLERANCE_CUTS[1:]),
        f"above {TOLERANCE_CUTS[-1]}",
    )
    svg = _draw_counts(
        f"errors-{place}",
        f"How far off the values of {name} are",
        "times the tolerance",
        labels,
        bins.tolist(),
    )
    return Drawing(
        svg, f"{name}: errors of {len(unknowns):,} unknowns, in tolerances of {reach:g}."
    )


def draw_scatter(place: int, name: str, found: Attacked, truth: NDArray[np.float64]) -> Drawing:
    """The values found against the true ones."""
    unknowns = _scored_unknowns(found, name)
    kept = unknowns[:: -(-len(unknowns) // POINTS_DRAWN)]
    pairs = list(zip(truth[kept].tolist(), found.reconstruction.values[kept].tolist(), strict=True))
    low, high = (float(end) for end in (np.min(pairs), np.max(pairs)))
    room = 0.05 * (high - low) or 1.0
    scale = LinearScale(low - room, high + room)
    plot = Plot(scale, scale, height=420)
    ends = [(low - room, low - room), (high + room, high + room)]
    svg = plot.draw(
        f"scatter-{place}",
        f"Found against true values of {name}",
        f"{len(pairs)} points; on the diagonal a value is found exactly.",
        plot.axes("true value", "found value"),
        plot.curve(ends, Tone.SOFT),
        plot.points(pairs),
    )
    return Drawing(svg, f"{name}: on the line, what was found is the truth.")


# How it came about ----------------------------------------------------------------------------


def draw_noise_levels(found: Attacked, curve: Sequence[NoisePoint]) -> Drawing | None:
    """The fraction recovered against the noise that the answers carry."""
    if len(curve) < 2:
        return None
    shown = [(each.law.scale, 100 * each.recovered) for each in curve]
    scales = [scale for scale, _ in shown]
    plot = Plot(Logarithmic(min(scales), max(scales)), PER_CENT)
    kind, best = curve[0].law.kind, fractions(found.scores.values())["leave_one_out"] or 0.0
    guess = [(scale, 100 * best) for scale in (min(scales), max(scales))]
    svg = plot.draw(
        "noise-levels",
        "The fraction recovered against noise",
        "; ".join(f"{each.law}: {percent(each.recovered)}" for each in curve) + ".",
        plot.axes(f"scale of {kind} noise", "per cent recovered"),
        plot.curve(guess, Tone.OTHER),
        plot.curve(shown),
        plot.points(shown),
    )
    return Drawing(
        svg,
        "Each point is one attack on the same queries, with noise of that scale laid over the "
        "true answers once. The level line is the best guess without the person: noise is "
        "enough where the curve has come down to it.",
    )


def draw_convergence(found: Attacked) -> Drawing | None:
    """The residual after so many steps of the solver."""
    history = [
        (steps, residual) for steps, residual in found.reconstruction.history if residual > 0
    ]
    residuals = [residual for _, residual in history]
    if len(history) < 2 or min(residuals) >= max(residuals):
        return None
    plot = Plot(
        LinearScale.over(steps for steps, _ in history), Logarithmic(min(residuals), max(residuals))
    )
    svg = plot.draw(
        "convergence-curve",
        "The residual after each step",
        f"From {residuals[0]:.2g} to {residuals[-1]:.2g} in {history[-1][0]} steps.",
        plot.axes("steps", "relative residual"),
        plot.curve(history),
    )
    caption = "How far the equations are from holding, relative to what was published."
    return Drawing(svg, caption)


# How sure it is -------------------------------------------------------------------------------


def draw_intervals(found: Attacked, reveal: bool) -> Drawing | None:
    """The intervals, sorted by their width."""
    ascending = np.sort(widths(found))
    bounded = ascending[np.isfinite(ascending)]
    if not len(bounded) or not found.reconstruction.finished:
        return None
    ranks = np.unique(np.linspace(0, len(bounded) - 1, min(len(bounded), POINTS_DRAWN)).astype(int))
    shown = [(int(rank) + 1, size_of(float(bounded[rank]), found, reveal)) for rank in ranks]
    plot = Plot(LinearScale.over([len(ascending)]), LinearScale.over(width for _, width in shown))
    svg = plot.draw(
        "interval-widths",
        "Intervals sorted by their width",
        f"{len(bounded)} intervals, half of them at most {shown[len(shown) // 2][1]:g} wide.",
        plot.axes("unknowns, the best known first", "width of the interval"),
        plot.curve(shown),
        plot.points(shown if len(shown) <= 60 else ()),
    )
    level = f"{100 * found.options.confidence:g} %"
    caption = f"Each holds the true value with a probability of {level}, if the noise is as stated."
    if len(bounded) < len(ascending):
        caption += f" {len(ascending) - len(bounded):,} more have no end on one side."
    return Drawing(svg, caption)


def draw_certainty(found: Attacked) -> Drawing | None:
    """How likely the whole numbers are right, as the attack itself says."""
    sure = certainties(found)
    if not len(sure):
        return None
    cuts = [f"{100 * each:g}" for each in (*CERTAINTY_CUTS, 1)]
    labels = (f"to {cuts[0]}", *(f"{a}–{b}" for a, b in pairwise(cuts)))
    places = np.searchsorted(CERTAINTY_CUTS, sure, side="right").tolist()
    svg = _draw_counts("sure", "How likely whole numbers are right", "per cent", labels, places)
    caption = "What the attack says of itself, for every unknown that is a whole number."
    return Drawing(svg, caption)


def _draw_counts(
    name: str, title: str, axis: str, labels: tuple[str, ...], places: Iterable[int]
) -> Markup:
    """A histogram of what falls into each of some bins."""
    counts = Counter(places)
    heights = [counts[place] for place in range(len(labels))]
    plot = Plot(Bands(labels), LinearScale.over(heights))
    bars = [Bar(i, height, f"{height:,}" if height else "") for i, height in enumerate(heights)]
    described = ", ".join(f"{a}: {b}" for a, b in zip(labels, heights, strict=True))
    return plot.draw(name, title, f"{described}.", plot.axes(axis, "unknowns"), plot.bars(bars))
