"""OnlineBisection as a learner: the three methods, its memory, and bases that are found."""

import pickle

import numpy as np
import pytest
from oracles.one_bit_play import play

from casemate.attack.one_bit import OnlineBisection
from casemate.attack.one_bit.bisection import TIGHT, BisectionConstants, Errata
from casemate.attack.one_bit.laws import Gaussian, Uniform
from casemate.attack.one_bit.oracle import Floats, NoisyOracle
from casemate.attack.one_bit.streams import Stream, generic, near_basis

QUICK = BisectionConstants(observations=2.0, exact_gap=True)


def setting(seed: int, dimension: int, directions: int, count: int) -> tuple[Stream, Floats]:
    rng = np.random.default_rng([seed, dimension])
    return near_basis(rng, dimension, directions, count), rng.random(dimension)


def oracle(secret: Floats, seed: int, noise: float = 0.2) -> NoisyOracle:
    return NoisyOracle(secret, Uniform(noise), np.random.default_rng([seed, 5]))


# The protocol -------------------------------------------------------------------------------------


def test_it_says_which_bits_it_would_use(seed: int) -> None:
    stream, _ = setting(seed, 8, 2, 50)
    astray = generic(np.random.default_rng(seed), 8, 2, 50)
    learner = OnlineBisection(8, Gaussian(1.0), basis=stream.basis, horizon=100)
    long = np.linalg.norm(stream.queries, axis=1) >= 1
    assert [learner.uses(q) for q in stream.queries] == long.tolist()
    assert sum(learner.uses(q) for q in astray.queries) < 5


def test_a_bit_about_another_threshold_is_not_evidence() -> None:
    learner = OnlineBisection(4, Gaussian(1.0), basis=np.eye(4)[:1], horizon=100)
    q = np.array([1.0, 0.0, 0.0, 0.0])
    learner.learn(q, learner.threshold(q) + 0.5, True)
    assert (learner.search.box.seen.tolist(), learner.search.queries) == ([0], 1)
    learner.learn(q, learner.threshold(q), True)
    assert (learner.search.box.seen.tolist(), learner.search.queries) == ([1], 2)


def test_a_query_with_a_part_outside_the_space_is_judged_by_its_whole_length() -> None:
    learner = OnlineBisection(4, Gaussian(1.0), basis=np.eye(4)[:1], horizon=100)
    assert learner.uses(np.array([1.0, 0.0, 0.0, 0.0]))
    assert not learner.uses(np.array([1.0, 0.1, 0.0, 0.0]))


# Memory -------------------------------------------------------------------------------------------


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


# Bases that are found -----------------------------------------------------------------------------


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
    learner = OnlineBisection(
        16,
        Uniform(0.2),
        directions=2,
        horizon=6_000,
        reading=Errata(directions_from_clusters=False),
        constants=TIGHT,
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


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"directions": 0},
        {"directions": 5},
        {"basis": 2 * np.eye(4)},
        {"basis": np.eye(3)},
        {"directions": 2, "preliminary": 1},
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="need"):
        OnlineBisection(4, None, **wrong)  # type: ignore[arg-type] # the mistake under test


# The derivation -----------------------------------------------------------------------------------
