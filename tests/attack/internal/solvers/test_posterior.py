from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most
from scipy.stats import norm

from casemate.attack.solvers.laws import AnswerLaw
from casemate.attack.solvers.least_squares import least_squares
from casemate.attack.solvers.posterior import Posterior, posterior
from casemate.exact import Floats, Rows, System


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
    dense = rng.integers(0, 2, (height, people))
    truth = rng.integers(0, 2, people).astype(np.float64)
    noise: dict[AnswerLaw, Callable[[], Floats]] = {
        AnswerLaw.GAUSSIAN: lambda: rng.normal(0, spread, height),
        AnswerLaw.LAPLACE: lambda: rng.laplace(0, spread, height),
        AnswerLaw.UNIFORM: lambda: rng.uniform(-spread, spread, height),
    }
    return Rows.of(System.of(dense.tolist())), dense @ truth + noise[law](), truth


def decoded(rng: np.random.Generator, people: int, law: AnswerLaw, level: float) -> tuple[int, int]:
    """How many values the posterior gets wrong, and how many least squares does."""
    spread = level * np.sqrt(people)
    rows, answers, truth = half_subsets(rng, people, law, spread)
    found = chances(rows, answers, law, spread, rng)
    plain = least_squares(rows, answers).values > 0.5
    return int((found.values != truth).sum()), int((plain != truth).sum())


# Exactly true


def test_exact_chances_of_a_small_system(seed: int) -> None:
    """One answer 1.2 for x1 + x2 and standard deviation 1: four states, written out."""
    rows = Rows.of(System.of([[1, 1]]))
    found = chances(
        rows,
        np.array([1.2]),
        law=AnswerLaw.GAUSSIAN,
        spread=1.0,
        random=np.random.default_rng(seed),
        sweeps=2_000,
    )
    none, one, two = np.exp(-0.5 * np.array([1.2, 0.2, 0.8]) ** 2)
    expected = (one + two) / (none + 2 * one + two)
    np.testing.assert_allclose(found.chances[:, 1], expected, atol=0.05)
    assert found.converged and found.agreement > 0.9


def test_modes_means_and_intervals_are_read_off_the_chances() -> None:
    chances = np.array([[0.02, 0.5, 0.44, 0.04], [0.0, 0.0, 1.0, 0.0], [0.06, 0.04, 0.0, 0.9]])
    found = Posterior(np.array([0.0, 5.0, -1.0]), chances, 1.0, converged=True, sweeps=1)
    assert found.values.tolist() == [1, 7, 2]
    assert found.probability.tolist() == [0.5, 1.0, 0.9]
    low, high = found.interval(0.9)
    assert low.tolist() == [1, 7, -1] and high.tolist() == [2, 7, 2]
    with pytest.raises(ValueError, match="between 0 and 1"):
        found.interval(1.0)


def test_the_same_generator_gives_the_same_chances() -> None:
    rows, answers, _ = half_subsets(np.random.default_rng(1), 20, AnswerLaw.GAUSSIAN, 1.0)
    one, two = (
        chances(
            rows,
            answers,
            law=AnswerLaw.GAUSSIAN,
            spread=1.0,
            random=np.random.default_rng(7),
        )
        for _ in range(2)
    )
    assert (one.chances == two.chances).all()


def test_bounds_that_nothing_keeps_are_not_called_converged(seed: int) -> None:
    rows = Rows.of(System.of([[1], [1]]))
    found = chances(
        rows,
        np.array([0.0, 1.0]),
        law=AnswerLaw.UNIFORM,
        spread=0.2,
        random=np.random.default_rng(seed),
    )
    assert not found.converged


def test_rounded_sums_leave_what_rounds_to_them(seed: int) -> None:
    """x1 + x2 + x3 rounds to 2 in steps of 2, between 1 and 3; x1 + x2 is 2 exactly."""
    rows = Rows.of(System.of([[1, 1, 1], [1, 1, 0]]))
    found = chances(
        rows,
        np.array([2.0, 2.0]),
        law=AnswerLaw.UNIFORM,
        spread=np.array([1.0, 0.25]),
        random=np.random.default_rng(seed),
        sweeps=1_000,
    )
    assert found.converged
    np.testing.assert_allclose(found.chances[:, 1], [1.0, 1.0, 0.5], atol=0.05)


def test_progress_is_told_of_every_sweep(seed: int) -> None:
    rows, answers, _ = half_subsets(np.random.default_rng(seed), 10, AnswerLaw.GAUSSIAN, 1.0)
    seen: list[int] = []
    found = chances(
        rows,
        answers,
        law=AnswerLaw.GAUSSIAN,
        spread=1.0,
        random=np.random.default_rng(seed),
        warm_up=5,
        sweeps=7,
        progress=lambda sweep, *_: seen.append(sweep),
    )
    assert seen == list(range(1, 13)) and found.sweeps == 12


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
        chances(Rows.of(System.of([[1, 1]])), np.ones(1), **(given | change))  # type: ignore[arg-type]  # wrong on purpose


# True with a stated probability


def right_of_one_each(seed: int, law: AnswerLaw, claimed: float) -> tuple[int, float, int]:
    """In many small worlds: how often one value is right, what was expected, of how many."""
    right, expected, worlds = 0, 0.0, 200
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


def test_it_gets_no_more_wrong_than_the_theory_of_least_squares(seed: int) -> None:
    """Half subsets, four for each value: least squares gets 1 - Phi(0.5 / (1.155 c)) wrong."""
    wrong = sum(
        decoded(np.random.default_rng([seed, case]), 128, AnswerLaw.GAUSSIAN, 0.3)[0]
        for case in range(8)
    )
    assert_rate_at_most(wrong, 8 * 128, norm.sf(0.5 / (1.155 * 0.3)))


def test_answers_half_as_many_would_be_noticed(seed: int) -> None:
    wrong = 0
    for case in range(8):
        rng = np.random.default_rng([seed, case])
        rows, answers, truth = half_subsets(rng, 128, AnswerLaw.GAUSSIAN, 0.3 * np.sqrt(128), 2)
        wrong += int(((least_squares(rows, answers).values > 0.5) != truth).sum())
    with pytest.raises(AssertionError):
        assert_rate_at_most(wrong, 8 * 128, norm.sf(0.5 / (1.155 * 0.3)))


def test_noise_with_a_bound_is_decoded_where_least_squares_is_not(seed: int) -> None:
    mine, plain = np.sum(
        [
            decoded(np.random.default_rng([seed, case]), 128, AnswerLaw.UNIFORM, 0.4)
            for case in range(4)
        ],
        axis=0,
    )
    assert plain > 5 * (mine + 1)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.2, 0.3, 0.5, 1.0])
def test_at_the_threshold_it_is_better_than_least_squares(level: float, seed: int) -> None:
    results = [
        decoded(np.random.default_rng([seed, case]), 512, AnswerLaw.GAUSSIAN, level)
        for case in range(20)
    ]
    mine, plain = np.sum(results, axis=0)
    assert mine < plain
    assert_rate_at_most(int(mine), 20 * 512, norm.sf(0.5 / (1.155 * level)))
