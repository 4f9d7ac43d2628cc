import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from casemate.attack.reconstruct.error_law import ErrorLaw
from casemate.attack.reconstruct.intervals import EstimateWithLaw, intervals
from casemate.attack.reconstruct.noise import Kind, NoiseLaw
from casemate.exact import Floats

MANY = 20_000


def estimates(
    centre: Floats, kind: Kind = "gaussian", low: float = -np.inf, high: float = np.inf
) -> EstimateWithLaw:
    """Estimates of deviation 1 that one answer decides."""
    many = len(centre)
    law = ErrorLaw.of(kind, np.ones(many))
    return EstimateWithLaw(centre, np.ones(many), law, np.full(many, low), np.full(many, high))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_without_a_range_it_is_the_estimate_give_or_take_the_quantile(level: float) -> None:
    low, high = intervals(estimates(np.array([-3.0, 0.0, 1e6])), level)
    quantile = stats.norm.ppf((1 + level) / 2)
    assert high - low == pytest.approx(np.full(3, 2 * quantile), abs=1e-6)
    assert (low + high) / 2 == pytest.approx([-3.0, 0.0, 1e6], abs=1e-6)


def test_far_from_the_ends_a_range_changes_nothing() -> None:
    free, boxed = (intervals(estimates(np.zeros(1), low=-end, high=end), 0.9) for end in (99, 6))
    assert free[0] == pytest.approx(boxed[0]) and free[1] == pytest.approx(boxed[1])


@given(
    st.sampled_from(["laplace", "gaussian", "uniform"]),
    st.floats(-50, 50),
    st.floats(0, 20),
    st.floats(0.5, 0.99),
)
def test_an_interval_is_within_the_range_and_never_empty(
    kind: Kind, centre: float, span: float, level: float
) -> None:
    low, high = intervals(estimates(np.array([centre]), kind, 0.0, span), level)
    assert 0 <= low[0] <= high[0] <= span
    assert low[0] <= min(max(centre, 0.0), span) <= high[0]


def test_a_range_with_one_open_end_is_used_at_the_other() -> None:
    low, high = intervals(estimates(np.array([-9.0, 9.0]), low=0.0), 0.9)
    assert low[0] == 0 and high[0] < 0.01
    assert high[1] - low[1] == pytest.approx(2 * stats.norm.ppf(0.95), abs=1e-6)


@pytest.mark.parametrize("level", [0.49, 1.0, np.nan])
def test_a_level_that_is_none_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"at least 0\.5 and less than 1"):
        intervals(estimates(np.zeros(1)), level)


# True with a stated probability -----------------------------------------------------------------


def misses(kind: Kind, truth: float, random: np.random.Generator, factor: float = 1.0) -> int:
    """How many 90 % intervals in [0, 4] miss the truth if deviations are too small by a factor."""
    law = NoiseLaw(kind, 1.0)
    noise = law.laid_over(np.zeros(MANY), random) / law.deviation / factor
    low, high = intervals(estimates(truth + noise, kind, 0.0, 4.0), 0.9)
    return int(((truth < low - 1e-9) | (truth > high + 1e-9)).sum())


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "uniform"])
@pytest.mark.parametrize("truth", [0.0, 0.1, 0.8, 2.0, 3.5, 4.0])
def test_intervals_cover_at_their_level_wherever_in_the_range_the_truth_is(
    kind: Kind, truth: float, seed: int
) -> None:
    missed = misses(kind, truth, np.random.default_rng([seed, round(10 * truth)]))
    assert_rate_at_most(missed, MANY, 0.1)
    assert_rate_at_most(MANY - missed, MANY, 0.9)


@pytest.mark.parametrize("truth", [0.0, 2.0])
def test_the_test_above_would_notice_deviations_understated_by_30_percent(
    truth: float, seed: int
) -> None:
    missed = misses("gaussian", truth, np.random.default_rng(seed), factor=0.7)
    with pytest.raises(AssertionError):
        assert_rate_at_most(missed, MANY, 0.1)


def test_intervals_that_are_cut_off_at_the_range_cover_too_often(seed: int) -> None:
    """Why they are not cut off: an empty one is moved to the end, where the truth may be."""
    random = np.random.default_rng(seed)
    centre, quantile = random.normal(size=MANY), stats.norm.ppf(0.95)
    covered = int((np.clip(centre - quantile, 0, 4) <= 0).sum())
    with pytest.raises(AssertionError):
        assert_rate_at_most(covered, MANY, 0.9)
