"""Each compiled pass is the plain NumPy line that it stands for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Floats
from casemate.surrogate import mixture as kernel

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 10**6))


def drawn(seed: int, *shapes: tuple[int, ...]) -> list[Floats]:
    draw = np.random.default_rng([seed, 31])
    return [draw.normal(0, 1, shape) for shape in shapes]


@given(SIZES)
def test_products_of_matrices(sizes: tuple[int, int, int, int]) -> None:
    k, p, q, seed = sizes
    left, right, table = drawn(seed, (k, p), (k, q), (p, q))
    assert kernel.crossed(left, right) == pytest.approx(left.T @ right)
    assert kernel.spread(left, table) == pytest.approx(left @ table)
    assert kernel.dots(left, left) == pytest.approx((left * left).sum(axis=1))


@given(SIZES)
def test_joining_and_parting(sizes: tuple[int, int, int, int]) -> None:
    k, p, q, seed = sizes
    left, right, slopes = drawn(seed, (k, p), (k, q), (k, p, q))
    pairs = np.einsum("kp,kq->kpq", left, right).reshape(k, -1)
    assert kernel.joined(left, right) == pytest.approx(pairs)
    lefts, rights = kernel.parted(left, right, slopes.reshape(k, -1))
    assert lefts == pytest.approx(np.einsum("kpq,kq->kp", slopes, right))
    assert rights == pytest.approx(np.einsum("kpq,kp->kq", slopes, left))


@given(SIZES)
def test_shares_sum_to_one_and_their_slopes_are_those_of_small_moves(
    sizes: tuple[int, int, int, int],
) -> None:
    k, p, q, seed = sizes
    roots, slopes, move = drawn(seed, (k, p + q), (k, p + q), (k, p + q))
    firsts = np.array([0, p, p + q])
    held, _ = kernel.component_shares(roots, firsts)
    assert (held >= 0).all()
    assert np.add.reduceat(held, firsts[:-1], axis=1) == pytest.approx(np.ones((k, 2)))
    ahead, behind = (kernel.component_shares(roots + h * move, firsts)[0] for h in (1e-6, -1e-6))
    moved = float(((ahead - behind) * slopes).sum()) / 2e-6
    down = kernel.root_slopes(roots, slopes, firsts)
    assert moved == pytest.approx(float((down * move).sum()), rel=1e-3, abs=1e-3)


def test_steps_lead_down_to_the_bottom_of_a_bowl() -> None:
    roots, bottom = np.array([[3.0, -2.0]]), np.array([[1.0, 1.0]])
    memory = np.zeros_like(roots), np.zeros_like(roots)
    for taken in range(400):
        left = 1 - kernel.FADING ** (taken + 1), 1 - kernel.FADING_SQUARES ** (taken + 1)
        kernel.step(roots, roots - bottom, memory, 0.1 * (1 - taken / 400), left)
    assert roots == pytest.approx(bottom, abs=1e-3)


@given(SIZES)
def test_a_product_is_weighed_component_by_component(sizes: tuple[int, int, int, int]) -> None:
    k, p, q, seed = sizes
    weights, shares, factors = drawn(seed, (k,), (k, p + q), (p + q,))
    found = kernel.weighed(
        weights, np.ascontiguousarray(shares.T), np.arange(p + q), factors, np.array([p, p + q])
    )
    sides = (shares[:, :p] @ factors[:p]) * (shares[:, p:] @ factors[p:])
    assert found == pytest.approx(float(weights @ sides))


@given(SIZES)
def test_many_products_of_sums(sizes: tuple[int, int, int, int]) -> None:
    k, g, j, seed = sizes
    weights, sums, wanted, trust = drawn(seed, (k,), (g, k), (j,), (j,))
    draw = np.random.default_rng([seed, 32])
    rows = [draw.choice(g, draw.integers(1, min(g, 4) + 1), replace=False) for _ in range(j)]
    ends = np.cumsum([each.size for each in rows])
    asked, measured = (np.concatenate(rows), ends), (wanted, trust)
    off, by_weight, by_sum = kernel.questions(weights, sums, asked, measured)
    products = np.array([sums[each].prod(axis=0) for each in rows])
    assert off == pytest.approx(products @ weights - wanted)
    assert by_weight == pytest.approx((trust * off) @ products)
    slopes = np.zeros_like(sums)
    for each, pull in zip(rows, trust * off, strict=True):
        for row in each:
            slopes[row] += pull * weights * sums[each[each != row]].prod(axis=0)
    assert by_sum == pytest.approx(slopes)
