from dataclasses import replace

import numpy as np
import pytest
from attack.releases import BIT, Release, harmless, independent, reconstructed, subsets
from chance import assert_rate_at_most
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.score import score
from casemate.attack.score.predictor import PriorMean
from casemate.attack.score.scoring import Score
from casemate.attack.subjects import Subjects


def scored(release: Release, targets: int = 60, tolerance: float | None = None) -> Score:
    return score(
        reconstructed(release.problem),
        release.truth,
        problem=release.problem,
        features=release.features,
        targets=targets,
        tolerance=tolerance,
        random=np.random.default_rng(7),
    )


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
    truth = np.array([0.0, 1.0, 2.0, 3.0])
    problem = Problem.of(np.eye(4), truth, Prior(low=0.0, high=10.0))
    found = score(
        replace(reconstructed(problem, 0.25), values=truth + np.array([0.0, 0.1, 0.2, 0.4])),
        truth,
        problem=problem,
        tolerance=0.2,
        random=np.random.default_rng(0),
    )
    assert (found.records, found.recovered, found.within) == (4, 0.75, 0.75)
    assert found.quantiles[0.5] == pytest.approx(0.15)
    assert found.quantiles[1.0] == pytest.approx(0.4)
    assert found.coverage == 1.0
    assert (found.baseline.prior_mean, found.baseline.source) == (0.0, PriorMean.RANGE)
    assert (found.baseline.majority, found.baseline.marginal) == (0.25, 0.25)


def test_whole_numbers_are_recovered_by_rounding_and_within_by_the_tolerance() -> None:
    truth = np.array([0.0, 1.0, 1.0])
    problem = Problem.of(np.eye(3), [0.3, 0.9, 0.4], BIT)
    found = scored(Release(problem, harmless(3, np.random.default_rng(0)).features, truth), 3, 0.2)
    assert found.recovered == pytest.approx(2 / 3)
    assert found.within == pytest.approx(1 / 3)


def test_coverage_counts_the_true_values_inside_intervals_that_say_something() -> None:
    release = harmless(20, np.random.default_rng(0))
    found = reconstructed(release.problem)
    low, high = found.low.copy(), found.high.copy()
    low[:10], high[:10] = -np.inf, np.inf
    low[10:15], high[10:15] = 5.0, 6.0
    made = replace(found, low=low, high=high)
    nothing = replace(made, low=np.full(20, -np.inf), high=np.full(20, np.inf))
    problem, random = release.problem, np.random.default_rng(0)
    assert score(made, release.truth, problem=problem, random=random, targets=1).coverage == 0.5
    assert score(nothing, release.truth, problem=problem, random=random).coverage is None


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
    release = independent(160, rng)
    found = scored(release, targets=160)
    parts = {(each.by, each.which): each.comparison for each in found.strata}
    rare, common = parts["prevalence", "rare"], parts["prevalence", "common"]
    assert rare.targets == int(release.truth.sum())
    assert rare.targets + common.targets == 160
    assert rare.leave_one_out < common.leave_one_out
    assert parts["uniqueness", "shared"].targets == 160
    assert ("uniqueness", "unique") not in parts


def test_of_each_person_one_record_is_a_target() -> None:
    release = subsets(60, 120, np.tile([0.0, 1.0], 30), np.random.default_rng(4))
    subjects = Subjects.alone(60, release.features, np.arange(60) // 3)
    found = score(
        reconstructed(release.problem),
        release.truth,
        problem=release.problem,
        subjects=subjects,
        random=np.random.default_rng(0),
    )
    assert (found.records, found.comparison.targets) == (60, 20)


def test_the_same_seed_gives_the_same_score() -> None:
    release = independent(80, np.random.default_rng(3))
    assert scored(release, 20) == scored(release, 20)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 20))
def test_every_fraction_lies_between_0_and_1(seed: int, count: int, queries: int) -> None:
    rng = np.random.default_rng(seed)
    release = subsets(count, queries, rng.integers(0, 2, count).astype(np.float64), rng)
    found = scored(release, 3)
    base = found.baseline
    fractions = [found.recovered, found.within, base.majority, base.marginal, base.leave_one_out]
    assert all(0 <= each <= 1 for each in fractions)
    assert base.prior_mean is not None
    assert 0 <= base.prior_mean <= 1
    for each in (found.comparison, *(stratum.comparison for stratum in found.strata)):
        assert -1 <= each.low <= each.difference + 1e-12
        assert each.difference - 1e-12 <= each.high <= 1


# What is refused ------------------------------------------------------------------------------


def test_what_does_not_fit_together_is_refused() -> None:
    release = harmless(6, np.random.default_rng(0))
    made, random = reconstructed(release.problem), np.random.default_rng(0)
    with pytest.raises(ValueError, match="one of each for every unknown"):
        score(made, release.truth[:5], problem=release.problem, random=random)
    with pytest.raises(ValueError, match="a true value is missing"):
        score(made, np.full(6, np.nan), problem=release.problem, random=random)
    with pytest.raises(ValueError, match="confidence"):
        score(made, release.truth, problem=release.problem, random=random, confidence=1.0)
    with pytest.raises(ValueError, match="at least one target"):
        score(made, release.truth, problem=release.problem, random=random, targets=0)


def test_numbers_of_any_size_need_a_tolerance() -> None:
    problem = Problem.of(np.eye(2), [1.0, 2.0])
    made, truth = reconstructed(problem), np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="give a tolerance"):
        score(made, truth, problem=problem, random=np.random.default_rng(0))
    bounded = Problem.of(np.eye(2), [1.0, 2.0], Prior(low=0.0, high=10.0))
    assert score(made, truth, problem=bounded, random=np.random.default_rng(0)).tolerance == 0.1


# True with a stated probability ---------------------------------------------------------------


def test_where_public_columns_say_nothing_leave_one_out_is_the_majority(seed: int) -> None:
    """A bit that one in four has: whoever leaves the target out is wrong once in four at least."""
    found = scored(independent(300, np.random.default_rng(seed)), targets=300)
    wrong = round(300 * (1 - found.baseline.leave_one_out))
    assert_rate_at_most(300 - wrong, 300, 0.75)
    assert_rate_at_most(wrong, 300, 0.25 + 0.05)
    assert found.recovered == 1


def test_the_test_above_would_notice_a_target_that_stayed(seed: int) -> None:
    release = independent(300, np.random.default_rng(seed))
    right = round(300 * scored(release).recovered)
    with pytest.raises(AssertionError):
        assert_rate_at_most(right, 300, 0.75)
