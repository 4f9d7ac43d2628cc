"""The best estimate from all tables at once, against general least squares and simulated noise."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from casemate.grid import Effects, MeasuredTable, Product, Scope, TableQuestion, all_codes
from casemate.privacy.noise import GaussianLaw, Law, variance

Floats = NDArray[np.float64]


def table(scope: Scope, shape: tuple[int, ...], values: Floats, law: Law | None) -> MeasuredTable:
    sizes = [shape[a] for a in scope]
    question = TableQuestion(all_codes(scope, shape), start=True)
    return MeasuredTable(question, values.reshape(sizes), law)


def summing(scope: Scope, shape: tuple[int, ...]) -> Floats:
    """The matrix that sums the whole grid to the cells of a scope."""
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    places = np.indices(shape)
    sizes = [shape[a] for a in scope]
    number = np.ravel_multi_index([places[a] for a in scope], sizes) if scope else 0 * cells
    matrix = np.zeros((int(np.prod(sizes)), cells.size))
    matrix[np.broadcast_to(number, cells.shape).ravel(), cells.ravel()] = 1
    return matrix


def least_squares(design: Floats, spread: Floats, weights: Floats) -> Floats:
    """The weights of the noise in the best linear unbiased estimate, some of it being zero.

    Least sum of spread a^2 with design' a = weights, by the equations of Lagrange.
    """
    rows, cells = design.shape
    system = np.block([[np.diag(spread), design], [design.T, np.zeros((cells, cells))]])
    wanted = np.concatenate([np.zeros(rows), weights])
    return np.asarray(np.linalg.lstsq(system, wanted, rcond=None)[0][:rows])


def random_design(
    random: np.random.Generator, *, exact: bool
) -> tuple[tuple[int, ...], list[tuple[Scope, Law | None]]]:
    shape = tuple(random.integers(2, 4, 3).tolist())
    scopes = [s for size in range(4) for s in combinations(range(3), size)]
    chosen = [scopes[i] for i in random.integers(1, len(scopes), random.integers(1, 5)).tolist()]
    scales = random.integers(1, 9, len(chosen)).tolist()
    laws: list[Law | None] = [GaussianLaw(Fraction(each)) for each in scales]
    if exact:
        laws[0] = None
    return shape, list(zip([*chosen], laws, strict=True))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_estimates_are_those_of_general_least_squares(seed: int, exact: bool) -> None:
    random = np.random.default_rng(seed)
    shape, design = random_design(random, exact=exact)
    counts = random.integers(0, 50, shape).astype(float).ravel()
    whole = np.concatenate([summing(scope, shape) for scope, _ in design])
    spread = np.concatenate(
        [np.full(len(summing(scope, shape)), variance(law)) for scope, law in design]
    )
    noise = random.normal(0, 1, len(spread)) * np.sqrt(spread)
    measured = whole @ counts + noise
    ends = np.cumsum([0, *(len(summing(scope, shape)) for scope, _ in design)])
    tables = tuple(
        table(scope, shape, measured[first:end], law)
        for (scope, law), first, end in zip(design, ends, ends[1:], strict=False)
    )
    effects = Effects(shape, tables)
    for scope, _ in design:
        sizes = [shape[a] for a in scope]
        weights = random.integers(-3, 4, sizes).astype(float)
        found = effects.estimate_dense(scope, weights)
        shares = least_squares(whole, spread, weights.ravel() @ summing(scope, shape))
        assert found.value == pytest.approx(shares @ measured, rel=1e-10, abs=1e-9)
        assert found.deviation**2 == pytest.approx(float(shares**2 @ spread), rel=1e-9, abs=1e-12)
        noisy = spread > 0
        largest = max((each.largest for each in found.noise), default=0.0)
        assert largest >= np.abs(shares[noisy]).max(initial=0.0) - 1e-9


def test_a_product_is_estimated_as_its_dense_weights_are() -> None:
    random = np.random.default_rng(3)
    shape, law = (3, 4, 2), GaussianLaw(Fraction(5))
    tables = tuple(
        table(scope, shape, random.normal(20, 5, [shape[a] for a in scope]), law)
        for scope in ((), (0, 1), (0, 2), (1, 2))
    )
    effects = Effects(shape, tables)
    for _ in range(20):
        scope = tuple(sorted(random.choice(3, random.integers(0, 3), replace=False).tolist()))
        product = Product(
            shape, {}, {a: random.integers(-2, 3, shape[a]).astype(np.float64) for a in scope}
        )
        if product.scope != scope:
            continue  # the weights happened to be all ones
        dense = product.over(scope).reshape([shape[a] for a in scope])
        one, other = effects.estimate(product), effects.estimate_dense(scope, dense)
        assert one.value == pytest.approx(other.value)
        assert one.deviation == pytest.approx(other.deviation)
        assert one.noise[0].largest == pytest.approx(other.noise[0].largest)


def test_fitted_tables_agree_on_shared_margins_and_keep_exact_ones() -> None:
    random = np.random.default_rng(4)
    shape, law = (3, 4, 2), GaussianLaw(Fraction(5))
    public = random.integers(0, 9, (3, 4)).astype(np.float64)
    noisy = [(0, 2), (1, 2), (0, 1, 2)]
    sizes = [[shape[a] for a in scope] for scope in noisy]
    tables = [
        table(s, shape, random.normal(20, 5, n), law) for s, n in zip(noisy, sizes, strict=True)
    ]
    effects = Effects(shape, (table((0, 1), shape, public, None), *tables))
    assert np.allclose(effects.fitted((0, 1)), public)
    assert np.allclose(effects.fitted((0, 2)).sum(axis=1), public.sum(axis=1))
    assert np.allclose(effects.fitted((0, 2)).sum(axis=0), effects.fitted((1, 2)).sum(axis=0))
    assert effects.estimate(Product(shape, {0: np.array([True, False, False])})).deviation == 0


def test_simulated_errors_have_the_stated_deviation() -> None:
    random = np.random.default_rng(5)
    shape, scopes = (4, 5, 3), ((), (0, 1), (0, 2), (1, 2))
    scales = (7, 3, 5, 4)
    product = Product(shape, {0: np.arange(4) < 2, 1: np.arange(5) > 1})
    errors, stated = [], 0.0
    for _ in range(2_000):
        tables = tuple(
            table(s, shape, random.normal(0, k, [shape[a] for a in s]), GaussianLaw(Fraction(k)))
            for s, k in zip(scopes, scales, strict=True)
        )
        found = Effects(shape, tables).estimate(product)
        errors.append(found.value)
        stated = found.deviation
    assert np.std(errors) == pytest.approx(stated, rel=0.12)  # seven deviations of the estimate
    assert np.std(errors) != pytest.approx(1.3 * stated, rel=0.12)
