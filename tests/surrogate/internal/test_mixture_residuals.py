"""What a mixture is compared with: residuals in units of noise, and gradients of their squares."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    Scope,
)
from casemate.surrogate.mixture_residuals import (
    PairTables,
    ProductMixture,
    ProductQuestions,
    ShareLayout,
    SingleTables,
    WideTable,
    evidence,
)

SHAPE, RECORDS = (3, 2, 4, 2), 1_000.0
LAYOUT = ShareLayout(SHAPE)
SCOPES: list[Scope] = [(1,), (2,), (0, 1), (1, 2), (2, 3), (0, 2), (0, 1, 3), (0, 1, 2, 3)]


def mixture(seed: int, components: int = 5) -> ProductMixture:
    draw = np.random.default_rng([seed, 41])
    parts = [draw.dirichlet(np.ones(width), components) for width in SHAPE]
    return ProductMixture(draw.dirichlet(np.ones(components)), np.hstack(parts))


def table(seed: int, scope: Scope) -> MeasuredMarginal:
    draw = np.random.default_rng([seed, *scope])
    values = draw.normal(100, 50, [SHAPE[a] for a in scope])
    return MeasuredMarginal(Marginal(scope), values, float(draw.uniform(100, 900)))


def asked(seed: int, scope: Scope) -> MeasuredProduct:
    draw = np.random.default_rng([seed, 42])
    product = Product(SHAPE, {}, {a: draw.uniform(-1, 1, SHAPE[a]) for a in scope})
    return MeasuredProduct(product, float(draw.normal(200, 100)), float(draw.uniform(100, 900)))


def cell_by_cell(one: MeasuredMarginal) -> list[Measurement]:
    """A table as a product for each cell, which share their factors."""
    found: list[Measurement] = []
    for cell, value in np.ndenumerate(one.values):
        codes = zip(one.marginal.scope, cell, strict=True)
        masks = {a: np.arange(SHAPE[a]) == code for a, code in codes}
        found.append(MeasuredProduct(Product(SHAPE, masks), float(value), one.variance))
    return found


def everything(seed: int) -> list[Measurement]:
    """Tables of every width, of one scope more than once, and single questions."""
    tables: list[Measurement] = [table(seed, scope) for scope in SCOPES]
    tables += [table(seed + 1, scope) for scope in SCOPES[1:4]]
    tables += cell_by_cell(table(seed + 2, (0, 2)))
    return [*tables, *(asked(seed, scope) for scope in [(0,), (1, 3), (0, 1, 2)])]


def cells(held: ProductMixture) -> Floats:
    parts = np.split(held.shares, np.cumsum(SHAPE)[:-1], axis=1)
    found: Floats = np.einsum("k,ka,kb,kc,kd->abcd", held.weights, *parts)
    return found


def squares(held: ProductMixture, one: Measurement) -> Floats:
    """Squared residuals in units of noise, from the cells written out."""
    grid = cells(held)
    if isinstance(one, MeasuredProduct):
        off = np.array([RECORDS * float(grid.ravel() @ one.product.dense()) - one.value])
    else:
        others = tuple(set(range(4)) - set(one.marginal.scope))
        off = RECORDS * grid.sum(axis=others) - one.values
    return np.asarray(off**2 / one.variance)


def half_square(held: ProductMixture, measurements: Sequence[Measurement]) -> float:
    return sum(float(squares(held, one).sum()) / 2 for one in measurements)


@given(st.integers(0, 10**6))
def test_slopes_are_those_of_small_moves(seed: int) -> None:
    held, measurements = mixture(seed), everything(seed)
    draw, step = np.random.default_rng([seed, 43]), 1e-6
    by_weight = draw.normal(0, 1, held.weights.shape)
    by_share = mixture(seed + 1).shares - mixture(seed + 2).shares  # so that they still sum to one
    ahead, behind = (
        ProductMixture(held.weights + h * by_weight, held.shares + h * by_share)
        for h in (step, -step)
    )
    known = evidence(LAYOUT, measurements, RECORDS)
    assert {type(each) for each in known} == {SingleTables, PairTables, WideTable, ProductQuestions}
    moved = (half_square(ahead, measurements) - half_square(behind, measurements)) / (2 * step)
    gradient = 0.0
    for each in known:
        gradients = each.compare(held).gradients
        gradient += float(
            (gradients.weights * by_weight).sum() + (gradients.shares * by_share).sum()
        )
    assert moved == pytest.approx(gradient, rel=1e-4, abs=1)


@given(st.integers(0, 10**6), st.sampled_from(SCOPES))
def test_an_excess_is_that_of_the_mean_square_above_one(seed: int, scope: Scope) -> None:
    held, one = mixture(seed), table(seed, scope)
    off = squares(held, one)
    (found,) = evidence(LAYOUT, [one], RECORDS)[0].compare(held).excesses
    assert found == pytest.approx(float((off.mean() - 1) * math.sqrt(off.size / 2)))


def test_one_of_many_questions_may_be_further_off_by_chance(seed: int) -> None:
    held, one = mixture(seed), asked(seed, (0, 1))
    found = ProductQuestions(LAYOUT, [one] * 50, RECORDS).compare(held).excesses
    alone = (float(squares(held, one)[0]) - 1) / math.sqrt(2)
    assert found == pytest.approx(np.full(50, alone - math.sqrt(2) * math.log(50)))


def test_few_pairs_of_many_codes_are_compared_one_by_one() -> None:
    layout = ShareLayout((50, 50, 2, 2))
    small = MeasuredMarginal(Marginal((2, 3)), np.ones((2, 2)), 1.0)
    assert [type(each) for each in evidence(layout, [small], 10.0)] == [WideTable]
    large = MeasuredMarginal(Marginal((0, 1)), np.ones((50, 50)), 1.0)
    assert [type(each) for each in evidence(layout, [small, large], 10.0)] != [WideTable]


def test_what_no_mixture_can_move_is_left_out() -> None:
    nobody = Product(SHAPE, {0: np.zeros(3, np.bool_)})
    total = MeasuredMarginal(Marginal(()), np.array(7.0), 1.0)
    idle: list[Measurement] = [
        MeasuredProduct(nobody, 5.0, 1.0),
        MeasuredProduct(Product(SHAPE, {}), 5.0, 1.0),
        total,
    ]
    assert evidence(LAYOUT, idle, RECORDS) == []
