"""The stand-in for daily use: what it fits, what it leaves to the noise, the same bits again."""

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from surrogate.small_tables import EVERYTHING, PAIRS, SHAPE, TRIPLES, counts, measured

from casemate.grid import Floats, MeasuredMarginal, MeasuredProduct, Measurement, Product, Scope
from casemate.surrogate.dense import SOFT_STEP_SHARPNESS, DenseSurrogate
from casemate.surrogate.histogram import marginals
from casemate.surrogate.projection import project_on_simplex, soft_to_marginal

# Slowly, on the plain vector ----------------------------------------------------------------------


class SlowSurrogate:
    """The same steps on one flat vector, for questions and single tables."""

    def __init__(self, total: float) -> None:
        self.total, self.shares = total, np.full(72, 1 / 72)
        self.past: list[Measurement] = []
        self.theta: dict[Scope, Floats] = {}

    def update(self, measurement: Measurement) -> None:
        if self.past:
            self.step(measurement)
        self.past.append(measurement)
        for past in sorted(self.past, key=lambda past: isinstance(past, MeasuredProduct)):
            self.step(past)

    def step(self, measurement: Measurement) -> None:
        if isinstance(measurement, MeasuredProduct):
            mask, wanted = measurement.product.dense() > 0, measurement.value / self.total
            inside = self.shares[mask].sum()
            wanted = min(max(wanted, 1e-5), 1 - 1e-5)
            self.shares = self.shares * np.where(mask, wanted / inside, (1 - wanted) / (1 - inside))
            return
        scope = measurement.marginal.scope
        grid = self.shares.reshape(SHAPE)
        marginal = grid.sum(axis=tuple(set(range(4)) - set(scope)), keepdims=True)
        trust = SOFT_STEP_SHARPNESS * self.total / measurement.variance
        factors, self.theta[scope] = soft_to_marginal(
            marginal.squeeze(),
            measurement.values / self.total,
            trust,
            self.theta.get(scope, np.zeros(measurement.values.shape)),
        )
        self.shares = (grid * factors.reshape(marginal.shape)).ravel()


@given(st.integers(0, 10**6))
def test_it_is_the_slow_version_with_every_measurement_replayed(seed: int) -> None:
    cells, total = counts(seed), 5_000.0
    fast, slow = DenseSurrogate(SHAPE, total), SlowSurrogate(total)
    steps: list[Measurement] = [*measured(cells, TRIPLES[:2], 20.0, seed)]
    for k, scope in enumerate([(0, 1), (1, 2, 3), (0,)]):
        draw = np.random.default_rng([seed, k])
        masks = {a: np.arange(SHAPE[a]) == draw.integers(SHAPE[a]) for a in scope}
        product = Product(SHAPE, masks)
        steps.insert(2 * k % 3, MeasuredProduct(product, float(cells.ravel() @ product.dense()), 1))
    for measurement in steps:
        fast.update(measurement)
        slow.update(measurement)
    assert fast.marginal(EVERYTHING).ravel() == pytest.approx(total * slow.shares, rel=1e-7)


# What it fits -------------------------------------------------------------------------------------


def test_all_exact_two_way_tables_are_fitted_from_the_start(seed: int) -> None:
    cells = counts(seed)
    stand_in = DenseSurrogate(SHAPE, 5_000)
    stand_in.learn(measured(cells, PAIRS), sweeps=300)
    for scope, exact in marginals(cells, PAIRS).items():
        assert stand_in.marginal(scope) == pytest.approx(exact, abs=2)
    assert stand_in.marginals(PAIRS).keys() == set(PAIRS)


def test_a_noisy_wide_table_is_approached_and_not_matched(seed: int) -> None:
    cells = counts(seed)
    sharp, blunt = (
        measured(cells, [(0, 1, 2)], 1.0, seed)[0],
        measured(cells, [(0, 1, 2)], 60.0, seed)[0],
    )
    distances = []
    for table in (sharp, blunt):
        stand_in = DenseSurrogate(SHAPE, 5_000)
        stand_in.update(table)
        nearest = 5_000 * project_on_simplex(table.values.ravel() / 5_000).reshape(
            table.values.shape
        )
        distances.append(float(np.abs(stand_in.marginal((0, 1, 2)) - nearest).max()))
    assert distances[0] < 1
    assert distances[1] > 5


def test_replayed_wide_tables_reach_the_minimum_of_their_common_objective(seed: int) -> None:
    """The logarithm of the fit is a sum of multipliers, one for each cell of each table."""
    cells, scopes = counts(seed), TRIPLES[:3]
    tables = measured(cells, scopes, 60.0, seed)
    stand_in = DenseSurrogate(SHAPE, 5_000)
    stand_in.learn(tables, sweeps=400)
    fitted = stand_in.marginal(EVERYTHING)
    slope = np.log(fitted / fitted.sum())
    for table in tables:
        (other,) = set(EVERYTHING) - set(table.marginal.scope)
        pull = SOFT_STEP_SHARPNESS / table.variance * (table.values - fitted.sum(axis=other))
        slope = slope - np.expand_dims(pull, other)
    assert np.ptp(slope) <= 1e-6


def soft_is_closer(seed: int, trust_noise: bool) -> bool:
    """Whether allowing for the noise of four wide tables beats matching four others like them."""
    draw, shape = np.random.default_rng([seed, 15]), (6, 6, 6, 6)
    shares = np.einsum("a,b,c,d->abcd", *draw.dirichlet(np.ones(6), 4)).ravel()
    cells = draw.multinomial(5_000, shares).reshape(shape).astype(float)
    exact, errors = marginals(cells, TRIPLES), []
    for known, tables in enumerate([measured(cells, TRIPLES, 40.0, seed + k) for k in range(2)]):
        variance = 0.0 if known or trust_noise else 1_600.0
        stand_in = DenseSurrogate(shape, 5_000)
        stand_in.learn([MeasuredMarginal(t.marginal, t.values, variance) for t in tables], sweeps=3)
        found = stand_in.marginals(TRIPLES)
        errors.append(sum(float(np.abs(found[s] - exact[s]).sum()) for s in TRIPLES))
    return errors[0] < errors[1]


def test_the_soft_fit_of_wide_tables_is_closer_to_the_truth_than_matching(seed: int) -> None:
    worse = sum(not soft_is_closer(seed + 2 * k, trust_noise=False) for k in range(60))
    assert_rate_at_most(worse, 60, rate=0.1)


def test_the_test_above_would_notice_a_fit_that_trusts_the_noise(seed: int) -> None:
    worse = sum(not soft_is_closer(seed + 2 * k, trust_noise=True) for k in range(60))
    with pytest.raises(AssertionError):
        assert_rate_at_most(worse, 60, rate=0.1)
