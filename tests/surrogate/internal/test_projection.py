"""Projections against a general optimiser, and the equations they solve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from surrogate.small_tables import PAIRS, counts, measured

from casemate.grid import Floats, Marginal, MeasuredMarginal
from casemate.papers.database_updates import relative_entropy
from casemate.surrogate.projection import (
    MIN_MEASURED_FRACTION,
    MIN_SOFT_STEP_SHARE,
    exponential_tilt,
    inside_and_outside,
    project_on_simplex,
    reconcile,
    soft_to_marginal,
    to_marginal,
    to_mean,
)

fractions = st.floats(0.01, 0.99)


def distribution(seed: int, cells: int = 6) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(cells)) * 0.94 + 0.06 / cells


def nearest(start: Floats, matrix: Floats, wanted: Floats) -> Floats:
    """The distribution with matrix @ x = wanted that is nearest in relative entropy, slowly.

    It is start * exp(matrix.T @ y) / Z with the y that is best for the dual, which is smooth.
    """

    def dual(y: Floats) -> float:
        return float(np.log((start * np.exp(y @ matrix)).sum()) - y @ wanted)

    y = optimize.minimize(dual, np.zeros(len(wanted)), method="BFGS", tol=1e-12).x
    raised = start * np.exp(y @ matrix)
    return np.asarray(raised / raised.sum())


# Hard ---------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.floats(0.05, 0.95))
def test_a_question_is_met_by_the_nearest_distribution(seed: int, wanted: float) -> None:
    start, mask = distribution(seed), np.array([1.0, 1, 0, 1, 0, 0])
    inside = float(start @ mask)
    factors = inside_and_outside(inside, 1 - inside, wanted)
    moved = start * np.where(mask > 0, *factors)
    assert moved @ mask == pytest.approx(wanted)
    assert moved.sum() == pytest.approx(1)
    assert moved == pytest.approx(nearest(start, mask[None], np.array([wanted])), abs=1e-5)


@given(fractions, fractions, fractions)
def test_a_projection_takes_off_exactly_the_difference_of_two_coins(
    truth: float, believed: float, measured: float
) -> None:
    """And so, without noise, at least 2 gap^2 (Pinsker)."""
    inside, outside = inside_and_outside(believed, 1 - believed, measured)
    data, start = np.array([truth, 1 - truth]), np.array([believed, 1 - believed])
    moved = start * [inside, outside]
    drop = relative_entropy(data, start) - relative_entropy(data, moved)
    coins = relative_entropy(data, start) - relative_entropy(
        data, np.array([measured, 1 - measured])
    )
    assert drop == pytest.approx(coins, abs=1e-12)
    assert relative_entropy(data, start) >= 2 * (truth - believed) ** 2 - 1e-15


def test_a_measured_fraction_is_never_nothing_and_never_all() -> None:
    assert inside_and_outside(0.5, 0.5, -3.0) == pytest.approx(
        (2 * MIN_MEASURED_FRACTION, 2 - 2 * MIN_MEASURED_FRACTION)
    )
    assert inside_and_outside(0.5, 0.5, 7.0) == pytest.approx(
        (2 - 2 * MIN_MEASURED_FRACTION, 2 * MIN_MEASURED_FRACTION)
    )


def test_a_table_is_matched_once_it_is_a_distribution(seed: int) -> None:
    marginal, measured = distribution(seed).reshape(2, 3), distribution(seed + 1).reshape(2, 3)
    assert marginal * to_marginal(marginal, measured) == pytest.approx(measured)
    below = measured - np.array([[0.5, 0, 0], [0, 0, 0]])
    moved = marginal * to_marginal(marginal, below)
    assert moved.sum() == pytest.approx(1)
    assert (moved > 0).all()
    assert moved == pytest.approx(
        project_on_simplex(below.ravel()).reshape(2, 3), abs=2 * MIN_MEASURED_FRACTION
    )


def test_what_was_measured_in_an_empty_cell_goes_to_the_others() -> None:
    marginal, measured = np.array([0.0, 0.25, 0.75]), np.array([0.5, 0.3, 0.2])
    assert marginal * to_marginal(marginal, measured) == pytest.approx([0, 0.6, 0.4])


@given(st.integers(0, 10**6), st.floats(0.1, 0.9))
def test_a_weighted_question_is_met_by_the_nearest_distribution(seed: int, where: float) -> None:
    start, weights = distribution(seed), np.random.default_rng(seed).normal(0, 5, 6)
    wanted = float(weights.min() + where * (weights.max() - weights.min()))
    moved = start * to_mean(start, weights, wanted)
    assert moved @ weights == pytest.approx(wanted, abs=1e-6)
    assert moved.sum() == pytest.approx(1)
    unit = (weights - weights.min()) / np.ptp(weights)
    assert moved == pytest.approx(nearest(start, unit[None], np.array([where])), abs=1e-4)


def test_a_weighted_question_beyond_its_weights_stays_finite(seed: int) -> None:
    start, weights = distribution(seed), np.arange(6.0)
    moved = start * to_mean(start, weights, 99.0)
    assert np.isfinite(moved).all() and 4.9 < moved @ weights < 5
    assert (to_mean(start, np.full(6, 2.0), 1.0) == 1).all()


@given(st.integers(0, 10**6), st.floats(-5, 5))
def test_a_tilt_keeps_the_total(seed: int, eta: float) -> None:
    start, weights = distribution(seed), np.random.default_rng(seed).random(6)
    raised = start * np.exp(eta * weights)
    assert start * exponential_tilt(start, weights, eta) == pytest.approx(raised / raised.sum())


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=8))
def test_the_nearest_point_of_the_simplex_satisfies_its_conditions(values: list[float]) -> None:
    point = np.array(values)
    nearest_point = project_on_simplex(point)
    assert nearest_point.sum() == pytest.approx(1)
    assert (nearest_point >= 0).all()
    shift = point - nearest_point
    held = nearest_point > 0
    assert np.ptp(shift[held]) <= 1e-12  # all that are kept move alike
    assert (shift[~held] <= shift[held].max() + 1e-12).all()  # and the others would go below zero


# Soft ---------------------------------------------------------------------------------------------


def objective(moved: Floats, start: Floats, measured: Floats, sharpness: float) -> float:
    return relative_entropy(moved, start) + sharpness / 2 * float(((measured - moved) ** 2).sum())


@given(st.integers(0, 10**6), st.floats(0.1, 3e3), st.sampled_from([2, 6, 200]))
def test_a_soft_step_is_the_minimum_of_its_objective(
    seed: int, sharpness: float, cells: int
) -> None:
    """Its slope is the same in every direction that keeps the total, which a convex one needs."""
    draw = np.random.default_rng(seed)
    start, truth = draw.dirichlet(np.full(cells, 0.3), 2) * 0.99 + 0.01 / cells
    measured = truth + draw.normal(0, 0.3 / cells, cells)
    factors, theta = soft_to_marginal(start, measured, sharpness, np.zeros(cells))
    moved = start * factors
    assert moved.sum() == pytest.approx(1)
    free, pull = moved > 2 * MIN_SOFT_STEP_SHARE, sharpness * (measured - moved)
    assert np.ptp((np.log(factors) - pull)[free]) <= 1e-9 * (1 + sharpness)
    assert theta[free] == pytest.approx(pull[free], abs=1e-9 * (1 + sharpness))
    assert objective(moved, start, measured, sharpness) <= objective(
        start, start, measured, sharpness
    )


@given(st.integers(0, 10**6), st.floats(1e3, 1e15), st.floats(0.01, 10))
def test_a_soft_step_survives_any_sharpness_and_any_noise(
    seed: int, sharpness: float, noise: float
) -> None:
    moved, theta = distribution(seed), np.zeros(6)
    for k in range(5):
        measured = moved + np.random.default_rng([seed, k]).normal(0, noise, 6)
        factors, theta = soft_to_marginal(moved, measured, sharpness, theta)
        moved = moved * factors
        assert moved.sum() == pytest.approx(1)
        assert (moved > MIN_SOFT_STEP_SHARE / 10).all() and np.isfinite(theta).all()


def test_the_sharper_the_closer_and_a_cell_without_mass_stays(seed: int) -> None:
    start, measured = np.append(distribution(seed), 0.0), np.append(distribution(seed + 1), 0.0)
    distances = []
    for sharpness in (1e-3, 1.0, 1e3, 1e9):
        factors, _ = soft_to_marginal(start, measured, sharpness, np.zeros(7))
        assert factors[-1] == 1
        distances.append(float(np.abs(start * factors - measured).max()))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-6


# Tables that agree ------------------------------------------------------------------------------


def in_one_world(tables: list[MeasuredMarginal], total: float) -> list[Floats]:
    moved = reconcile(tables, [table.values[..., None] for table in tables], np.array([total]))
    return [values[..., 0] for values in moved]


def test_tables_agree_on_the_total_and_on_every_attribute(seed: int) -> None:
    tables = measured(counts(seed), PAIRS, 50.0, seed)
    moved = in_one_world(tables, 100.0)
    for attribute in range(4):
        sums = [
            values.sum(axis=tuple(i for i, a in enumerate(t.marginal.scope) if a != attribute))
            for t, values in zip(tables, moved, strict=True)
            if attribute in t.marginal.scope
        ]
        assert all(one == pytest.approx(sums[0]) for one in sums)
        assert sums[0].sum() == pytest.approx(100)


def test_the_sharper_table_counts_more() -> None:
    sharp = MeasuredMarginal(Marginal((0,)), np.array([8.0, 2.0]), 1.0)
    blunt = MeasuredMarginal(Marginal((0,)), np.array([4.0, 6.0]), 3.0)
    for values in in_one_world([sharp, blunt], 10.0):
        assert values == pytest.approx([7, 3])
