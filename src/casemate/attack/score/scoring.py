"""How good a reconstruction is, and how much of that is disclosure.

Most of what an attack gets right may be what anybody would have guessed. So the fraction right
stands beside four baselines, and the difference to the best of them, the prediction from the
release without the target, has an interval; for all targets, for those whose value is rare or
common, and for those whose public values are unique or not.

Source     R. G. Newcombe, "Improved confidence intervals for the difference between binomial
           proportions based on paired data", Statistics in Medicine 17 (1998), method 10: the two
           score intervals of Wilson, joined with the correlation of the pairs.
Guarantee  Over the draw of the targets the interval holds the true difference with about its
           confidence, at small counts as well:
           `test_of_thirty_pairs_the_interval_holds_the_truth_as_often_as_it_says`.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from casemate.attack.features import Features, Places
from casemate.attack.reconstruct.problem import Problem
from casemate.attack.reconstruct.reconstruction import Reconstruction
from casemate.attack.score.leave_one_out import Report, Solve, leave_one_out, solve_squares
from casemate.attack.score.predictor import Baselines, Rule, majority, marginal, prior_mean
from casemate.attack.subjects import Bits, Subjects
from casemate.exact import Floats


@dataclass(frozen=True)
class PairedComparison:
    """Fractions right of the same targets, their difference, and between what the latter lies."""

    targets: int
    attack: float
    leave_one_out: float
    difference: float
    low: float
    high: float


class PairedOutcomes(NamedTuple):
    """How many targets both, the one, the other, and neither got right."""

    both: int
    one: int
    other: int
    neither: int


def compare_pairs(attack: Bits, leave_one_out: Bits, confidence: float) -> PairedComparison:
    """Compare two verdicts on each of some targets; there must be one at least."""
    pairs = PairedOutcomes(
        int((attack & leave_one_out).sum()),
        int((attack & ~leave_one_out).sum()),
        int((~attack & leave_one_out).sum()),
        int((~attack & ~leave_one_out).sum()),
    )
    first, second = float(attack.mean()), float(leave_one_out.mean())
    difference = (pairs.one - pairs.other) / sum(pairs)
    return PairedComparison(
        len(attack), first, second, difference, *paired_interval(pairs, confidence)
    )


def paired_interval(pairs: PairedOutcomes, confidence: float) -> tuple[float, float]:
    """Between what the difference of the two true fractions lies.

    >>> [round(end, 4) for end in paired_interval(PairedOutcomes(20, 12, 2, 16), 0.95)]
    [0.0562, 0.3292]
    """
    count = sum(pairs)
    first, second = pairs.both + pairs.one, pairs.both + pairs.other
    down, up = _wilson(first, count, confidence)
    other_down, other_up = _wilson(second, count, confidence)
    shared = _correlation(pairs)
    middle = (pairs.one - pairs.other) / count
    return (
        max(-1.0, middle - _join_widths(down, other_up, shared)),
        min(1.0, middle + _join_widths(up, other_down, shared)),
    )


def _join_widths(one: float, other: float, shared: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * shared * one * other + other * other))


def _wilson(part: int, count: int, confidence: float) -> tuple[float, float]:
    """How far below and above its observed value a fraction may be, by Wilson's score."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = part / count, z * z / count
    middle = share + square / 2
    half = z * math.sqrt(share * (1 - share) / count + square / (4 * count))
    low = 0.0 if part == 0 else (middle - half) / (1 + square)
    high = 1.0 if part == count else (middle + half) / (1 + square)
    return share - low, high - share


def _correlation(pairs: PairedOutcomes) -> float:
    """The pairs' correlation; where it is above 0, corrected for small counts."""
    both, one, other, neither = pairs
    product = (both + one) * (other + neither) * (both + other) * (one + neither)
    if product == 0:
        return 0.0
    excess: float = both * neither - one * other
    if excess > 0:
        excess = max(0.0, excess - sum(pairs) / 2)
    return excess / math.sqrt(product)


# The score --------------------------------------------------------------------------------------


ERROR_QUANTILES = (0.5, 0.9, 0.99, 1.0)
TOLERANCE_SHARE = 0.01
"""The tolerance of numbers that are not whole, as a share of their known range."""


@dataclass(frozen=True)
class Stratum:
    """Some of the targets: by what they were chosen, which they are, and how they compare."""

    by: str
    which: str
    comparison: PairedComparison


@dataclass(frozen=True)
class Score:
    """What a reconstruction got right, beside what would be right without it.

    `records` is how many secrets were judged: all that were not known beforehand. `recovered` is
    the fraction right, exactly for whole numbers and within the tolerance for others; `within` the
    fraction within the tolerance as it stands; `quantiles` those of the absolute error (1 is the
    largest). `coverage` is the fraction of true values inside their intervals, of those that have
    one. `comparison` is about the targets: a sample of the people, one record of each.
    `predictors` counts the ways in which targets were predicted.
    """

    records: int
    tolerance: float
    recovered: float
    within: float
    quantiles: Mapping[float, float]
    coverage: float | None
    baseline: Baselines
    confidence: float
    comparison: PairedComparison
    strata: tuple[Stratum, ...]
    predictors: Mapping[str, int]


def score(
    reconstruction: Reconstruction,
    truth: Floats,
    *,
    problem: Problem,
    random: np.random.Generator,
    subjects: Subjects | None = None,
    features: Features | None = None,
    tolerance: float | None = None,
    confidence: float = 0.90,
    targets: int = 200,
    solve: Solve = solve_squares,
    together: int | None = None,
    progress: Report | None = None,
) -> Score:
    """Judge a reconstruction of the problem by the true value of every unknown.

    `subjects` says whose the unknowns are; without it each is a record and a person of its own,
    whose public columns are `features`. The tolerance is half of 1 for whole numbers, and a
    hundredth of the known range for others, unless it is given. `solve` reconstructs the others
    from the release without a target, and `together` targets leave at a time.
    """
    width = problem.equations.width
    found = subjects or Subjects.alone(width, features)
    _check_lengths(width, len(reconstruction.values), len(truth), len(found.record))
    _check_settings(truth, confidence, targets)
    judged = _Verdicts.of(reconstruction, truth, problem, found, tolerance)
    chosen = _sample_targets(judged.open, found.people, targets, random)
    predicted = leave_one_out(
        problem,
        truth,
        found,
        judged.rule,
        chosen,
        random=random,
        solve=solve,
        together=together,
        progress=progress,
    )
    without = judged.rule.right(predicted.values, judged.truth[chosen])
    attack, true = judged.right[chosen], judged.truth[judged.open]
    mean, source = prior_mean(problem, truth, found, judged.rule, judged.open)
    baselines = (majority(true, judged.rule), marginal(true, judged.rule))
    return Score(
        int(judged.open.sum()),
        judged.rule.tolerance,
        float(judged.right[judged.open].mean()),
        float((judged.error[judged.open] <= judged.rule.reach).mean()),
        judged.quantiles,
        judged.coverage,
        Baselines(mean, source, *baselines, float(without.mean())),
        confidence,
        compare_pairs(attack, without, confidence),
        tuple(_strata(attack, without, _divisions(judged, found, chosen), confidence)),
        dict(Counter(predicted.ways)),
    )


def _check_lengths(width: int, values: int, true: int, owned: int) -> None:
    if not width == values == true == owned:
        raise ValueError(
            f"there are {width} unknowns, {values} reconstructed values, {true} true ones and "
            f"{owned} that are somebody's; give one of each for every unknown"
        )


def _check_settings(truth: Floats, confidence: float, targets: int) -> None:
    if not np.isfinite(truth).all():
        raise ValueError("a true value is missing; a reconstruction is scored where all are known")
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence must lie between 0 and 1, got {confidence}")
    if targets < 1:
        raise ValueError(f"there must be at least one target, got {targets}")


@dataclass(frozen=True, eq=False, repr=False)
class _Verdicts:
    """The verdict on every record; `open` are those whose value was not known beforehand."""

    rule: Rule
    truth: Floats
    right: Bits
    error: Floats
    open: Bits
    coverage: float | None

    @classmethod
    def of(
        cls,
        reconstruction: Reconstruction,
        truth: Floats,
        problem: Problem,
        subjects: Subjects,
        tolerance: float | None,
    ) -> "_Verdicts":
        free = subjects.scored & (problem.low < problem.high)
        if not free.any():
            raise ValueError("every value was known beforehand; there is nothing to score")
        whole, open_ = kinds_and_records(problem, subjects)
        given = _tolerance(problem, free, bool(whole.all())) if tolerance is None else tolerance
        rule = Rule(whole, given)
        values, true = subjects.by_record(reconstruction.values), subjects.by_record(truth)
        return cls(
            rule,
            true,
            rule.right(values, true),
            np.abs(values - true).max(axis=1),
            open_,
            _coverage(reconstruction, truth, free),
        )

    @property
    def quantiles(self) -> dict[float, float]:
        """Of the absolute error."""
        found = np.quantile(self.error[self.open], ERROR_QUANTILES)
        return dict(zip(ERROR_QUANTILES, found.tolist(), strict=True))


def kinds_and_records(problem: Problem, subjects: Subjects) -> tuple[Bits, Bits]:
    """Which kinds of a secret's numbers are whole, and which records were not known beforehand."""
    free = subjects.scored & (problem.low < problem.high)
    whole = subjects.by_record(problem.whole.astype(np.float64), 1.0).min(axis=0) > 0
    return whole, subjects.by_record(free.astype(np.float64)).max(axis=1) > 0


def _tolerance(problem: Problem, free: Bits, whole: bool) -> float:
    """What counts as right unless it is said; it depends on nothing private."""
    if whole:
        return 0.5
    range_ = float(np.median(problem.high[free] - problem.low[free]))
    if not np.isfinite(range_):
        raise ValueError("the values are not whole and have no known range; give a tolerance")
    return TOLERANCE_SHARE * range_


def _coverage(reconstruction: Reconstruction, truth: Floats, free: Bits) -> float | None:
    low, high = reconstruction.low, reconstruction.high
    told = free & (np.isfinite(low) | np.isfinite(high))
    inside = (low <= truth) & (truth <= high)
    return float(inside[told].mean()) if told.any() else None


def _sample_targets(open_: Bits, people: Places, most: int, random: np.random.Generator) -> Places:
    """Some people at random, and one record of each."""
    shuffled = random.permutation(np.flatnonzero(open_))
    _, first = np.unique(people[shuffled], return_index=True)
    kept = random.permutation(first)[:most]
    return np.sort(shuffled[kept]).astype(np.int64)


# Some of the targets --------------------------------------------------------------------------


def _divisions(
    judged: _Verdicts, subjects: Subjects, chosen: Places
) -> Iterator[tuple[str, str, str, Bits]]:
    """By what targets are divided, the names of the two parts, and who is in the first."""
    frequency = judged.rule.frequency(judged.truth[judged.open])
    common = np.zeros(len(judged.open))
    common[judged.open] = frequency
    yield "prevalence", "rare", "common", common[chosen] < np.median(frequency)
    if subjects.features.shared:
        alone = subjects.features.unique[subjects.records[chosen]]
        yield "uniqueness", "unique", "shared", alone


def _strata(
    attack: Bits,
    without: Bits,
    divisions: Iterator[tuple[str, str, str, Bits]],
    confidence: float,
) -> Iterator[Stratum]:
    """Each part that has anybody in it."""
    for by, first, second, inside in divisions:
        for which, part in ((first, inside), (second, ~inside)):
            if part.any():
                comparison = compare_pairs(attack[part], without[part], confidence)
                yield Stratum(by, which, comparison)
