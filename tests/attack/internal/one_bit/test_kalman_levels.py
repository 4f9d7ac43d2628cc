import numpy as np
import pytest
from scipy import stats

from casemate.attack.one_bit.kalman import level_offsets
from casemate.attack.one_bit.laws import Gaussian
from casemate.attack.one_bit.limit import level_information
from casemate.attack.one_bit.oracle import Floats


def told(ends: Floats) -> float:
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
def test_cells_end_where_the_tables_of_quantisers_say(
    levels: int, ends: list[float], information: float
) -> None:
    assert level_offsets(levels) == pytest.approx(ends, abs=6e-4)
    assert level_information(Gaussian(1.0), levels).best == pytest.approx(information, abs=1e-4)


@pytest.mark.parametrize("levels", [3, 5, 6, 16])
def test_no_cells_nearby_say_more(levels: int, seed: int) -> None:
    own = np.array(level_offsets(levels))
    assert level_information(Gaussian(1.0), levels).best == pytest.approx(told(own), rel=1e-9)
    draw = np.random.default_rng(seed)
    for width in (1e-3, 1e-2, 1e-1):
        others = own + width * draw.normal(size=(200, levels - 1))
        assert max(told(ends) for ends in others) < told(own)


def test_one_answer_is_no_oracle() -> None:
    with pytest.raises(ValueError, match="at least 2 answers, got 1"):
        level_offsets(1)
