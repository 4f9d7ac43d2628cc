import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from attack.releases import BIT, Release, harmless, independent, reconstruct_problem, subsets
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.features import Features
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.reconstruct.reconstruction import Reconstruction
from casemate.attack.score import score
from casemate.attack.score.predictor import PriorMean
from casemate.attack.score.scoring import PairedOutcomes, Score, paired_interval
from casemate.attack.subjects import Subjects


def scored(release: Release, made: Reconstruction | None = None, **options: Any) -> Score:
    """The score of a plain reconstruction, or of another one."""
    found = made or reconstruct_problem(release.problem)
    given: dict[str, Any] = {"features": release.features, "targets": 60}
    random = np.random.default_rng(7)
    return score(found, release.truth, problem=release.problem, random=random, **(given | options))


# Exactly true ---------------------------------------------------------------------------------


def test_what_follows_from_public_columns_is_no_disclosure() -> None:
    """The attack is always right, and so is whoever leaves the target out."""
    found = scored(harmless(200, np.random.default_rng(1)))
    assert found.recovered == found.within == 1
    assert found.comparison.attack == found.comparison.leave_one_out == 1
    assert found.baseline.leave_one_out == 1
    assert found.comparison.low < 0 < found.comparison.high


def test_what_follows_from_the_release_alone_is() -> None:
    """The twin: the same public columns, and a secret that has nothing to do with them."""
    found = scored(independent(200, np.random.default_rng(1)))
    assert found.recovered == 1
    assert found.comparison.low > 0


def test_the_figures_are_those_of_the_definition() -> None:
    truth, shifts = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 0.1, 0.2, 0.4])
    problem = Problem.of(np.eye(4), truth, Prior(low=0.0, high=10.0))
    made = replace(reconstruct_problem(problem, 0.25), values=truth + shifts)
    found = scored(Release(problem, Features(4), truth), made, tolerance=0.2)
    assert (found.records, found.recovered, found.within) == (4, 0.75, 0.75)
    assert found.quantiles[0.5] == pytest.approx(0.15)
    assert found.quantiles[1.0] == pytest.approx(0.4)
    assert found.coverage == 1.0
    assert (found.baseline.prior_mean, found.baseline.source) == (0.0, PriorMean.RANGE)
    assert (found.baseline.majority, found.baseline.marginal) == (0.25, 0.25)


def test_coverage_counts_the_true_values_inside_intervals_that_say_something() -> None:
    release = harmless(20, np.random.default_rng(0))
    found = reconstruct_problem(release.problem)
    low, high = found.low.copy(), found.high.copy()
    low[:10], high[:10] = -np.inf, np.inf
    low[10:15], high[10:15] = 5.0, 6.0
    made = replace(found, low=low, high=high)
    nothing = replace(made, low=np.full(20, -np.inf), high=np.full(20, np.inf))
    assert scored(release, made, targets=1).coverage == 0.5
    assert scored(release, nothing, targets=1).coverage is None


def test_values_known_beforehand_are_not_scored() -> None:
    truth = np.array([1.0, 0.0, 0.0, 1.0])
    problem = Problem.of(np.eye(4), truth, replace(BIT, known={0: 1.0, 3: 1.0}))
    features = harmless(4, np.random.default_rng(0)).features
    found = scored(Release(problem, features, truth))
    assert (found.records, found.comparison.targets) == (2, 2)
    assert found.baseline.majority == 1
    everything = replace(BIT, known=dict(enumerate(truth.tolist())))
    with pytest.raises(ValueError, match="known beforehand"):
        scored(Release(Problem.of(np.eye(4), truth, everything), features, truth))


def test_targets_are_divided_by_prevalence_and_by_uniqueness() -> None:
    rng = np.random.default_rng(2)
    release = independent(100, rng)
    found = scored(release, targets=100)
    parts = {(each.by, each.which): each.comparison for each in found.strata}
    rare, common = parts["prevalence", "rare"], parts["prevalence", "common"]
    assert rare.targets == int(release.truth.sum())
    assert rare.targets + common.targets == 100
    assert rare.leave_one_out < common.leave_one_out
    assert parts["uniqueness", "shared"].targets == 100
    assert ("uniqueness", "unique") not in parts


def test_of_each_person_one_record_is_a_target() -> None:
    release = subsets(60, 120, np.tile([0.0, 1.0], 30), np.random.default_rng(4))
    subjects = Subjects.alone(60, release.features, np.arange(60) // 3)
    found = scored(release, subjects=subjects)
    assert (found.records, found.comparison.targets) == (60, 20)


# What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"truth": np.zeros(5)}, "one of each for every unknown"),
        ({"truth": np.full(6, np.nan)}, "a true value is missing"),
        ({"confidence": 1.0}, "confidence"),
        ({"targets": 0}, "at least one target"),
        ({"problem": Problem.of(np.eye(6), np.zeros(6))}, "give a tolerance"),
    ],
)
def test_what_does_not_fit_together_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    release, random = harmless(6, np.random.default_rng(0)), np.random.default_rng(0)
    given: dict[str, Any] = {"truth": release.truth, "problem": release.problem}
    with pytest.raises(ValueError, match=sentence):
        score(reconstruct_problem(release.problem), random=random, **(given | wrong))


def test_the_tolerance_is_a_hundredth_of_the_known_range() -> None:
    bounded = Problem.of(np.eye(2), [1.0, 2.0], Prior(low=0.0, high=10.0))
    assert scored(Release(bounded, Features(2), np.array([1.0, 2.0]))).tolerance == 0.1


# True with a stated probability ---------------------------------------------------------------


def test_where_public_columns_say_nothing_leave_one_out_is_the_majority(seed: int) -> None:
    """A bit that one in four has: whoever leaves the target out is wrong once in four at least."""
    found = scored(independent(150, np.random.default_rng(seed)), targets=150)
    wrong = round(150 * (1 - found.baseline.leave_one_out))
    assert_rate_at_most(150 - wrong, 150, 0.75)
    assert_rate_at_most(wrong, 150, 0.25 + 0.05)
    assert found.recovered == 1
    with pytest.raises(AssertionError):  # a target that stayed
        assert_rate_at_most(round(150 * found.recovered), 150, 0.75)


CONFIDENCE = 0.9
numbers = st.integers(0, 60)
counts = st.builds(PairedOutcomes, numbers, numbers, numbers, numbers).filter(any)

# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "ends"),
    [((20, 12, 2, 16), (0.0562, 0.3292)), ((0, 0, 0, 50), (-0.07135, 0.07135))],
)
def test_the_interval_is_newcombes_tenth(
    cells: tuple[int, int, int, int], ends: tuple[float, float]
) -> None:
    """In the second case both fractions have Wilson's interval of 0 of 50."""
    found = paired_interval(PairedOutcomes(*cells), 0.95)
    np.testing.assert_allclose(found, ends, atol=5e-5)


@given(counts)
def test_the_interval_holds_the_observed_difference_and_stays_possible(
    cells: PairedOutcomes,
) -> None:
    low, high = paired_interval(cells, CONFIDENCE)
    observed = (cells[1] - cells[2]) / sum(cells)
    assert -1 <= low <= observed + 1e-12
    assert observed - 1e-12 <= high <= 1


@lru_cache
def intervals(count: int) -> list[tuple[PairedOutcomes, float, float]]:
    """Every table of so many pairs, and its interval."""
    cells = [
        PairedOutcomes(a, b, c, count - a - b - c)
        for a in range(count + 1)
        for b in range(count + 1 - a)
        for c in range(count + 1 - a - b)
    ]
    return [(each, *paired_interval(each, CONFIDENCE)) for each in cells]


def coverage(count: int, chances: tuple[float, float, float, float]) -> float:
    """The probability that the interval holds the difference, every table of pairs counted."""
    true, found = chances[1] - chances[2], 0.0
    for cells, low, high in intervals(count):
        if low - 1e-12 <= true <= high + 1e-12:
            ways = math.factorial(count) // math.prod(map(math.factorial, cells))
            found += ways * math.prod(p**k for p, k in zip(chances, cells, strict=True))
    return found


CHANCES = [
    (0.5, 0.0, 0.0, 0.5),
    (0.9, 0.05, 0.05, 0.0),
    (0.5, 0.5, 0.0, 0.0),
    (0.25, 0.25, 0.25, 0.25),
    (0.6, 0.3, 0.0, 0.1),
    (0.1, 0.7, 0.1, 0.1),
]


@pytest.mark.parametrize("chances", CHANCES)
def test_of_thirty_pairs_the_interval_holds_the_truth_as_often_as_it_says(
    chances: tuple[float, float, float, float],
) -> None:
    assert coverage(30, chances) >= CONFIDENCE - 0.02


# True with a stated probability ---------------------------------------------------------------


def misses(chances: list[float], width: float, rng: np.random.Generator) -> int:
    """How often intervals of 200 pairs, made narrower, miss the true difference in 4,000 trials."""
    true, missed = chances[1] - chances[2], 0
    for cells in rng.multinomial(200, chances, 4_000):
        low, high = paired_interval(PairedOutcomes(*cells.tolist()), CONFIDENCE)
        middle = (low + high) / 2
        missed += abs(true - middle) > width * (high - low) / 2
    return missed


@pytest.mark.parametrize("chances", [[0.5, 0.3, 0.1, 0.1], [0.05, 0.9, 0.0, 0.05]])
def test_of_two_hundred_targets_the_interval_misses_as_seldom_as_it_says(
    chances: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    assert_rate_at_most(misses(chances, 1.0, rng), 4_000, 1 - CONFIDENCE + 0.01)
    with pytest.raises(AssertionError):  # narrower intervals
        assert_rate_at_most(misses(chances, 0.7, rng), 4_000, 1 - CONFIDENCE + 0.01)
