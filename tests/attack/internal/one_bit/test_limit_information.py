"""What a bit, one of several answers and a whole answer carry."""

import itertools
import math

import numpy as np
import pytest
from attack.one_bit_streams import CUT, two_humps
from scipy import integrate, stats

from casemate.attack.one_bit.kalman import level_offsets
from casemate.attack.one_bit.laws import (
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
)
from casemate.attack.one_bit.limit import (
    bit_information,
    cells_information,
    edge_pays_after,
    full_information,
    level_information,
)
from casemate.attack.one_bit.oracle import Floats

ROOT3 = math.sqrt(3)
HUMPS = two_humps(Gaussian(0.4), 1.0)
SMOOTH: dict[str, tuple[Law, float, float]] = {  # deviation 1: the median bit, the whole answer
    "triangular (an edge in a straight line)": (Triangular(math.sqrt(6)), 2 / 3, math.inf),
    "gaussian": (Gaussian(1.0), 2 / math.pi, 1.0),
    "laplace": (Laplace(1 / math.sqrt(2)), 2.0, 2.0),
    "logistic": (Logistic(ROOT3 / math.pi), math.pi**2 / 12, math.pi**2 / 9),
    "student": (StudentT(3.0, 1 / ROOT3), 16 / math.pi**2, 2.0),
    "cauchy (of scale 1)": (Cauchy(1.0), 4 / math.pi**2, 0.5),
    "cosine (of half width 2)": (RaisedCosine(2.0), 1.0, (math.pi / 2) ** 2),
}
EDGED: dict[str, tuple[Law, float]] = {  # the median bit
    "uniform": (Uniform(ROOT3), 1 / 3),
    "exponential": (Exponential(1.0), 1.0),
    "cut at 2": (CUT, 0.6987607),
    "cut at 3": (Truncated(Gaussian(1.0), -3.0, 3.0), 0.6400712),
    "cut off centre": (Truncated(Gaussian(1.0), -1.0, 6.0), math.nan),
    "cut to almost nothing": (Truncated(Gaussian(1.0), -1e-8, 1e-8), 1e16),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_the_median_is_best_for_the_usual_laws_and_carries_what_is_known(name: str) -> None:
    """At an edge that falls in a line the bit is bounded, and the whole answer is not."""
    law, median, full = SMOOTH[name]
    found = bit_information(law)
    assert (found.kind, found.offset) == ("median", 0.0)
    assert found.best == found.median == pytest.approx(median, rel=1e-9)
    assert full_information(law) == pytest.approx(full, rel=1e-3 if "cosine" in name else 1e-5)


@pytest.mark.parametrize("name", EDGED)
def test_an_edge_with_a_jump_has_no_best_threshold(name: str) -> None:
    law, median = EDGED[name]
    found = bit_information(law)
    assert (found.kind, found.best, full_information(law)) == ("none", math.inf, math.inf)
    if not math.isnan(median):
        assert found.median == pytest.approx(median, rel=1e-6)
    edge = found.offset + float(law.quantile(0.5))
    inward = math.copysign(min(law.scale, law.edges[1] - law.edges[0]), -found.offset)
    near = [cells_information(law, np.array([edge + inward * 10.0**-k])) for k in (3, 4, 5)]
    assert near[0] < near[1] < near[2]


def test_between_two_humps_the_median_is_194_times_worse_than_the_best() -> None:
    found = bit_information(HUMPS)
    assert found.kind == "supremum"
    assert found.best / found.median == pytest.approx(193.644, abs=0.01)
    assert abs(found.offset) == pytest.approx(1.176, abs=0.001)


@pytest.mark.parametrize(
    "law",
    [
        HUMPS,
        MixtureLaw((Shifted(Laplace(0.2), -3.0), Gaussian(2.0)), (0.3, 0.7)),
        MixtureLaw((Gaussian(0.01), Gaussian(1.0)), (0.02, 0.98)),
        MixtureLaw((Shifted(Uniform(0.3), 0.5), Gaussian(1.0)), (0.3, 0.7)),
        Shifted(StudentT(2.0, 1.0), 5.0),
        Truncated(Cauchy(1.0), -math.inf, math.inf),
    ],
)
def test_no_threshold_of_a_dense_scan_is_better(law: Law) -> None:
    places = law.quantile(np.linspace(1e-6, 1 - 1e-6, 30_001))
    below = law.cdf(places)
    scan = float((law.density(places) ** 2 / (below * (1 - below))).max())
    assert scan * (1 - 1e-3) <= bit_information(law).best <= scan * (1 + 1e-3)


@pytest.mark.parametrize("law", [HUMPS, Logistic(0.7), RaisedCosine(1.0)])
def test_what_a_whole_answer_carries_is_the_integral_of_the_squared_score(law: Law) -> None:
    step = 1e-6

    def squared_score(x: float) -> float:
        slope = float(law.density(x + step) - law.density(x - step)) / (2 * step)
        return slope**2 / float(law.density(x))

    low, high = law.quantile([1e-9, 1 - 1e-9])
    value, _ = integrate.quad(squared_score, low, high, limit=500)
    assert full_information(law) == pytest.approx(value, rel=2e-3)


def test_a_jump_inside_has_a_best_threshold_and_no_end_to_the_whole_answer() -> None:
    law = MixtureLaw((Uniform(1.0), Gaussian(1.0)), (0.5, 0.5))
    assert bit_information(law).kind != "none"
    assert full_information(law) == math.inf


@pytest.mark.parametrize("factor", [1e-6, 1e-2, 1e4])
def test_information_goes_with_the_inverse_square_of_the_scale(factor: float) -> None:
    for law, scaled in ((Gaussian(1.0), Gaussian(factor)), (StudentT(3.0), StudentT(3.0, factor))):
        assert bit_information(scaled).best * factor**2 == pytest.approx(bit_information(law).best)
        assert full_information(scaled) * factor**2 == pytest.approx(full_information(law))


def test_an_edge_pays_the_sooner_the_higher_it_is() -> None:
    assert edge_pays_after(Uniform(3.0)) == pytest.approx(8.5, abs=0.01)
    cut = [edge_pays_after(Truncated(Gaussian(1.0), -at, at)) for at in (2.0, 3.0, 4.0)]
    assert 100 < cut[0] < 1_000
    assert 1e4 < cut[1] < 1e5
    assert cut[2] > 1e6
    assert edge_pays_after(Gaussian(1.0)) == edge_pays_after(Triangular(1.0)) == math.inf


# One of several answers ---------------------------------------------------------------------------


def gaussian_information(ends: Floats) -> float:
    """What cells with these ends say about the location of unit Gaussian noise."""
    ends = np.sort(ends)
    chance = np.diff(stats.norm.cdf(ends), prepend=0, append=1)
    return float((np.diff(stats.norm.pdf(ends), prepend=0, append=0) ** 2 / chance).sum())


@pytest.mark.parametrize(
    ("levels", "ends", "information"),
    [
        (2, [0], 0.6366),
        (3, [-0.612, 0.612], 0.8098),
        (4, [-0.982, 0, 0.982], 0.8825),
        (8, [-1.748, -1.050, -0.501, 0, 0.501, 1.050, 1.748], 0.9655),
    ],
)
def test_for_gaussian_noise_the_best_levels_are_the_best_quantiser(
    levels: int, ends: list[float], information: float
) -> None:
    """The score of Gaussian noise is the noise: cells end where the tables of Lloyd and Max say."""
    assert level_offsets(levels) == pytest.approx(ends, abs=6e-4)
    assert level_information(Gaussian(1.0), levels).best == pytest.approx(information, abs=1e-4)


@pytest.mark.parametrize("levels", [3, 5, 6, 16])
def test_no_cells_nearby_say_more(levels: int, seed: int) -> None:
    own = np.array(level_offsets(levels))
    best = gaussian_information(own)
    assert level_information(Gaussian(1.0), levels).best == pytest.approx(best, rel=1e-9)
    draw = np.random.default_rng(seed)
    for width in (1e-3, 1e-2, 1e-1):
        others = own + width * draw.normal(size=(200, levels - 1))
        assert max(gaussian_information(ends) for ends in others) < best


@pytest.mark.parametrize("law", [Gaussian(1.0), Laplace(2.0), Cauchy(1.0), HUMPS])
def test_no_triple_of_a_scan_is_better(law: Law) -> None:
    places = law.quantile(np.linspace(0.02, 0.98, 15))
    scan = max(
        cells_information(law, np.array(triple)) for triple in itertools.combinations(places, 3)
    )
    assert level_information(law, 4).best >= scan


@pytest.mark.parametrize("law", [Gaussian(1.0), Cauchy(2.0), HUMPS])
def test_more_levels_carry_more_up_to_the_whole_answer(law: Law) -> None:
    carried = [level_information(law, levels).best for levels in (2, 3, 4, 8, 16)]
    assert carried[0] == pytest.approx(bit_information(law).best, rel=1e-6)
    assert carried == sorted(carried)
    assert carried[-1] < full_information(law) * (1 + 1e-4)


def test_at_an_edge_there_are_no_best_levels() -> None:
    assert level_information(Uniform(1.0), 3).best == math.inf
    assert level_information(Uniform(1.0), 3).thresholds == ()
