"""A sweep leaves the posterior as it is: draws from it stay draws from it, exactly."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from attack.equations import bits, loss, stored, subsets
from chance import assert_follows, assert_rate_at_most
from scipy.stats import norm

from casemate.attack.solvers import posterior as gibbs
from casemate.attack.solvers.answer_loss import AnswerLaw, Noisy
from casemate.attack.solvers.least_squares import least_squares
from casemate.attack.solvers.posterior import (
    MarkovChain,
    Posterior,
    PosteriorModel,
    gram,
    posterior,
)
from casemate.exact import Floats, Rows


def chances(
    rows: Rows,
    right: Floats,
    law: AnswerLaw,
    spread: Floats | float,
    random: np.random.Generator,
    **options: Any,
) -> Posterior:
    """The posterior of yes/no values, from least squares."""
    given: dict[str, Any] = {"low": 0, "high": 1, "start": least_squares(rows, right).values}
    return posterior(rows, right, law=law, spread=spread, random=random, **(given | options))


def half_subsets(
    rng: np.random.Generator, people: int, law: AnswerLaw, spread: float, per_person: int = 4
) -> tuple[Rows, Floats, Floats]:
    """Noisy sums of random halves of yes/no values: the setting of Dinur and Nissim."""
    height = per_person * people
    dense, truth = subsets(rng, height, people), bits(rng, people)
    noise: dict[AnswerLaw, Callable[[], Floats]] = {
        AnswerLaw.GAUSSIAN: lambda: rng.normal(0, spread, height),
        AnswerLaw.LAPLACE: lambda: rng.laplace(0, spread, height),
        AnswerLaw.UNIFORM: lambda: rng.uniform(-spread, spread, height),
    }
    return stored(dense), dense @ truth + noise[law](), truth


# Exactly true


def test_exact_chances_of_a_small_system(seed: int) -> None:
    """One answer 1.2 for x1 + x2 and standard deviation 1: four states, written out."""
    rng, gaussian = np.random.default_rng(seed), AnswerLaw.GAUSSIAN
    found = chances(stored([[1, 1]]), np.array([1.2]), gaussian, 1.0, rng, sweeps=2_000)
    none, one, two = np.exp(-0.5 * np.array([1.2, 0.2, 0.8]) ** 2)
    expected = (one + two) / (none + 2 * one + two)
    np.testing.assert_allclose(found.chances[:, 1], expected, atol=0.05)
    assert found.converged and found.agreement > 0.9


def test_bounds_that_nothing_keeps_are_not_called_converged(seed: int) -> None:
    rng, answers = np.random.default_rng(seed), np.array([0.0, 1.0])
    assert not chances(stored([[1], [1]]), answers, AnswerLaw.UNIFORM, 0.2, rng).converged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spread": 0.0}, "spread above 0"),
        ({"high": np.inf}, "finite range"),
        ({"high": 1e9}, "too many to weigh"),
        ({"sweeps": 0}, "need a sweep"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, object], message: str) -> None:
    given = {"law": AnswerLaw.GAUSSIAN, "spread": 1.0, "random": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        chances(stored([[1, 1]]), np.ones(1), **(given | change))  # type: ignore[arg-type]  # wrong on purpose


# True with a stated probability


def right_of_one_each(seed: int, law: AnswerLaw, claimed: float) -> tuple[int, float, int]:
    """In many small worlds: how often one value is right, what was expected, of how many."""
    right, expected, worlds = 0, 0.0, 120
    for world in range(worlds):
        rng = np.random.default_rng([seed, world])
        rows, answers, truth = half_subsets(rng, 16, law, 1.6)
        found = chances(rows, answers, law, 1.6 * claimed, rng, warm_up=15, sweeps=40)
        right += int(found.values[0] == truth[0])
        expected += float(found.probability[0])
    return right, expected / worlds, worlds


@pytest.mark.parametrize("law", [AnswerLaw.GAUSSIAN, AnswerLaw.LAPLACE])
def test_values_are_right_as_often_as_they_should_be(law: AnswerLaw, seed: int) -> None:
    """Independent events of different chances; their tails are within those of the mean chance."""
    right, expected, worlds = right_of_one_each(seed, law, claimed=1.0)
    assert_rate_at_most(right, worlds, expected)
    assert_rate_at_most(worlds - right, worlds, 1 - expected)


def test_chances_from_too_small_a_spread_would_be_noticed(seed: int) -> None:
    right, expected, worlds = right_of_one_each(seed, AnswerLaw.GAUSSIAN, claimed=0.3)
    with pytest.raises(AssertionError):
        assert_rate_at_most(worlds - right, worlds, 1 - expected)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.2, 0.3, 0.5, 1.0])
def test_at_the_threshold_it_is_better_than_least_squares(level: float, seed: int) -> None:
    mine, plain, law, spread = 0, 0, AnswerLaw.GAUSSIAN, level * np.sqrt(512)
    for case in range(20):
        rng = np.random.default_rng([seed, case])
        rows, answers, truth = half_subsets(rng, 512, law, spread)
        mine += int((chances(rows, answers, law, spread, rng).values != truth).sum())
        plain += int(((least_squares(rows, answers).values > 0.5) != truth).sum())
    assert mine < plain
    assert_rate_at_most(mine, 20 * 512, norm.sf(0.5 / (1.155 * level)))


DRAWS = 2_000


class World:
    """A few whole unknowns and their exact posterior, by trying everything."""

    def __init__(self, law: AnswerLaw, shape: str, *, sharpness: float = 1.0) -> None:
        dense, self.right, self.spread, self.low, self.high = SHAPES[shape]
        self.law, self.sharpness = law, sharpness
        self.equations = stored(dense)
        ranges = zip(self.low, self.high, strict=True)
        self.states = np.array(list(product(*(np.arange(a, b + 1) for a, b in ranges))))
        lost = loss(law, (self.right - self.states @ dense.T) / self.spread).sum(axis=1)
        weights = np.exp(-sharpness * (lost - lost.min()))
        self.chances: Floats = weights / weights.sum()

    def follow_sweeps(
        self,
        random: np.random.Generator,
        spread: float = 1.0,
        draws: int = DRAWS,
        sweeps: int = 1,
    ) -> None:
        """Assert that draws from the posterior are draws from it after some sweeps."""
        answers = Noisy.of(self.equations, self.right, self.law, spread * self.spread)
        model = PosteriorModel(answers, self.low, self.high)
        places = {tuple(state): place for place, state in enumerate(self.states)}
        found = []
        for start in random.choice(len(self.states), draws, p=self.chances):
            chain = MarkovChain(model, self.states[start], random)
            for _ in range(sweeps):
                chain.sweep(self.sharpness)
            found.append(places[tuple(chain.point)])
        sums = np.concatenate([[0.0], np.cumsum(self.chances)])
        assert_follows(found, lambda state: float(sums[min(max(state + 1, 0), len(sums) - 1)]))


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


@pytest.fixture(params=[gibbs.MOST_PAIRS, 0], ids=["stand-in", "neighbours"])
def _pairs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gibbs, "MOST_PAIRS", request.param)


@pytest.mark.usefixtures("_pairs")
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_a_sweep_leaves_the_posterior_as_it_is(world: World, seed: int) -> None:
    world.follow_sweeps(_rng(seed))


@pytest.mark.usefixtures("_pairs")
@pytest.mark.parametrize("world", ["Gaussian", "Laplace"])
def test_a_sweep_for_another_spread_would_be_noticed(world: str, seed: int) -> None:
    with pytest.raises(AssertionError):
        WORLDS[world].follow_sweeps(_rng(seed), spread=3.0)


class Once(np.random.Generator):
    """A generator that draws without putting back: each unknown begins one swap in a sweep."""

    def integers(self, _: int, high: int, size: int) -> Any:  # type: ignore[override]  # one use
        if size != high:
            raise ValueError("each unknown once")
        return self.permutation(size)


@pytest.mark.slow
@pytest.mark.usefixtures("_pairs")
def test_swaps_that_begin_anywhere_leave_the_posterior_as_it_is(seed: int) -> None:
    made = World(AnswerLaw.GAUSSIAN, "known total")
    made.follow_sweeps(_rng(seed), draws=40_000, sweeps=6)


@pytest.mark.slow
def test_swaps_that_begin_once_at_each_unknown_would_be_noticed(seed: int) -> None:
    """A swap can be undone from its other end only."""
    made = World(AnswerLaw.GAUSSIAN, "known total")
    with pytest.raises(AssertionError):
        made.follow_sweeps(Once(np.random.PCG64(seed)), draws=40_000, sweeps=6)


def test_a_unit_goes_from_one_to_another_where_the_sum_is_known_well(seed: int) -> None:
    """x1 + x2 = 1 to a thousandth: no value can change alone, and both points are met."""
    answers = Noisy.of(stored([[1, 1]]), np.ones(1), AnswerLaw.GAUSSIAN, 1e-3)
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


@pytest.mark.parametrize("advantage", [1e9, 1e-9], ids=["dense", "sparse"])
@pytest.mark.parametrize("choices", [[0, 1], [0, 0, 1, -2, 3]], ids=["plain", "weighted"])
@pytest.mark.parametrize("case", range(2))
def test_both_ways_give_the_product_of_the_matrix_with_itself(
    advantage: float,
    choices: list[int],
    case: int,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gibbs, "DENSE_ADVANTAGE", advantage)
    monkeypatch.setattr(gibbs, "BATCH_ENTRIES", 64)
    rng = np.random.default_rng([seed, case])
    dense = rng.choice(choices, (int(rng.integers(1, 50)), int(rng.integers(1, 20))))
    weights = rng.random(len(dense))
    found = gram(stored(dense), weights)
    np.testing.assert_allclose(found, dense.T @ (weights[:, None] * dense), rtol=1e-5, atol=1e-5)
