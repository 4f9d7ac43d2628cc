import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from casemate.attack.reconstruct.problem import NoiseLaw
from casemate.errors import Misconfigured

LAWS = ["laplace:2.5", "gaussian:3", "uniform:4", "round:5"]
PEERS = {
    "laplace": stats.laplace(scale=2.5),
    "gaussian": stats.norm(scale=3),
    "uniform": stats.uniform(-4, 8),
    "round": stats.uniform(-2.5, 5),
}

scales = st.floats(1e-6, 1e6)
kinds = st.sampled_from(["laplace", "gaussian", "uniform", "round"])


@given(kinds, scales)
def test_a_law_is_read_back_from_its_text(kind: str, scale: float) -> None:
    law = NoiseLaw.read(f"{kind}:{scale!r}")
    assert (law.kind, law.scale) == (kind, scale)
    assert NoiseLaw.read(str(law)) == law


@pytest.mark.parametrize(
    "text", ["cauchy:1", "", "laplace", "laplace:", "laplace:wide", "gaussian:-1", "uniform:0"]
)
def test_another_text_is_refused_with_the_laws_and_an_example(text: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        NoiseLaw.read(text)
    said = str(caught.value)
    assert all(law in said for law in ("laplace:b", "gaussian:", "uniform:", "round:step"))
    assert "for example laplace:2.5" in said and repr(text) in said and "\n" not in said


@pytest.mark.parametrize("text", LAWS)
def test_the_deviation_is_that_of_the_law(text: str) -> None:
    law = NoiseLaw.read(text)
    assert law.deviation == pytest.approx(PEERS[law.kind].std())


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1), st.sampled_from([1, 2, 5, 10]))
def test_rounding_goes_to_the_nearest_step_and_from_a_half_to_the_even_one(
    answers: list[int], step: int
) -> None:
    law = NoiseLaw("round", float(step))
    shown = law.laid_over(np.array(answers, np.float64), np.random.default_rng(0))
    assert shown.tolist() == [step * round(answer / step) for answer in answers]
    assert (np.abs(shown - answers) <= step / 2).all()


@pytest.mark.parametrize("text", LAWS[:3])
def test_the_noise_laid_over_answers_has_its_law(text: str, seed: int) -> None:
    law = NoiseLaw.read(text)
    random = np.random.default_rng([seed, 1])
    noise = law.laid_over(np.full(20_000, 100.0), random) - 100
    peer = PEERS[law.kind]
    ranks = np.floor(1_000 * peer.cdf(noise)).astype(int).tolist()  # uniform on 0 to 999
    assert_follows(ranks, lambda rank: (rank + 1) / 1_000)
    wrong = np.floor(1_000 * peer.cdf(0.7 * noise)).astype(int).tolist()
    with pytest.raises(AssertionError):
        assert_follows(wrong, lambda rank: (rank + 1) / 1_000)
