"""The last theorem of the source, with the oracle off: queries (x, 1), whole noisy answers."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from chance import assert_rate_at_most
from scipy.optimize import linprog

from casemate.attack.one_bit.laws import Law, RaisedCosine, Uniform
from casemate.attack.one_bit.limit import full_information
from casemate.attack.one_bit.oracle import Floats

SECRET = np.array([0.3, 0.6])
Fit = Callable[[Floats, Floats], Floats]


def lines(count: int, rng: np.random.Generator) -> Floats:
    return np.column_stack((rng.random(count), np.ones(count)))


def least_squares(queries: Floats, answers: Floats) -> Floats:
    found, *_ = np.linalg.lstsq(queries, answers)
    return np.asarray(found)


def least_worst(queries: Floats, answers: Floats) -> Floats:
    """Chebyshev's fit: the line whose largest residual is smallest."""
    side = np.ones((len(queries), 1))
    found = linprog(
        [0, 0, 1],
        A_ub=np.block([[queries, -side], [-queries, -side]]),
        b_ub=np.concatenate((answers, -answers)),
        bounds=[(None, None), (None, None), (0, None)],
    )
    assert found.x is not None
    return np.asarray(found.x[:2])


def mean_errors(fit: Fit, law: Law, count: int, runs: int, seed: int) -> Floats:
    """The average error on the queries that were learnt from, once for each run."""
    rng, found = np.random.default_rng([seed, count]), np.empty(runs)
    for run in range(runs):
        queries = lines(count, rng)
        fitted = fit(queries, queries @ SECRET + law.sample(rng, count))
        found[run] = np.abs(queries @ (fitted - SECRET)).mean()
    return found


def whole_answer_bound(law: Law, count: int) -> float:
    """Van Trees' bound on what is known at the end of a stream that an adversary sees whole."""
    queries = lines(count, np.random.default_rng(0))
    gathered = full_information(law) * queries.T @ queries + 4 * math.pi**2 * np.eye(2)
    return math.sqrt(np.mean(np.sum((queries @ np.linalg.inv(gathered)) * queries, axis=1)))


@pytest.mark.theorem("000: Theorem 6.1 (for smooth noise)")
def test_for_smooth_noise_no_algorithm_beats_one_over_the_root_even_without_the_oracle() -> None:
    law = RaisedCosine(1.0)
    bounds = [whole_answer_bound(law, 10**k) * math.sqrt(10**k) for k in (4, 5, 6)]
    assert bounds == pytest.approx([bounds[-1]] * 3, rel=0.01)
    assert bounds[-1] > 0.4


@pytest.mark.theorem("000: Theorem 6.1 (attained for smooth noise)")
def test_for_smooth_noise_least_squares_has_that_rate(seed: int) -> None:
    runs, law = 50, RaisedCosine(1.0)
    for count in (300, 3_000):
        reached = mean_errors(least_squares, law, count, runs, seed)
        hits = int((reached * math.sqrt(count) > 1.6).sum())
        assert_rate_at_most(hits, runs, 0.05)
        with pytest.raises(AssertionError):
            assert_rate_at_most(int((reached * count > 8).sum()), runs, 0.05)


@pytest.mark.theorem("000: Theorem 6.1 (erratum: not for every noise)")
def test_for_uniform_noise_chebyshevs_fit_errs_like_one_over_the_number_of_queries(
    seed: int,
) -> None:
    runs, law = 30, Uniform(1.0)
    assert full_information(law) == math.inf
    for count in (100, 1_600):
        reached = mean_errors(least_worst, law, count, runs, seed)
        assert_rate_at_most(int((reached * count > 8).sum()), runs, 0.05)
    squares = mean_errors(least_squares, law, 1_600, runs, seed)
    with pytest.raises(AssertionError):
        assert_rate_at_most(int((squares * 1_600 > 8).sum()), runs, 0.05)


@pytest.mark.theorem("000: Theorem 6.1 (erratum: the mean of symmetric noise)")
def test_the_mean_of_symmetric_noise_is_above_a_positive_number_at_most_half_the_time(
    seed: int,
) -> None:
    """The printed proof needs a chance of 1 - o(1); it holds of the size of the mean only."""
    count, runs = 1_000, 4_000
    noise = Uniform(1.0).sample(np.random.default_rng(seed), count * runs).reshape(runs, count)
    means, bar = noise.mean(axis=1), 1 / math.sqrt(count * math.log(count))
    assert_rate_at_most(int((means > bar).sum()), runs, 0.5)
    with pytest.raises(AssertionError):
        assert_rate_at_most(int((means <= bar).sum()), runs, 0.5)
