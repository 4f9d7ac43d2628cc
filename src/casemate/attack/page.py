"""An attack as one HTML page: what is right, what that means, and how it came about.

Where the table knows the truth, no value is written without `reveal`.

The figures of an attack: what is right beside what could be guessed, and how it came about.

Only the scatter of found against true values shows values; it is drawn when they are revealed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from casemate.attack.attack import Attacked
from casemate.attack.noise_curve import NoisePoint
from casemate.attack.report import (
    about_noise,
    certain,
    determined,
    fractions,
    gap,
    headline,
    parts,
    percent,
    points,
    rule,
    shown_value,
    shows_values,
    size_of,
    verdict,
    widths,
)
from casemate.attack.score.scoring import Score
from casemate.report import (
    Bands,
    Bar,
    LinearScale,
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
    plain,
    section,
    table,
    tag,
)

MOST_POINTS = 2_000
BARS = {
    "leave_one_out": "leave one out",
    "majority": "majority",
    "marginal": "marginal",
    "prior_mean": "prior mean",
}
TIMES = (1, 2, 5, 10, 20, 50)
"""Where the histogram of errors is cut, in tolerances."""

SURE = (0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
SHARES = LinearScale(0, 100)


# What is right --------------------------------------------------------------------------------


def baselines(found: Attacked) -> Markup:
    """The attack beside four guesses, with the interval of the difference to the best of them."""
    drawn = [
        _bars(place, name, score, found) for place, (name, score) in enumerate(found.scores.items())
    ]
    if not drawn:
        return Markup()
    return section("baselines", "What is right, and what could be guessed", joined(drawn))


def _bars(place: int, name: str, score: Score, found: Attacked) -> Markup:
    shares = {key: getattr(score.baseline, key) for key in BARS}
    told = {BARS[key]: share for key, share in shares.items() if share is not None}
    labels = ("this attack", *told)
    heights = [100 * share for share in (score.recovered, *told.values())]
    plot = Plot(Bands(labels), SHARES)
    bars = [
        Bar(i, height, f"{height:.1f}", Tone.PLAIN if i == 0 else Tone.SOFT)
        for i, height in enumerate(heights)
    ]
    comparison = score.comparison
    ends = (comparison.leave_one_out + end for end in (comparison.low, comparison.high))
    whisker = [(0.47, 100 * min(1.0, max(0.0, end))) for end in ends]
    drawn = plot.drawn(
        f"baselines-{place}",
        f"The share of {name} that is right",
        f"Bars for {', '.join(f'{a} {b:.1f}' for a, b in zip(labels, heights, strict=True))}.",
        plot.axes("", f"per cent right ({rule(found, name)})"),
        plot.bars(bars),
        plot.curve(whisker, Tone.STRONG),
    )
    return figure(
        drawn,
        f"{name}. The line beside the first bar: where it would have to end for the difference to "
        f"leave one out to be at the ends of its {100 * score.confidence:g} % interval "
        f"({comparison.targets} people).",
    )


def errors(found: Attacked, reveal: bool) -> Markup:
    """How far off the values are, in tolerances; with `reveal` the values against the truth."""
    truth = found.evidence.truth if found.scores else None
    if truth is None:
        return Markup()
    drawn = [_histogram(place, *each, found, truth) for place, each in enumerate(_scored(found))]
    if reveal:
        drawn += [_scatter(place, *each, found, truth) for place, each in enumerate(_scored(found))]
    return section("errors", "How far off the values are", joined(drawn))


def _scored(found: Attacked) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The unknowns of every private column that are judged."""
    evidence = found.evidence
    free = evidence.problem.low < evidence.problem.high
    for name in found.scores:
        subjects = evidence.subjects(name)
        yield name, np.flatnonzero(subjects.scored & free)


def _histogram(
    place: int, name: str, unknowns: NDArray[np.int64], found: Attacked, truth: NDArray[np.float64]
) -> Markup:
    reach = max(found.scores[name].tolerance, 1e-9)
    times = np.abs(found.reconstruction.values - truth)[unknowns] / reach
    bins = np.searchsorted(TIMES, times * (1 - 1e-9))
    labels = ("up to 1", *(f"to {each}" for each in TIMES[1:]), f"above {TIMES[-1]}")
    drawn = _counts(
        f"errors-{place}",
        f"How far off the values of {name} are",
        "times the tolerance",
        labels,
        bins.tolist(),
    )
    return figure(
        drawn, f"{name}: errors of {len(unknowns):,} unknowns, in tolerances of {reach:g}."
    )


def _scatter(
    place: int, name: str, unknowns: NDArray[np.int64], found: Attacked, truth: NDArray[np.float64]
) -> Markup:
    kept = unknowns[:: -(-len(unknowns) // MOST_POINTS)]
    pairs = list(zip(truth[kept].tolist(), found.reconstruction.values[kept].tolist(), strict=True))
    low, high = (float(end) for end in (np.min(pairs), np.max(pairs)))
    room = 0.05 * (high - low) or 1.0
    scale = LinearScale(low - room, high + room)
    plot = Plot(scale, scale, height=420)
    ends = [(low - room, low - room), (high + room, high + room)]
    drawn = plot.drawn(
        f"scatter-{place}",
        f"Found against true values of {name}",
        f"{len(pairs)} points; on the diagonal a value is found exactly.",
        plot.axes("true value", "found value"),
        plot.curve(ends, Tone.SOFT),
        plot.points(pairs),
    )
    return figure(drawn, f"{name}: on the line, what was found is the truth.")


# How it came about ----------------------------------------------------------------------------


def noise_levels(found: Attacked, curve: Sequence[NoisePoint]) -> Markup:
    """The fraction recovered against the noise that the answers carry."""
    if len(curve) < 2:
        return Markup()
    shown = [(each.law.scale, 100 * each.recovered) for each in curve]
    scales = [scale for scale, _ in shown]
    plot = Plot(Logarithmic(min(scales), max(scales)), SHARES)
    kind, best = curve[0].law.kind, fractions(found.scores.values())["leave_one_out"] or 0.0
    guess = [(scale, 100 * best) for scale in (min(scales), max(scales))]
    drawn = plot.drawn(
        "noise-levels",
        "The fraction recovered against noise",
        "; ".join(f"{each.law}: {percent(each.recovered)}" for each in curve) + ".",
        plot.axes(f"scale of {kind} noise", "per cent recovered"),
        plot.curve(guess, Tone.OTHER),
        plot.curve(shown),
        plot.points(shown),
    )
    return section(
        "noise",
        "How much noise would be enough",
        figure(
            drawn,
            "Each point is one attack on the same queries, with noise of that scale laid over the "
            "true answers once. The level line is the best guess without the person: noise is "
            "enough where the curve has come down to it.",
        ),
    )


def convergence(found: Attacked) -> Markup:
    """The residual after so many steps of the solver."""
    history = [
        (steps, residual) for steps, residual in found.reconstruction.history if residual > 0
    ]
    residuals = [residual for _, residual in history]
    if len(history) < 2 or min(residuals) >= max(residuals):
        return Markup()
    plot = Plot(
        LinearScale.over(steps for steps, _ in history), Logarithmic(min(residuals), max(residuals))
    )
    drawn = plot.drawn(
        "convergence-curve",
        "The residual after each step",
        f"From {residuals[0]:.2g} to {residuals[-1]:.2g} in {history[-1][0]} steps.",
        plot.axes("steps", "relative residual"),
        plot.curve(history),
    )
    caption = "How far the equations are from holding, relative to what was published."
    return section("convergence", "How the solver got there", figure(drawn, caption))


# How sure it is -------------------------------------------------------------------------------


def intervals(found: Attacked, reveal: bool) -> Markup:
    """The intervals, sorted by their width."""
    wide = np.sort(widths(found))
    ended = wide[np.isfinite(wide)]
    if not len(ended) or not found.reconstruction.finished:
        return Markup()
    ranks = np.unique(np.linspace(0, len(ended) - 1, min(len(ended), MOST_POINTS)).astype(int))
    shown = [(int(rank) + 1, size_of(float(ended[rank]), found, reveal)) for rank in ranks]
    plot = Plot(LinearScale.over([len(wide)]), LinearScale.over(width for _, width in shown))
    drawn = plot.drawn(
        "interval-widths",
        "Intervals sorted by their width",
        f"{len(ended)} intervals, half of them at most {shown[len(shown) // 2][1]:g} wide.",
        plot.axes("unknowns, the best known first", "width of the interval"),
        plot.curve(shown),
        plot.points(shown if len(shown) <= 60 else ()),
    )
    level = f"{100 * found.options.confidence:g} %"
    caption = f"Each holds the true value with a probability of {level}, if the noise is as stated."
    if len(ended) < len(wide):
        caption += f" {len(wide) - len(ended):,} more have no end on one side."
    return section("intervals", "How tight the intervals are", figure(drawn, caption))


def certainty(found: Attacked) -> Markup:
    """How likely the whole numbers are right, as the attack itself says."""
    sure = certain(found)
    if not len(sure):
        return Markup()
    cuts = [f"{100 * each:g}" for each in (*SURE, 1)]
    labels = (f"to {cuts[0]}", *(f"{a}–{b}" for a, b in pairwise(cuts)))
    places = np.searchsorted(SURE, sure, side="right").tolist()
    drawn = _counts("sure", "How likely whole numbers are right", "per cent", labels, places)
    caption = "What the attack says of itself, for every unknown that is a whole number."
    return section("certainty", "How sure it is of whole numbers", figure(drawn, caption))


def _counts(
    name: str, title: str, axis: str, labels: tuple[str, ...], places: Iterable[int]
) -> Markup:
    """A histogram of what falls into each of some bins."""
    counts = Counter(places)
    heights = [counts[place] for place in range(len(labels))]
    plot = Plot(Bands(labels), LinearScale.over(heights))
    bars = [Bar(i, height, f"{height:,}" if height else "") for i, height in enumerate(heights)]
    told = ", ".join(f"{label}: {height}" for label, height in zip(labels, heights, strict=True))
    return plot.drawn(name, title, f"{told}.", plot.axes(axis, "unknowns"), plot.bars(bars))


# Attack html ------------------------------------------------------------------------------------


SCOPE = (
    "An attack that fails proves nothing: another may succeed. What follows exactly from the "
    "queries without noise is for casemate audit to decide.",
    "A value that is right is no disclosure by itself: what could be guessed about somebody who is "
    "not in the table is inference.",
)


def as_html(found: Attacked, curve: Sequence[NoisePoint] = (), *, reveal: bool = False) -> str:
    """An attack as a self-contained page; `curve` is what is recovered under other noise."""
    sentence = headline(found)
    return page(
        "casemate attack reconstruct",
        f"{sentence[:1].upper()}{sentence[1:]}.",
        _introduction(found, reveal),
        [
            baselines(found),
            _strata(found),
            noise_levels(found, curve),
            errors(found, reveal),
            intervals(found, reveal),
            certainty(found),
            convergence(found),
            _values(found) if shows_values(found, reveal) else Markup(),
            _refused(found),
            section("assumptions", "What was taken for granted", listing(_assumptions(found))),
        ],
    )


def _introduction(found: Attacked, reveal: bool) -> Markup:
    made, problem = found.reconstruction, found.evidence.problem
    numbers = facts(
        [
            ("solver", made.solver.value),
            ("records", f"{found.records:,}"),
            ("statements", f"{found.queries:,}"),
            ("equations", f"{problem.equations.height:,}"),
            ("unknowns", f"{problem.equations.width:,}"),
            ("CPU seconds", f"{found.seconds:.1f}"),
        ]
    )
    notes = [
        paragraph(
            f"{name}: {verdict(score.comparison, determined(found))}: {gap(score.comparison)}."
        )
        for name, score in found.scores.items()
    ]
    if not found.finished:
        notes.append(paragraph("The work was interrupted: this is the best so far."))
    if not shows_values(found, reveal):
        hidden = "No values are written, and errors and widths are rounded up."
        notes.append(paragraph(hidden, kind="note"))
    return joined([numbers, *notes])


def _strata(found: Attacked) -> Markup:
    rows = [row for name, score in found.scores.items() for row in _rows(name, score)]
    if not rows:
        return Markup()
    header = ("who", "column", "people", "attack", "leave one out", "difference", "interval")
    caption = "The attack and the best guess without the person, for some of the people"
    return section("strata", "For whom it is disclosure", table(caption, header, rows))


def _rows(name: str, score: Score) -> list[tuple[object, ...]]:
    return [
        (
            who,
            name,
            f"{each.targets:,}",
            percent(each.attack),
            percent(each.leave_one_out),
            points(each.difference),
            f"{points(each.low)} to {points(each.high)}",
        )
        for who, each in parts(score)
    ]


def _values(found: Attacked) -> Markup:
    rows = [
        (
            plain(each.record),
            plain(each.person),
            each.column,
            shown_value(each.value),
            *("" if end is None else f"{end:.6g}" for end in (each.low, each.high)),
            "" if each.probability is None else f"{each.probability:.3g}",
        )
        for each in found.secrets
    ]
    header = ("record", "person", "column", "value", "from", "to", "probability")
    caption = f"{counted(len(rows), 'value')} as the attack has them"
    return section("values", "Values", table(caption, header, rows))


def _refused(found: Attacked) -> Markup:
    rows = [
        (f"query {each.query}", each.reason, tag("pre", tag("code", each.text.strip())))
        for each in found.evidence.publication.refused
    ]
    if not rows:
        return Markup()
    caption = f"{counted(len(rows), 'statement')}, or parts of one, that no equation follows from"
    return section("refused", "Not used", table(caption, ("statement", "why", "text"), rows))


def _assumptions(found: Attacked) -> list[str]:
    noise = about_noise(found)
    return [f"{noise[:1].upper()}{noise[1:]}.", *SCOPE]
