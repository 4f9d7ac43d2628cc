import numpy as np
import pytest
from chance import assert_rate_at_most

from casemate.attack.one_bit.laws import Cauchy, Gaussian, Laplace, Law, Logistic, StudentT, Uniform
from casemate.attack.one_bit.oracle import NoisyOracle
from casemate.attack.one_bit.streams import generic

W = np.array([0.2, 0.9, 0.4, 0.6])
LAWS: list[Law | None] = [None, Uniform(1.0), Gaussian(1.0), Laplace(1.0), Logistic(1.0)]


@pytest.mark.parametrize("law", [*LAWS, Cauchy(1.0), StudentT(3.0, 1.0)])
def test_a_batch_is_one_call_after_the_other(law: Law | None, seed: int) -> None:
    queries = generic(np.random.default_rng(seed), 4, 2, 200).queries
    thresholds = np.random.default_rng(seed).random(200)
    one, many = (NoisyOracle(W, law, np.random.default_rng(seed)) for _ in range(2))
    calls = [one.above(q, threshold) for q, threshold in zip(queries, thresholds, strict=True)]
    assert many.bits(queries, thresholds).tolist() == calls


def test_without_noise_the_bit_is_the_truth() -> None:
    oracle = NoisyOracle(W, None, np.random.default_rng(0))
    q = np.array([1.0, 0.5, 0.0, 0.0])
    assert oracle.above(q, 0.649)
    assert not oracle.above(q, 0.651)
    assert oracle.level(q, np.array([0.1, 0.6, 0.7, 2.0])) == 2


@pytest.mark.parametrize("law", [Laplace(0.7), Uniform(2.0)])
def test_a_bit_is_one_as_often_as_the_law_says(law: Law, seed: int) -> None:
    trials, q = 20_000, np.ones(4)
    oracle = NoisyOracle(W, law, np.random.default_rng(seed))
    hits = int(oracle.bits(np.tile(q, (trials, 1)), np.full(trials, 2.6)).sum())
    rate = 1 - float(law.cdf(2.6 - W.sum()))
    assert_rate_at_most(hits, trials, rate)
    assert_rate_at_most(trials - hits, trials, 1 - rate)
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, trials, 0.9 * rate)
