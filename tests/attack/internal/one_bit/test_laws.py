import math
from random import Random
from typing import Any

import numpy as np
import pytest
from attack.one_bit_streams import CUT, two_humps
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

UNEVEN = MixtureLaw((Gaussian(0.1), Uniform(3.0), Cauchy(1.0)), (0.2, 0.5, 0.3))
LAWS: dict[str, tuple[Law, Any]] = {  # each with the same law of an independent library
    "uniform": (Uniform(0.7), stats.uniform(-0.7, 1.4)),
    "gaussian": (Gaussian(2.5), stats.norm(0, 2.5)),
    "laplace": (Laplace(1.5), stats.laplace(0, 1.5)),
    "logistic": (Logistic(0.3), stats.logistic(0, 0.3)),
    "cauchy": (Cauchy(2.0), stats.cauchy(0, 2.0)),
    "student": (StudentT(3.0, 0.8), stats.t(3.0, 0, 0.8)),
    "student with few degrees": (StudentT(0.7, 2.0), stats.t(0.7, 0, 2.0)),
    "student with many degrees": (StudentT(90.0, 1.0), stats.t(90.0, 0, 1.0)),
    "triangular": (Triangular(1.8), stats.triang(0.5, -1.8, 3.6)),
    "cosine": (RaisedCosine(1.2), stats.cosine(0, 1.2 / math.pi)),
    "exponential": (Exponential(0.6), stats.expon(-0.6 * math.log(2), 0.6)),
    "cut gaussian": (CUT, stats.truncnorm(-2, 2)),
    "cut on one side": (Truncated(Laplace(1.0), -0.5, math.inf), None),
    "cut to a tail": (Truncated(Gaussian(1.0), 2.0, 3.0), stats.truncnorm(2, 3)),
    "shifted": (Shifted(Exponential(1.0), 0.4), stats.expon(0.4 - math.log(2), 1.0)),
    "two humps": (two_humps(Gaussian(0.4), 1.0), None),
    "uneven mixture": (UNEVEN, None),
}
ALL = pytest.mark.parametrize("law", [law for law, _ in LAWS.values()], ids=LAWS)
CHANCES = np.concatenate((np.geomspace(1e-9, 0.01, 30), np.linspace(0.01, 0.99, 99)))


@pytest.mark.parametrize("name", [name for name, (_, peer) in LAWS.items() if peer])
def test_a_law_is_that_of_an_independent_library(name: str) -> None:
    law, peer = LAWS[name]
    places = peer.ppf(CHANCES)
    np.testing.assert_allclose(law.quantile(CHANCES), places, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(law.cdf(places), peer.cdf(places), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(law.density(places), peer.pdf(places), rtol=1e-6)
    assert law.density_at_median == pytest.approx(peer.pdf(peer.median()), rel=1e-9)


@ALL
def test_quantiles_undo_the_distribution_function_and_the_density_is_its_slope(law: Law) -> None:
    """Outside the edges there is nothing."""
    np.testing.assert_allclose(law.cdf(law.quantile(CHANCES)), CHANCES, rtol=1e-6, atol=1e-13)
    assert tuple(law.quantile([0.0, 1.0])) == law.edges
    places, step = law.quantile(np.linspace(0.013, 0.987, 80)), 1e-5 * law.scale
    slope = (law.cdf(places + step) - law.cdf(places - step)) / (2 * step)
    np.testing.assert_allclose(law.density(places), slope, rtol=1e-3)
    for edge, side in zip(law.edges, (-1, 1), strict=True):
        if math.isfinite(edge):
            assert law.density(edge + side * 0.01) == 0
            assert law.cdf(edge + side * 0.01) == (side > 0)


@ALL
def test_one_number_and_many_in_any_shape_are_read_alike(law: Law) -> None:
    for read, at in ((law.cdf, 0.1), (law.density, 0.1), (law.quantile, 0.3)):
        assert read(np.full((2, 3), at)).shape == (2, 3)
        assert float(read(at)) == read([at])[0]


def follows(law: Law, drawn: np.ndarray) -> None:
    """Rounded down to thousandths of the scale, because the assertion is about whole numbers."""
    step = law.scale / 1000
    rounded = np.floor(np.clip(drawn / step, -1e12, 1e12)).astype(np.int64)
    ends = np.unique([rounded - 1, rounded])
    chances = dict(zip(ends.tolist(), law.cdf((ends + 1) * step).tolist(), strict=True))
    assert_follows(rounded.tolist(), chances.__getitem__)


@ALL
def test_draws_follow_the_law(law: Law, seed: int) -> None:
    drawn = law.sample(np.random.default_rng(seed), 1_500)
    assert drawn.shape == (1_500,)
    assert law.edges[0] <= drawn.min() and drawn.max() <= law.edges[1]
    follows(law, drawn)
    with pytest.raises(AssertionError, match="apart"):  # the twin: a wrong scale
        follows(law, 3 * drawn)


def test_the_plain_laws_have_median_zero_and_a_shift_is_taken_back() -> None:
    plain = [LAWS[name][0] for name in NAMED]
    assert [float(law.quantile(0.5)) for law in plain] == pytest.approx([0] * len(plain), abs=1e-12)
    assert centred(Gaussian(1.0)) == Gaussian(1.0)
    assert float(centred(LAWS["cut to a tail"][0]).quantile(0.5)) == pytest.approx(0, abs=1e-12)


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


def test_equal_laws_are_one_value(rng: Random) -> None:
    scale = rng.uniform(0.1, 10)
    twins = [MixtureLaw((Gaussian(scale), Uniform(1.0)), (0.5, 0.5)) for _ in range(2)]
    assert len({*twins}) == 1
    assert twins[0].scale == twins[1].scale
