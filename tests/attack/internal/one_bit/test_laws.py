import math
from random import Random

import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from casemate.attack.one_bit import parse_law
from casemate.attack.one_bit.laws import (
    NAMED,
    Cauchy,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    Logistic,
    MixtureLaw,
    RaisedCosine,
    Shifted,
    StudentT,
    Triangular,
    Truncated,
    Uniform,
    centred,
    effective_scale,
)
from casemate.errors import Misconfigured

HUMPS = MixtureLaw((Shifted(Gaussian(0.4), -1.0), Shifted(Gaussian(0.4), 1.0)), (0.5, 0.5))
LAWS: dict[str, Law] = {
    "uniform": Uniform(0.7),
    "gaussian": Gaussian(2.5),
    "laplace": Laplace(1.5),
    "logistic": Logistic(0.3),
    "cauchy": Cauchy(2.0),
    "student": StudentT(3.0, 0.8),
    "student with few degrees": StudentT(0.7, 2.0),
    "student with many degrees": StudentT(90.0, 1.0),
    "triangular": Triangular(1.8),
    "cosine": RaisedCosine(1.2),
    "exponential": Exponential(0.6),
    "cut gaussian": Truncated(Gaussian(1.0), -2.0, 2.0),
    "cut on one side": Truncated(Laplace(1.0), -0.5, math.inf),
    "cut to a tail": Truncated(Gaussian(1.0), 2.0, 3.0),
    "shifted": Shifted(Exponential(1.0), 0.4),
    "two humps": HUMPS,
    "uneven mixture": MixtureLaw((Gaussian(0.1), Uniform(3.0), Cauchy(1.0)), (0.2, 0.5, 0.3)),
}
PEERS = {
    "uniform": stats.uniform(-0.7, 1.4),
    "gaussian": stats.norm(0, 2.5),
    "laplace": stats.laplace(0, 1.5),
    "logistic": stats.logistic(0, 0.3),
    "cauchy": stats.cauchy(0, 2.0),
    "student": stats.t(3.0, 0, 0.8),
    "student with few degrees": stats.t(0.7, 0, 2.0),
    "student with many degrees": stats.t(90.0, 0, 1.0),
    "triangular": stats.triang(0.5, -1.8, 3.6),
    "cosine": stats.cosine(0, 1.2 / math.pi),
    "exponential": stats.expon(-0.6 * math.log(2), 0.6),
    "cut gaussian": stats.truncnorm(-2, 2),
    "cut to a tail": stats.truncnorm(2, 3),
    "shifted": stats.expon(0.4 - math.log(2), 1.0),
}
ALL = pytest.mark.parametrize("name", LAWS)
CHANCES = np.concatenate((np.geomspace(1e-9, 0.01, 30), np.linspace(0.01, 0.99, 99)))


@pytest.mark.parametrize("name", PEERS)
def test_a_law_is_that_of_an_independent_library(name: str) -> None:
    law, peer = LAWS[name], PEERS[name]
    places = peer.ppf(CHANCES)
    np.testing.assert_allclose(law.quantile(CHANCES), places, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(law.cdf(places), peer.cdf(places), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(law.density(places), peer.pdf(places), rtol=1e-6)
    assert law.density_at_median == pytest.approx(peer.pdf(peer.median()), rel=1e-9)


@ALL
def test_quantiles_undo_the_distribution_function(name: str) -> None:
    law = LAWS[name]
    np.testing.assert_allclose(law.cdf(law.quantile(CHANCES)), CHANCES, rtol=1e-6, atol=1e-13)
    assert tuple(law.quantile([0.0, 1.0])) == law.edges


@ALL
def test_the_density_is_the_slope_of_the_distribution_function(name: str) -> None:
    law = LAWS[name]
    places, step = law.quantile(np.linspace(0.013, 0.987, 80)), 1e-5 * law.scale
    slope = (law.cdf(places + step) - law.cdf(places - step)) / (2 * step)
    np.testing.assert_allclose(law.density(places), slope, rtol=1e-3)


@ALL
def test_one_number_and_many_in_any_shape_are_read_alike(name: str) -> None:
    law = LAWS[name]
    for read, at in ((law.cdf, 0.1), (law.density, 0.1), (law.quantile, 0.3)):
        assert read(np.full((2, 3), at)).shape == (2, 3)
        assert float(read(at)) == read([at])[0]


@ALL
def test_outside_the_edges_there_is_nothing(name: str) -> None:
    law = LAWS[name]
    for edge, side in zip(law.edges, (-1, 1), strict=True):
        if math.isfinite(edge):
            assert law.density(edge + side * 0.01) == 0
            assert law.cdf(edge + side * 0.01) == (side > 0)


def follows(law: Law, drawn: np.ndarray) -> None:
    """Rounded down to thousandths of the scale, because the assertion is about whole numbers."""
    step = law.scale / 1000
    rounded = np.floor(np.clip(drawn / step, -1e12, 1e12)).astype(np.int64)
    ends = np.unique([rounded - 1, rounded])
    chances = dict(zip(ends.tolist(), law.cdf((ends + 1) * step).tolist(), strict=True))
    assert_follows(rounded.tolist(), chances.__getitem__)


@ALL
def test_draws_follow_the_law(name: str, seed: int) -> None:
    law = LAWS[name]
    drawn = law.sample(np.random.default_rng(seed), 1_500)
    assert drawn.shape == (1_500,)
    assert law.edges[0] <= drawn.min() and drawn.max() <= law.edges[1]
    follows(law, drawn)
    with pytest.raises(AssertionError, match="apart"):  # the twin: a wrong scale
        follows(law, 3 * drawn)


def test_the_plain_laws_have_median_zero_and_a_shift_is_taken_back() -> None:
    plain = [LAWS[name] for name in NAMED]
    assert [float(law.quantile(0.5)) for law in plain] == pytest.approx([0] * len(plain), abs=1e-12)
    assert centred(Gaussian(1.0)) == Gaussian(1.0)
    assert float(centred(LAWS["cut to a tail"]).quantile(0.5)) == pytest.approx(0, abs=1e-12)


def test_the_effective_scale_of_a_gaussian_law_is_its_own() -> None:
    assert effective_scale(Gaussian(2.5)) == pytest.approx(2.5)
    assert effective_scale(Uniform(1.0)) == pytest.approx(2 / math.sqrt(2 * math.pi))


@given(st.sampled_from(sorted(NAMED)), st.floats(1e-3, 1e6))
def test_a_text_names_a_law_and_its_scale(name: str, scale: float) -> None:
    text = f"{name}:3:{scale!r}" if name == "student" else f"{name}:{scale!r}"
    law = parse_law(text)
    assert law.name == name
    assert law.scale == scale
    assert law == parse_law(f" {text.upper()} ")


def test_a_text_can_cut_a_law() -> None:
    assert parse_law("gaussian:1.5[-2:.5]") == Truncated(Gaussian(1.5), -2.0, 0.5)


@pytest.mark.parametrize(
    "text",
    [
        *("", "laplace", "laplace:", "laplace:x", "laplace:1:2", "student:3", "normal:1"),
        *("laplace:0", "laplace:-1", "gaussian:1e999"),
        *("uniform:1[2:3]", "uniform:1[1:-1]", "uniform:1[1]"),
    ],
)
def test_a_text_that_names_no_law_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(Misconfigured, match="noise"):
        parse_law(text)


@pytest.mark.parametrize("kind", NAMED.values())
@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_a_scale_that_is_no_size_is_refused(kind: type, scale: float) -> None:
    with pytest.raises(ValueError, match="need a positive and finite"):
        kind(*([3.0, scale] if kind is StudentT else [scale]))


def test_a_combination_that_makes_no_law_is_refused() -> None:
    for weights in ((0.5,), (0.5, 0.4), (1.5, -0.5)):
        with pytest.raises(ValueError, match="weight"):
            MixtureLaw((Gaussian(1.0), Uniform(1.0)), weights)
    with pytest.raises(ValueError, match="finite shift"):
        Shifted(Gaussian(1.0), math.inf)
    with pytest.raises(ValueError, match="interval"):
        Truncated(Uniform(1.0), 2.0, 3.0)


def test_equal_laws_are_one_value(rng: Random) -> None:
    scale = rng.uniform(0.1, 10)
    twins = [MixtureLaw((Gaussian(scale), Uniform(1.0)), (0.5, 0.5)) for _ in range(2)]
    assert len({*twins}) == 1
    assert twins[0].scale == twins[1].scale
