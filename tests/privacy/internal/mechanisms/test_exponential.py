import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from exact_exponential import exp_bounds
from hypothesis import given
from hypothesis import strategies as st

from casemate.privacy import Concentrated, Pure
from casemate.privacy.mechanisms import exponential
from casemate.privacy.mechanisms.exponential_mechanism import FIRST_PRECISION, ExponentialMechanism
from casemate.privacy.noise import seeded_bits
from casemate.privacy.noise.tape import Bits

ONE = Fraction(1)
mechanisms = st.builds(
    ExponentialMechanism,
    st.fractions(Fraction(1, 100), 3, max_denominator=1000),
    st.integers(1, 5),
    st.booleans(),
)
utilities = st.lists(st.integers(-8, 8), min_size=1, max_size=12)


def scripted(*blocks: int) -> Bits:
    """A bit source that gives these numbers of FIRST_PRECISION bits each, and then zeros."""
    left = [int(bit) for block in blocks for bit in f"{block:0{FIRST_PRECISION}b}"][::-1]
    return lambda size: bytes(left.pop() if left else 0 for _ in range(size))


def law(mechanism: ExponentialMechanism, given_utilities: list[int]) -> list[float]:
    return [float(low) for low, _ in mechanism.probabilities(given_utilities)]


# The law is exact ---------------------------------------------------------------------------------


@given(mechanisms, utilities)
def test_probabilities_agree_with_fractions(
    mechanism: ExponentialMechanism, values: list[int]
) -> None:
    best = max(values)
    weights = [exp_bounds(mechanism.rate * (value - best), terms=120) for value in values]
    least, most = sum(low for low, _ in weights), sum(high for _, high in weights)
    for (low, high), weight in zip(mechanism.probabilities(values), weights, strict=True):
        assert low <= weight[1] / least
        assert weight[0] / most <= high
        assert high - low < Fraction(1, 2**110)


@pytest.mark.parametrize(
    ("values", "epsilon"),
    [([0, 1, 2, 1], ONE), ([5, 5, 5], ONE), ([0, 9, 9, -4, 7], Fraction(1, 3)), ([3, 0], 7 * ONE)],
)
def test_the_draw_has_exactly_its_law(values: list[int], epsilon: Fraction) -> None:
    """Proved, not sampled: the draw rises with its first bits, so the ends of a block decide it.

    Where both ends give the same utility all of the block does; the rest is undecided.
    """
    depth = 10
    block = 2 ** (FIRST_PRECISION - depth)
    decided, undecided = dict.fromkeys(values, 0), 0
    for first in range(2**depth):
        ends = [
            values[exponential(values, epsilon, bits=scripted(first * block + end))]
            for end in (0, block - 1)
        ]
        if ends[0] == ends[1]:
            decided[ends[0]] += 1
        else:
            undecided += 1
    assert undecided < len(set(values))
    bounds = dict(zip(values, ExponentialMechanism(epsilon).probabilities(values), strict=True))
    for value, blocks in decided.items():
        ties = values.count(value)
        assert Fraction(blocks, 2**depth) <= ties * bounds[value][1]
        assert ties * bounds[value][0] <= Fraction(blocks + undecided, 2**depth)


@pytest.mark.parametrize("first_of_next", [1, 51, 101])
@pytest.mark.parametrize("offset", range(-6, 7))
def test_a_draw_next_to_a_boundary_is_decided_exactly(first_of_next: int, offset: int) -> None:
    """The first 128 bits are those of the boundary between two utilities, or a few steps off."""
    values = [3] + [2] * 50 + [1] * 50 + [0] * 50
    exact = ExponentialMechanism(ONE).probabilities(values, precision=1024)
    boundary = sum((low for low, _ in exact[:first_of_next]), Fraction(0))
    first, last = math.floor(boundary * 2**FIRST_PRECISION) + offset, 2**FIRST_PRECISION - 1
    for second in (0, last):
        drawn = Fraction((first << FIRST_PRECISION) + second, 2 ** (2 * FIRST_PRECISION))
        chosen = values[exponential(values, ONE, bits=scripted(first, second))]
        assert chosen == values[first_of_next - (drawn < boundary)]


@given(utilities, st.integers(0, 2**32))
def test_arrays_are_candidates_too(values: list[int], seed: int) -> None:
    assert exponential(values, ONE, 1, seeded_bits(seed)) == exponential(
        np.array(values), ONE, 1, seeded_bits(seed)
    )


def test_few_bits_are_read_however_many_candidates_there_are() -> None:
    read: list[int] = []
    source = seeded_bits(1)

    def bits(size: int) -> bytes:
        read.append(size)
        return source(size)

    assert exponential([0] * 100_000 + [10**9], ONE, 1, bits) == 100_000
    assert sum(read) == FIRST_PRECISION, "rejection would try 100,000 candidates"


# Privacy, over every neighbour of small inputs --------------------------------------------------


def worst_loss(mechanism: ExponentialMechanism, changes: tuple[int, ...]) -> float:
    """The largest log ratio of the exact law, with every change of every utility."""
    worst = -math.inf
    for values in product((0, 1, 12), repeat=3):
        here = mechanism.probabilities(list(values))
        for change in product(changes, repeat=3):
            moved = [value + by for value, by in zip(values, change, strict=True)]
            there = mechanism.probabilities(moved)
            pairs = zip(here, there, strict=True)
            worst = max(worst, *(abs(math.log(b[1] / a[0])) for a, b in pairs))
    return worst


def test_the_mechanism_loses_at_most_epsilon() -> None:
    assert 0.99 < worst_loss(ExponentialMechanism(ONE), (-1, 0, 1)) <= 1 + 1e-12


def test_with_monotone_utilities_twice_the_rate_loses_at_most_epsilon() -> None:
    assert 0.99 < worst_loss(ExponentialMechanism(ONE, monotone=True), (0, 1)) <= 1 + 1e-12


def test_twice_the_rate_is_too_much_for_other_utilities() -> None:
    assert worst_loss(ExponentialMechanism(ONE, monotone=True), (-1, 0, 1)) > 1.9


def renyi(p: list[float], q: list[float], order: float) -> float:
    moment = math.fsum(a * (a / b) ** (order - 1) for a, b in zip(p, q, strict=True))
    return math.log(moment) / (order - 1)


ORDERS = (1.001, 1.5, 2.0, 4.0, 16.0, 64.0)


@pytest.mark.parametrize(("monotone", "changes"), [(False, (-1, 0, 1)), (True, (0, 1))])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_the_divergence_of_every_order_is_within_the_concentrated_cost(
    epsilon: Fraction, monotone: bool, changes: tuple[int, ...]
) -> None:
    mechanism = ExponentialMechanism(epsilon, monotone=monotone)
    rho = float(mechanism.concentrated_cost.rho)
    for values in product((0, 1, 4), repeat=3):
        here = law(mechanism, list(values))
        for change in product(changes, repeat=3):
            there = law(mechanism, [v + by for v, by in zip(values, change, strict=True)])
            for order in ORDERS:
                assert renyi(here, there, order) <= order * rho + 1e-9
                assert renyi(there, here, order) <= order * rho + 1e-9


def test_the_concentrated_cost_is_not_that_of_any_epsilon_private_mechanism() -> None:
    """Randomised response loses epsilon in both directions, a range twice as wide."""
    truth = math.exp(0.5) / (1 + math.exp(0.5))
    rho = float(ExponentialMechanism(Fraction(1, 2)).concentrated_cost.rho)
    assert renyi([truth, 1 - truth], [1 - truth, truth], 2.0) > 2 * 2.0 * rho


def test_costs() -> None:
    mechanism = ExponentialMechanism(Fraction(1, 2))
    assert mechanism.cost == Pure(Fraction(1, 2))
    assert mechanism.concentrated_cost == Concentrated(Fraction(1, 32))


# Accuracy -----------------------------------------------------------------------------------------


@pytest.mark.theorem("004: Appendix G, exponential mechanism (accuracy)")
@given(mechanisms, utilities, st.floats(1e-6, 0.5))
def test_the_chosen_utility_is_within_the_error_bound(
    mechanism: ExponentialMechanism, values: list[int], beta: float
) -> None:
    best = max(values)
    bound = mechanism.error_bound(len(values), beta, best=values.count(best))
    chances = zip(values, mechanism.probabilities(values), strict=True)
    missed = sum(high for value, (_, high) in chances if best - value > bound + 1e-9)
    assert missed <= beta
    assert bound <= math.log(len(values) / beta) / mechanism.rate, "the bound of the source"


def test_the_error_bound_is_attained() -> None:
    mechanism, beta = ExponentialMechanism(Fraction(1, 10)), 0.05
    bound = mechanism.error_bound(1001, beta)
    just_within = [math.floor(bound)] + [0] * 1000
    missed = 1 - mechanism.probabilities(just_within)[0][1]
    assert beta <= missed < 1.06 * beta
