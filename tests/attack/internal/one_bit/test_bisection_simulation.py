"""The compiled simulator against the plain learner, and the figures of OnlineBisection."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from attack.bisection_streams import Settings, once, stream_setting
from chance import assert_rate_at_most
from oracles.one_bit_play import play

from casemate.attack.one_bit import OnlineBisection
from casemate.attack.one_bit.bisection import (
    PRINTED,
    TIGHT,
    BisectionConstants,
    BisectionSearch,
    Errata,
)
from casemate.attack.one_bit.bisection_simulation import feed, simulate, simulate_trail
from casemate.attack.one_bit.laws import Gaussian, Laplace, Law, Truncated, Uniform
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import Stream, near_basis
from casemate.papers import batch_claim, error_bound, loss_bound

ALONE = BisectionConstants(observations=2.0, exact_gap=True, shrink_together=False)
QUICK = BisectionConstants(observations=2.0, exact_gap=True)


@dataclass
class Replayed:
    """An oracle whose noise is written down."""

    secret: Floats
    noise: Floats
    calls: int = field(default=0)

    def above(self, q: Floats, threshold: float) -> bool:
        self.calls += 1
        return bool(self.secret @ q + self.noise[self.calls - 1] > threshold)


def world(seed: int, dimension: int, directions: int, count: int) -> tuple[Stream, Floats, Floats]:
    rng = np.random.default_rng([seed, dimension, directions])
    stream = near_basis(rng, dimension, directions, count)
    return stream, rng.random(dimension), rng.uniform(-0.2, 0.2, count)


# The kernel is the plain version ------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        (Errata(), PRINTED, 4_000),
        (Errata(), QUICK, 4_000),
        (Errata(), QUICK, None),
        (Errata(), ALONE, 4_000),
        (Errata(), ALONE, None),
        (Errata(short_queries_left_out=False), QUICK, 4_000),
        (Errata.as_printed(), QUICK, 4_000),
    ],
)
@pytest.mark.parametrize(("dimension", "directions"), [(2, 1), (8, 3)])
def test_the_kernel_is_the_plain_version(
    how: tuple[Errata, BisectionConstants, int | None], dimension: int, directions: int, seed: int
) -> None:
    """Bits, counts and boxes are the same; answers and thresholds are to 1e-12."""
    reading, constants, horizon = how
    stream, secret, noise = world(seed, dimension, directions, 4_000)
    law = Uniform(0.2)
    plain = OnlineBisection(
        dimension,
        law,
        basis=stream.basis,
        horizon=horizon,
        reading=reading,
        constants=constants,
    )
    slow = play(plain, Replayed(secret, noise), stream.queries)
    search = BisectionSearch(
        dimension, directions, law, horizon=horizon, reading=reading, constants=constants
    )
    fast = simulate_trail(search, stream.coordinates, stream.basis @ secret, noise)
    assert search.shrinks > 1
    np.testing.assert_array_equal(fast.above, slow.above)
    np.testing.assert_allclose(fast.answers, slow.answers, atol=1e-12)
    np.testing.assert_allclose(fast.thresholds, slow.thresholds, atol=1e-12)
    for state in ("low", "high", "above", "seen"):
        np.testing.assert_array_equal(
            getattr(search.box, state), getattr(plain.search.box, state), err_msg=state
        )


@pytest.mark.parametrize("horizon", [None, 5_000])
def test_a_stream_in_blocks_is_the_same_stream(horizon: int | None, seed: int) -> None:
    stream, secret, noise = world(seed, 8, 2, 5_000)
    found = []
    for cuts in ([], [1, 700, 4_321]):
        search = BisectionSearch(8, 2, Uniform(0.2), horizon=horizon, constants=QUICK)
        blocks = zip(np.split(stream.coordinates, cuts), np.split(noise, cuts), strict=True)
        parts = [feed(search, x, stream.basis @ secret, drawn) for x, drawn in blocks]
        moments = [moment for _, shrinks in parts for moment in shrinks]
        found.append((sum(errors for errors, _ in parts), moments, search.box.low.tolist()))
    assert found[0][0] == pytest.approx(found[1][0])
    assert found[0][1:] == found[1][1:]
    assert len(found[0][1]) > 3


def test_the_error_is_the_mean_distance_of_the_answers(seed: int) -> None:
    stream, secret, _ = world(seed, 8, 2, 3_000)
    coordinates = stream.basis @ secret
    runs = BisectionSearch(8, 2, None, horizon=3_000), BisectionSearch(8, 2, None, horizon=3_000)
    trail = simulate_trail(runs[0], stream.coordinates, coordinates, np.zeros(3_000))
    rng = np.random.default_rng(seed)
    run = simulate(runs[1], stream.coordinates, coordinates, None, rng)
    truth = stream.coordinates @ coordinates
    assert run.error == pytest.approx(float(np.abs(trail.answers - truth).mean()))
    assert (run.queries, len(run.shrinks)) == (3_000, runs[0].shrinks)


@pytest.mark.parametrize(
    ("coordinates", "secret", "noise"),
    [((5, 3), 2, 5), ((5, 1), 2, 5), ((5, 2), 3, 5), ((5, 2), 2, 4), ((5, 2, 1), 2, 5)],
)
def test_arrays_that_do_not_fit_are_refused(
    coordinates: tuple[int, ...], secret: int, noise: int
) -> None:
    search = BisectionSearch(8, 2, None, horizon=9)
    with pytest.raises(ValueError, match="need 2 coordinates"):
        feed(search, np.ones(coordinates), np.ones(secret), np.ones(noise))


# Figures ------------------------------------------------------------------------------------------


@pytest.mark.theorem("000: Algorithm 1")
def test_ten_shrinks_and_a_side_of_4505_after_a_million_queries(seed: int) -> None:
    runs = [once((16, 2, 0.1, 10**6), [seed, run]) for run in range(3)]
    assert {len(run.shrinks) for run in runs} == {10}
    assert {round(run.side, 4) for run in runs} == {0.4505}
    assert np.mean([run.error for run in runs]) == pytest.approx(0.155, abs=0.02)
    assert not any(run.lost for run in runs)


@pytest.mark.parametrize(
    "settings", [(16, 2, 0.1, 10**5), (16, 2, 0.01, 10**5), (64, 4, 0.01, 10**5)]
)
def test_tight_constants_err_less_than_a_third_as_much(settings: Settings, seed: int) -> None:
    loose, tight = (once(settings, [seed], constants=each) for each in (PRINTED, TIGHT))
    assert tight.error < 0.33 * loose.error
    assert not tight.lost


def test_the_first_shrink_comes_after_480_u_squared_d_log_t_queries_near_each(seed: int) -> None:
    run = once((16, 2, 0.2, 10**5), [seed])
    expected = 2 * 480 * 0.2**2 * 16 * math.log(10**5)
    assert expected < run.shrinks[0] < 1.1 * expected


@pytest.mark.theorem("000: Theorem 2.1")
@pytest.mark.parametrize(
    ("settings", "constants"),
    [((16, 2, 0.1, 10**5), PRINTED), ((16, 2, 0.1, 10**5), TIGHT), ((64, 4, 0.01, 10**5), TIGHT)],
)
def test_the_error_is_within_the_bound_and_the_bound_says_something(
    settings: Settings, constants: BisectionConstants, seed: int
) -> None:
    dimension, directions, u, count = settings
    longest = math.sqrt(dimension / directions) * 1.001
    law, shape = Uniform(dimension * u), (dimension, directions, count)
    run = once(settings, [seed], constants=constants)
    bound = error_bound(stream_setting(shape, law, 1 / directions, constants, longest))
    assert bound / 40 < run.error < bound


def lost(settings: Settings, law: Law | None, seed: int, reading: Errata, runs: int = 30) -> int:
    return sum(
        once(settings, [seed, run], law=law, constants=TIGHT, reading=reading).lost
        for run in range(runs)
    )


@pytest.mark.theorem("000: Theorem 2.1")
@pytest.mark.parametrize(
    "law", [None, Gaussian(0.16), Laplace(0.16), Truncated(Gaussian(0.16), -0.2, 0.2)], ids=str
)
def test_the_secret_is_lost_at_most_as_often_as_the_theorem_says(
    law: Law | None, seed: int
) -> None:
    settings = (16, 2, 0.01, 10_000)
    rate = loss_bound(stream_setting((16, 2, 10_000), law or Uniform(0.16), 0.5, TIGHT))
    assert rate < 1e-9
    assert_rate_at_most(lost(settings, law, seed, Errata()), 30, rate)


def test_the_test_above_would_notice_a_secret_that_is_lost(seed: int) -> None:
    printed = Errata(threshold_in_the_middle=False)
    with pytest.raises(AssertionError):
        assert_rate_at_most(lost((16, 2, 0.01, 10_000), None, seed, printed, 5), 5, 1e-3)


@pytest.mark.theorem("000: Corollary 2.1")
@pytest.mark.theorem("000: Corollary 7.1")
@pytest.mark.parametrize("settings", [(16, 2, 1.0, 10**5), (64, 4, 1.0, 10**5)])
def test_the_corollary_fails_while_the_stopping_side_is_out_of_reach(
    settings: Settings, seed: int
) -> None:
    assert batch_error(settings, seed) > 5 * batch_claim(settings[0], 10**5)


def test_the_corollary_may_claim_less_than_one_bit_a_query_can_tell() -> None:
    """Averaged over a stream, thresholds at the median leave 1.596 sqrt(d) D u / sqrt(T)."""
    information_limit = 1.596 * math.sqrt(4) * 64 * 1.0 / math.sqrt(10**5)
    assert batch_claim(64, 10**5) < 0.5 * information_limit


@pytest.mark.theorem("000: Corollary 2.1")
@pytest.mark.theorem("000: Corollary 7.1")
def test_the_corollary_holds_once_the_stopping_side_is_reached(seed: int) -> None:
    assert batch_error((2, 1, 0.01, 10**5), seed) <= batch_claim(2, 10**5)


def batch_error(settings: Settings, seed: int) -> float:
    """The mean error of the final hypothesis on fresh queries."""
    dimension, directions, u, count = settings
    rng = np.random.default_rng([seed, 1])
    stream = near_basis(rng, dimension, directions, count)
    secret, law = stream.basis @ rng.random(dimension), Uniform(dimension * u)
    search = BisectionSearch(dimension, directions, law, horizon=count)
    simulate(search, stream.coordinates, secret, law, rng)
    fresh = near_basis(rng, dimension, directions, 2_000).coordinates
    return float(np.abs(fresh @ (search.box.middle - secret)).mean())


# Long runs ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("settings", [(4, 2, 0.1), (16, 2, 0.1), (64, 4, 0.01)])
def test_the_error_falls_as_one_over_the_root_of_the_stream(
    settings: tuple[int, int, float], seed: int
) -> None:
    lengths = [10**5, 10**6, 10**7]
    errors = [
        np.mean([once((*settings, count), [seed, run]).error for run in range(2)])
        for count in lengths
    ]
    slope = np.polyfit(np.log(lengths), np.log(errors), 1)[0]
    assert -0.55 < slope < -0.40
