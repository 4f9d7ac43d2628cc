"""A sweep leaves the posterior as it is: draws from it stay draws from it, exactly."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from chance import assert_follows

from casemate.attack.solvers import posterior as gibbs
from casemate.attack.solvers.laws import AnswerLaw, Noisy
from casemate.attack.solvers.posterior import MarkovChain, PosteriorModel
from casemate.exact import Floats, Rows, System

DRAWS = 3_000


class World:
    """A few whole unknowns and their exact posterior, by trying everything."""

    def __init__(self, law: AnswerLaw, shape: str, *, sharpness: float = 1.0) -> None:
        dense, self.right, self.spread, self.low, self.high = SHAPES[shape]
        self.law, self.sharpness = law, sharpness
        self.equations = Rows.of(System.of(dense.astype(int).tolist()))
        ranges = zip(self.low, self.high, strict=True)
        self.states = np.array(list(product(*(np.arange(a, b + 1) for a, b in ranges))))
        self.chances = self._exact(dense)

    def _exact(self, dense: Floats) -> Floats:
        rest = np.abs(self.right - self.states @ dense.T) / self.spread
        loss = {
            AnswerLaw.GAUSSIAN: rest**2 / 2,
            AnswerLaw.LAPLACE: rest,
            AnswerLaw.UNIFORM: np.maximum(0, rest - 1 - 1e-9),
        }[self.law].sum(axis=1)
        weights = np.exp(-self.sharpness * (loss - loss.min()))
        found: Floats = weights / weights.sum()
        return found

    def after_sweeps(
        self,
        random: np.random.Generator,
        spread: float = 1.0,
        draws: int = DRAWS,
        sweeps: int = 1,
    ) -> list[int]:
        """Which state each of many draws from the posterior has become."""
        answers = Noisy.of(self.equations, self.right, self.law, spread * self.spread)
        model = PosteriorModel(answers, self.low, self.high)
        places = {tuple(state): place for place, state in enumerate(self.states)}
        found = []
        for start in random.choice(len(self.states), draws, p=self.chances):
            chain = MarkovChain(model, self.states[start], random)
            for _ in range(sweeps):
                chain.sweep(self.sharpness)
            found.append(places[tuple(chain.point)])
        return found

    def cumulative(self) -> Callable[[int], float]:
        sums = np.concatenate([[0.0], np.cumsum(self.chances)])
        return lambda state: float(sums[min(max(state + 1, 0), len(sums) - 1)])


SHAPES: dict[str, tuple[Floats, Floats, Floats, Floats, Floats]] = {
    "narrow": (
        np.array([[1.0, 1, 0, 2], [0, 1, 1, 1], [1, 2, 1, 0], [0, 0, 1, 1], [2, 0, 0, 1]]),
        np.array([2.6, 2.2, 1.5, 1.4, 3.7]),
        np.array([1.3, 1.1, 1.5, 1.3, 2.0]),
        np.array([0.0, -1, 0, 1]),
        np.array([1.0, 1, 1, 2]),
    ),
    "wide": (
        np.array([[1.0, 1], [2, 1]]),
        np.array([70.4, 141.3]),
        np.array([9.0, 9.0]),
        np.zeros(2),
        np.array([149.0, 1]),
    ),
    "known total": (
        np.vstack([np.ones(5), np.eye(5)]),
        np.array([2.0, -1.79, -1.57, -1.35, 0.13, 0.17]),
        np.array([0.02, 1, 1, 1, 1, 1]),
        np.zeros(5),
        np.ones(5),
    ),
}

WORLDS = {
    "Gaussian": World(AnswerLaw.GAUSSIAN, "narrow"),
    "Gaussian, hot": World(AnswerLaw.GAUSSIAN, "narrow", sharpness=0.3),
    "Gaussian, wide": World(AnswerLaw.GAUSSIAN, "wide"),
    "Laplace": World(AnswerLaw.LAPLACE, "narrow"),
    "Laplace, wide": World(AnswerLaw.LAPLACE, "wide"),
    "uniform, wall": World(AnswerLaw.UNIFORM, "narrow", sharpness=3.0),
    "uniform, closed": World(AnswerLaw.UNIFORM, "narrow", sharpness=1e9),
}


@pytest.mark.parametrize("pairs", [gibbs.MOST_PAIRS, 0], ids=["stand-in", "neighbours"])
@pytest.mark.parametrize("world", list(WORLDS))
def test_a_sweep_leaves_the_posterior_as_it_is(
    world: str, pairs: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gibbs, "MOST_PAIRS", pairs)
    made = WORLDS[world]
    assert_follows(made.after_sweeps(_rng(seed)), made.cumulative())


@pytest.mark.parametrize("pairs", [gibbs.MOST_PAIRS, 0], ids=["stand-in", "neighbours"])
@pytest.mark.parametrize("world", ["Gaussian", "Laplace"])
def test_a_sweep_for_another_spread_would_be_noticed(
    world: str, pairs: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gibbs, "MOST_PAIRS", pairs)
    made = WORLDS[world]
    with pytest.raises(AssertionError):
        assert_follows(made.after_sweeps(_rng(seed), spread=3.0), made.cumulative())


class Once(np.random.Generator):
    """A generator that draws without putting back: each unknown begins one swap in a sweep."""

    def integers(self, _: int, high: int, size: int) -> Any:  # type: ignore[override]  # one use
        assert size == high
        return self.permutation(size)


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [gibbs.MOST_PAIRS, 0], ids=["stand-in", "neighbours"])
def test_swaps_that_begin_anywhere_leave_the_posterior_as_it_is(
    pairs: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gibbs, "MOST_PAIRS", pairs)
    made = World(AnswerLaw.GAUSSIAN, "known total")
    found = made.after_sweeps(_rng(seed), draws=40_000, sweeps=6)
    assert_follows(found, made.cumulative())


@pytest.mark.slow
def test_swaps_that_begin_once_at_each_unknown_would_be_noticed(seed: int) -> None:
    """A swap can be undone from its other end only."""
    made = World(AnswerLaw.GAUSSIAN, "known total")
    found = made.after_sweeps(Once(np.random.PCG64(seed)), draws=40_000, sweeps=6)
    with pytest.raises(AssertionError):
        assert_follows(found, made.cumulative())


def test_a_unit_goes_from_one_to_another_where_the_sum_is_known_well(seed: int) -> None:
    """x1 + x2 = 1 to a thousandth: no value can change alone, and both points are met."""
    rows = Rows.of(System.of([[1, 1]]))
    answers = Noisy.of(rows, np.ones(1), AnswerLaw.GAUSSIAN, 1e-3)
    chain = MarkovChain(
        PosteriorModel(answers, np.zeros(2), np.ones(2)), np.array([1.0, 0.0]), _rng(seed)
    )
    met = set()
    for _ in range(200):
        chain.sweep(1.0)
        met.add(tuple(chain.point))
    assert met == {(0.0, 1.0), (1.0, 0.0)}


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
