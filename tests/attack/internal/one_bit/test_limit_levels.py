import itertools
import math

import numpy as np
import pytest
from scipy import stats

from casemate.attack.one_bit.laws import Cauchy, Gaussian, Laplace, MixtureLaw, Shifted, Uniform
from casemate.attack.one_bit.limit import (
    bit_information,
    cells_information,
    full_information,
    level_information,
)

SPREAD = MixtureLaw((Shifted(Gaussian(0.4), -1.0), Shifted(Gaussian(0.4), 1.0)), (0.5, 0.5))


@pytest.mark.parametrize(
    ("levels", "carried"), [(2, 0.637), (3, 0.810), (4, 0.883), (8, 0.965), (16, 0.9905)]
)
def test_answers_of_several_levels_carry_what_is_known_for_gaussian_noise(
    levels: int, carried: float
) -> None:
    found = level_information(Gaussian(3.0), levels)
    assert found.best * 9 == pytest.approx(carried, abs=6e-4)
    assert found.thresholds == pytest.approx([-x for x in found.thresholds[::-1]], abs=1e-4)


def lloyd(levels: int) -> float:
    """The variance that is left by the best quantiser of a standard Gaussian number."""
    cuts = stats.norm.ppf(np.arange(1, levels) / levels)
    for _ in range(3_000):
        ends = np.concatenate(([-np.inf], cuts, [np.inf]))
        centres = -np.diff(stats.norm.pdf(ends)) / np.diff(stats.norm.cdf(ends))
        cuts = (centres[1:] + centres[:-1]) / 2
    return float(1 - np.sum(np.diff(stats.norm.cdf(ends)) * centres**2))


@pytest.mark.parametrize("levels", [3, 4, 8])
def test_for_gaussian_noise_the_best_levels_are_the_best_quantiser(levels: int) -> None:
    """The score of Gaussian noise is the noise, so what is lost is what a quantiser leaves."""
    assert 1 - level_information(Gaussian(1.0), levels).best == pytest.approx(lloyd(levels))


@pytest.mark.parametrize("law", [Gaussian(1.0), Laplace(2.0), Cauchy(1.0), SPREAD])
def test_no_triple_of_a_scan_is_better(law: Gaussian | Laplace | Cauchy | MixtureLaw) -> None:
    places = law.quantile(np.linspace(0.02, 0.98, 25))
    scan = max(
        cells_information(law, np.array(triple)) for triple in itertools.combinations(places, 3)
    )
    assert level_information(law, 4).best >= scan


@pytest.mark.parametrize("law", [Gaussian(1.0), Cauchy(2.0), SPREAD])
def test_more_levels_carry_more_up_to_the_whole_answer(law: Gaussian | Cauchy | MixtureLaw) -> None:
    carried = [level_information(law, levels).best for levels in (2, 3, 4, 8, 16)]
    assert carried[0] == pytest.approx(bit_information(law).best, rel=1e-6)
    assert carried == sorted(carried)
    assert carried[-1] < full_information(law) * (1 + 1e-4)


def test_at_an_edge_there_are_no_best_levels_and_one_level_is_none() -> None:
    assert level_information(Uniform(1.0), 3).best == math.inf
    assert level_information(Uniform(1.0), 3).thresholds == ()
    with pytest.raises(ValueError, match="at least 2 answers, got 1"):
        level_information(Gaussian(1.0), 1)
