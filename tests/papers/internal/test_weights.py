"""Multiplicative weights: the drop that a step is sure of, and how many updates it takes."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Product
from casemate.papers.database_updates import (
    MultiplicativeWeights,
    Step,
    corrected_step,
    corrected_updates,
    fixed_step,
    literal_step,
    literal_updates,
    relative_entropy,
    sure_drop,
)
from casemate.surrogate.replay import DenseSurrogate

SHAPE = (3, 4)
TOY, ALPHA = 64, 0.05


def slow_update(shares: Floats, query: Floats, eta: float) -> Floats:
    raised: Floats = shares * np.exp(eta * query)
    raised /= raised.sum()
    return raised


@given(
    st.integers(0, 10**6),
    st.sampled_from([corrected_step, literal_step(0.1), fixed_step(0.1)]),
    st.booleans(),
)
def test_an_update_multiplies_by_the_exponential_of_the_query(
    seed: int, step: Step, weighted: bool
) -> None:
    draw = np.random.default_rng(seed)
    masks = {0: draw.random(3) < 0.5}
    weights = {1: draw.random(4)} if weighted else {}
    product, wanted = Product(SHAPE, masks, weights), float(draw.random())
    stand_in = MultiplicativeWeights(SHAPE, 200, step, prior=draw.random(SHAPE) + 0.1)
    shares = stand_in.marginal((0, 1)).ravel() / 200
    gap = wanted - float(shares @ product.dense())
    stand_in.update(MeasuredProduct(product, 200 * wanted, 0.0))
    slow = slow_update(shares, product.dense(), step(gap))
    assert stand_in.marginal((0, 1)).ravel() / 200 == pytest.approx(slow)


def test_of_a_marginal_it_learns_the_cell_it_gets_most_wrong() -> None:
    whole, cell = MultiplicativeWeights(SHAPE, 12), MultiplicativeWeights(SHAPE, 12)
    whole.update(MeasuredMarginal(Marginal((0,)), np.array([9.0, 2.0, 1.0]), 0.0))
    first = Product(SHAPE, {0: np.array([True, False, False])})
    cell.update(MeasuredProduct(first, 9.0, 0.0))
    assert np.array_equal(whole.marginal((0, 1)), cell.marginal((0, 1)))


def test_what_the_theorem_does_not_cover_is_refused() -> None:
    stand_in = MultiplicativeWeights(SHAPE, 12)
    with pytest.raises(ValueError, match="rescale"):
        stand_in.update(MeasuredProduct(Product(SHAPE, {}, {0: np.array([0.0, 1, 2])}), 3.0, 0.0))
    with pytest.raises(ValueError, match="positive total"):
        MultiplicativeWeights(SHAPE, 0)


# The theorem ----------------------------------------------------------------------------------


def drop_and_gap(seed: int, noise: float, step: Step = corrected_step) -> tuple[float, float]:
    """What one update takes off the potential, and the gap that it met."""
    draw = np.random.default_rng(seed)
    cells = int(draw.integers(2, 40))
    data, shares = draw.dirichlet(np.full(cells, draw.choice([0.05, 0.5, 5.0])), 2)
    shares = shares * 0.99 + 0.01 / cells
    query = draw.random(cells) if draw.random() < 0.5 else draw.integers(0, 2, cells).astype(float)
    gap = float((data - shares) @ query)
    after = slow_update(shares, query, step(gap + noise))
    return relative_entropy(data, shares) - relative_entropy(data, after), gap


@pytest.mark.theorem("003: T(alpha) of multiplicative weights")
@given(st.integers(0, 10**9), st.floats(-0.5, 0.5))
def test_an_update_takes_off_at_least_twice_the_squared_gap_less_that_of_the_noise(
    seed: int, noise: float
) -> None:
    drop, gap = drop_and_gap(seed, noise)
    assert drop >= sure_drop(gap, noise) - 1e-12


def test_the_test_above_would_notice_a_step_twice_as_long(seed: int) -> None:
    worst = min(
        drop - sure_drop(gap)
        for drop, gap in (drop_and_gap(seed + k, 0.0, lambda gap: 8 * gap) for k in range(500))
    )
    assert worst < -1e-3


def test_the_documents_step_is_sure_of_an_eighth_of_it() -> None:
    """With eta = alpha / 2 at a gap of alpha, eta * gap - eta^2 is alpha^2 / 4, hence its T."""
    eta = literal_step(ALPHA)(ALPHA)
    assert eta * ALPHA - eta**2 == pytest.approx(ALPHA**2 / 4)
    assert sure_drop(ALPHA) == pytest.approx(8 * ALPHA**2 / 4)
    assert literal_step(ALPHA)(-1.0) == -eta


@pytest.mark.theorem("003: T(alpha) of multiplicative weights")
def test_the_number_of_updates_is_stated() -> None:
    assert literal_updates(10**6, 0.05) == pytest.approx(4 * math.log(10**6) / 0.0025)
    assert corrected_updates(10**6, 0.05) == pytest.approx(2763.1, abs=0.1)
    assert literal_updates(64, 0.1) == pytest.approx(8 * corrected_updates(64, 0.1))
    assert corrected_updates(64, 0.1, entropy=1.0) == pytest.approx(50)


def test_relative_entropy_is_infinite_where_the_stand_in_has_nothing() -> None:
    assert relative_entropy(np.array([1.0, 0]), np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert relative_entropy(np.array([0.5, 0.5]), np.array([1.0, 0])) == math.inf


# The toy: how many updates until no query is further off than alpha -----------------------------

Maker = Callable[[], MultiplicativeWeights | DenseSurrogate]


def updates_needed(make: Maker, seed: int) -> int:
    draw = np.random.default_rng([seed, 9])
    data, queries = draw.dirichlet(np.full(TOY, 0.1)), draw.random((2000, TOY)) < 0.5
    stand_in, truths = make(), queries @ data
    for updates in range(3000):
        gaps = truths - queries @ stand_in.marginal((0,))
        worst = int(np.argmax(np.abs(gaps)))
        if abs(gaps[worst]) <= ALPHA:
            return updates
        product = Product((TOY,), {0: queries[worst]})
        stand_in.update(MeasuredProduct(product, float(truths[worst]), 0.0))
    raise AssertionError("it never came within alpha")


@pytest.mark.theorem("003: T(alpha) of multiplicative weights")
def test_the_documents_step_needs_many_times_the_updates(seed: int) -> None:
    for trial in range(seed, seed + 3):
        literal = updates_needed(
            lambda: MultiplicativeWeights((TOY,), 1.0, literal_step(ALPHA)), trial
        )
        corrected = updates_needed(lambda: MultiplicativeWeights((TOY,), 1.0), trial)
        projected = updates_needed(lambda: DenseSurrogate((TOY,), 1.0), trial)
        assert projected <= 15 and 250 <= literal <= literal_updates(TOY, ALPHA)
        assert corrected <= corrected_updates(TOY, ALPHA) and 8 * corrected <= literal
