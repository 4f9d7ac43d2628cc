"""OnlineBisection: its box, the search on coordinates, and the learner with a basis in front.

That its compiled form is its plain one, and that its errors fall, is in `test_learners`.
"""

import math
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.one_bit_play import play
from scipy.optimize import linprog

from casemate.attack.one_bit import OnlineBisection, generic, near_basis
from casemate.attack.one_bit.bisection import (
    FIRST_HORIZON,
    TIGHT,
    BisectionConstants,
    BisectionSearch,
    Errata,
    SecretBox,
)
from casemate.attack.one_bit.bisection_simulation import feed, simulate
from casemate.attack.one_bit.laws import Gaussian, Uniform
from casemate.attack.one_bit.oracle import Floats, NoisyOracle
from casemate.attack.one_bit.streams import Stream, printed_angle

# The box ------------------------------------------------------------------------------------------

numbers = st.floats(-5, 5)
intervals = st.tuples(numbers, st.floats(0.01, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))
cases = st.lists(st.tuples(intervals, numbers), min_size=1, max_size=4)
Intervals = list[tuple[tuple[float, float], float]]


def box_of(case: Intervals) -> tuple[SecretBox, Floats]:
    low, high = np.array([ends for ends, _ in case]).T
    return SecretBox(low.copy(), high.copy()), np.array([x for _, x in case])


@pytest.mark.theorem("000: Lemma 5.1")
@given(cases)
def test_the_closed_form_is_the_best_corner(case: Intervals) -> None:
    box, x = box_of(case)
    values = [
        float(np.array(corner) @ x) for corner in product(*zip(box.low, box.high, strict=True))
    ]
    assert box.most(x) == pytest.approx(max(values), abs=1e-9)
    assert box.least(x) == pytest.approx(min(values), abs=1e-9)
    assert (box.most(x) + box.least(x)) / 2 == pytest.approx(float(box.middle @ x), abs=1e-9)


@pytest.mark.theorem("000: Lemma 5.1")
def test_the_closed_form_is_what_a_linear_programme_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        low, x = rng.normal(size=6), rng.normal(size=6)
        box = SecretBox(low, low + rng.random(6))
        bounds = list(zip(box.low, box.high, strict=True))
        best = np.asarray(linprog(-x, bounds=bounds).x)
        assert box.most(x) == pytest.approx(float(x @ best))


@pytest.mark.theorem("000: Algorithm 2")
@given(cases, st.booleans())
def test_a_shrink_keeps_three_quarters_of_one_side(case: Intervals, upper: bool) -> None:
    box, _ = box_of(case)
    low, high = box.low.copy(), box.high.copy()
    box.shrink(0, upper)
    assert box.sides[0] == pytest.approx(0.75 * (high[0] - low[0]))
    assert (box.high[0] if upper else box.low[0]) == (high[0] if upper else low[0])
    assert np.array_equal(box.low[1:], low[1:]) and np.array_equal(box.high[1:], high[1:])


# The search ---------------------------------------------------------------------------------------

E1, E2 = np.eye(2)
SECRET = np.array([1.3, 0.2])
ALONE = BisectionConstants(shrink_together=False)


def told(search: BisectionSearch, x: Floats, secret: Floats, times: int) -> None:
    """The same query so many times, before an oracle without noise."""
    for _ in range(times):
        search.learn(x, bool(secret @ x > search.threshold(x)))


@pytest.mark.theorem("000: Algorithm 1")
def test_without_noise_it_is_a_binary_search_in_three_quarters() -> None:
    search = BisectionSearch(4, 2, None, horizon=100)
    needed = int(search.critical_counts[0])
    assert needed == math.ceil(30 * math.log(100))
    for _ in range(6):
        told(search, E1, SECRET, needed)
        told(search, E2, SECRET, needed)
    assert search.shrinks == 6
    assert search.side == pytest.approx(4 * 0.75**6)
    assert search.box.holds(SECRET)


def test_all_directions_wait_for_the_slowest_whose_counts_run_over_or_each_shrinks_alone() -> None:
    """|I_1| stands for every side only because nothing shrinks before all are ready."""
    together = BisectionSearch(4, 2, None, horizon=100)
    alone = BisectionSearch(4, 2, None, horizon=100, constants=ALONE)
    needed = int(together.critical_counts[0])
    for search in (together, alone):
        told(search, E1, SECRET, 3 * needed)
    assert (together.shrinks, together.box.seen.tolist()) == (0, [3 * needed, 0])
    assert (alone.shrinks, alone.box.sides.tolist()) == (3, [4 * 0.75**3, 4.0])
    assert alone.box.holds(SECRET)
    told(together, E2, SECRET, needed)
    assert together.box.sides.tolist() == [3.0, 3.0]
    assert together.box.seen.tolist() == [0, 0]


def test_a_direction_on_its_own_stops_where_the_others_hide_it_and_goes_on_when_they_do_not() -> (
    None
):
    """Beside a side 15 times as long, the part of a query across may outweigh the one along."""
    alone = BisectionConstants(shrink_together=False, angle=0.05, exact_gap=True)
    search = BisectionSearch(4, 2, None, horizon=10**6, constants=alone)
    secret, needed = np.array([0.4, 0.2]), int(search.critical_counts[0])
    told(search, E1, secret, 30 * needed)
    stuck = search.box.sides[0]
    assert 0.05 * 4 / 2 < stuck < 4 and search.critical_counts[0] > 10**15
    told(search, E2, secret, needed)
    assert search.critical_counts[0] == needed  # without noise any gap at all will do
    told(search, E1, secret, needed)
    assert search.box.sides[0] == pytest.approx(0.75 * stuck)


def test_only_queries_within_the_angle_of_a_direction_and_as_long_as_the_gap_assumes_count() -> (
    None
):
    search = BisectionSearch(4, 2, None, horizon=100)
    angle = printed_angle(2)
    inside, outside = (
        2 * np.array([math.cos(a), math.sin(a)]) for a in (0.999 * angle, 1.001 * angle)
    )
    assert [search.direction(x) for x in (inside, inside[::-1], 1.01 * E1)] == [0, 1, 0]
    for x in (outside, -inside, np.zeros(2), 0.99 * E1):
        assert search.direction(x) is None
    printed = BisectionSearch(4, 2, None, horizon=100, reading=Errata.as_printed())
    assert printed.direction(1e-9 * E1) == 0
    short = BisectionSearch(4, 2, None, horizon=100, constants=BisectionConstants(shortest=0.25))
    assert short.direction(0.3 * E1) == 0


def test_it_stops_at_the_stopping_side() -> None:
    search, secret = BisectionSearch(1, 1, None, horizon=100), np.array([0.7])
    told(search, np.ones(1), secret, 100 * int(search.critical_counts[0]))
    assert search.stopped
    assert 0.75 * math.log(100) / 10 < search.side <= math.log(100) / 10
    assert search.box.seen.tolist() == [0]


def test_a_horizon_that_nobody_gave_doubles_and_a_search_that_had_stopped_goes_on() -> None:
    """More evidence is asked for from then on."""
    search, secret = BisectionSearch(1, 1, None), np.array([0.7])
    told(search, np.ones(1), secret, FIRST_HORIZON)
    assert search.horizon == FIRST_HORIZON
    told(search, np.ones(1), secret, 1)
    assert search.horizon == 2 * FIRST_HORIZON
    assert search.critical_counts[0] == math.ceil(30 * math.log(2 * FIRST_HORIZON))
    told(search, np.ones(1), secret, 40_000 - FIRST_HORIZON - 1)
    assert search.horizon == 1 << 16
    assert search.side < math.log(FIRST_HORIZON) / math.sqrt(FIRST_HORIZON) / 2
    assert search.box.holds(secret)


def test_a_simulated_run_is_an_array_or_blocks_and_its_error_the_mean_distance_of_the_answers(
    seed: int,
) -> None:
    stream, secret = setting(seed, 8, 2, 3_000)
    coordinates, truth = stream.basis @ secret, stream.queries @ secret
    searches = [BisectionSearch(8, 2, None) for _ in range(3)]
    trail, moments = feed(searches[0], stream.coordinates, truth)
    blocks = iter(np.split(stream.coordinates, [1, 700, 2_345]))
    runs = [
        simulate(search, given, coordinates, None, np.random.default_rng(seed))
        for search, given in ((searches[1], stream.coordinates), (searches[2], blocks))
    ]
    for run in runs:
        assert run.error == pytest.approx(float(np.abs(trail.answers - truth).mean()))
        assert (run.queries, run.shrinks) == (3_000, tuple(moments))
    assert len(moments) == searches[0].shrinks > 3


# The learner --------------------------------------------------------------------------------------

QUICK = BisectionConstants(observations=2.0, exact_gap=True)


def setting(seed: int, dimension: int, directions: int, count: int) -> tuple[Stream, Floats]:
    rng = np.random.default_rng([seed, dimension])
    return near_basis(rng, dimension, directions, count), rng.random(dimension)


def oracle(secret: Floats, seed: int, noise: float = 0.2) -> NoisyOracle:
    return NoisyOracle(secret, Uniform(noise), np.random.default_rng([seed, 5]))


def test_it_says_which_bits_it_would_use(seed: int) -> None:
    stream, _ = setting(seed, 8, 2, 50)
    astray = generic(np.random.default_rng(seed), 8, 2, 50)
    learner = OnlineBisection(8, Gaussian(1.0), basis=stream.basis, horizon=100)
    long = np.linalg.norm(stream.queries, axis=1) >= 1
    assert [learner.uses(q) for q in stream.queries] == long.tolist()
    assert sum(learner.uses(q) for q in astray.queries) < 5


def test_a_query_is_judged_by_its_whole_length_and_a_bit_about_another_threshold_not_used() -> None:
    learner = OnlineBisection(4, Gaussian(1.0), basis=np.eye(4)[:1], horizon=100)
    q = np.eye(4)[0]
    assert learner.uses(q) and not learner.uses(q + 0.1 * np.eye(4)[1])
    learner.learn(q, learner.threshold(q) + 0.5, True)
    assert (learner.search.box.seen.tolist(), learner.search.queries) == ([0], 1)
    learner.learn(q, learner.threshold(q), True)
    assert (learner.search.box.seen.tolist(), learner.search.queries) == ([1], 2)


def test_beside_the_basis_it_keeps_four_numbers_for_each_direction(seed: int) -> None:
    """Algorithm 1's O(log T) leaves the basis out, dD numbers: the largest part."""
    stream, secret = setting(seed, 40, 4, 4_000)
    learner = OnlineBisection(40, Uniform(0.2), basis=stream.basis, constants=QUICK)
    held = []
    for part in (stream.queries[:500], stream.queries[500:]):
        play(learner, oracle(secret, seed), part)
        box = learner.search.box
        assert sum(kept.size for kept in vars(box).values()) == 4 * 4
        held.append(len(pickle.dumps(learner)))
    assert learner.search.shrinks > 3
    assert held[1] <= held[0] + 64  # it does not grow with the stream
    assert learner.basis is not None and learner.basis.size == 160


def test_a_basis_is_found_in_the_first_queries_and_then_it_learns(seed: int) -> None:
    stream, secret = setting(seed, 16, 2, 6_000)
    learner = OnlineBisection(
        16, Uniform(0.2), directions=2, horizon=6_000, constants=TIGHT, preliminary=100
    )
    trail = play(learner, oracle(secret, seed), stream.queries)
    np.testing.assert_allclose(trail.answers[:100], stream.queries[:100].sum(axis=1) / 2)
    assert learner.search.shrinks > 5
    assert learner.basis is not None
    assert learner.search.box.holds(learner.basis @ secret)
    errors = np.abs(trail.answers - stream.queries @ secret)
    assert errors[-500:].mean() < 0.5


def test_a_basis_of_principal_components_never_shrinks(seed: int) -> None:
    stream, secret = setting(seed, 16, 2, 6_000)
    printed = Errata(directions_from_clusters=False)
    learner = OnlineBisection(
        16, Uniform(0.2), directions=2, horizon=6_000, reading=printed, constants=TIGHT
    )
    play(learner, oracle(secret, seed), stream.queries)
    assert learner.basis is not None
    assert learner.search.shrinks == 0


def test_a_stream_without_directions_goes_on_being_answered_by_one_half(seed: int) -> None:
    queries = np.tile([1.0, 1.0, 0.0, 0.0], (300, 1))
    learner = OnlineBisection(4, Uniform(0.2), directions=2, preliminary=50)
    trail = play(learner, oracle(np.full(4, 0.3), seed), queries)
    assert learner.basis is None and not learner.uses(queries[0])
    assert set(trail.answers) == {1.0} == set(trail.thresholds)
    assert learner.search.queries == 300
