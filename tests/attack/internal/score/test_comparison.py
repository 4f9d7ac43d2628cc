import math
from functools import lru_cache

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.score.scoring import PairedOutcomes, compared, paired_interval

CONFIDENCE = 0.9
numbers = st.integers(0, 60)
counts = st.builds(PairedOutcomes, numbers, numbers, numbers, numbers).filter(any)

# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "ends"),
    [((20, 12, 2, 16), (0.0562, 0.3292)), ((0, 0, 0, 50), (-0.07135, 0.07135))],
)
def test_the_interval_is_newcombes_tenth(
    cells: tuple[int, int, int, int], ends: tuple[float, float]
) -> None:
    """In the second case both fractions have Wilson's interval of 0 of 50."""
    found = paired_interval(PairedOutcomes(*cells), 0.95)
    np.testing.assert_allclose(found, ends, atol=5e-5)


@given(counts)
def test_the_interval_holds_the_observed_difference_and_stays_possible(
    cells: PairedOutcomes,
) -> None:
    low, high = paired_interval(cells, CONFIDENCE)
    observed = (cells[1] - cells[2]) / sum(cells)
    assert -1 <= low <= observed + 1e-12
    assert observed - 1e-12 <= high <= 1


@given(counts)
def test_exchanging_the_two_turns_the_interval_around(cells: PairedOutcomes) -> None:
    low, high = paired_interval(cells, CONFIDENCE)
    turned = paired_interval(cells._replace(one=cells.other, other=cells.one), CONFIDENCE)
    assert (-turned[1], -turned[0]) == pytest.approx((low, high))


@given(counts)
def test_more_confidence_is_a_wider_interval(cells: PairedOutcomes) -> None:
    low, high = paired_interval(cells, 0.8)
    wider = paired_interval(cells, 0.99)
    assert wider[0] <= low + 1e-12
    assert wider[1] >= high - 1e-12


def test_a_comparison_counts_each_target_once() -> None:
    attack = np.array([True, True, True, False])
    without = np.array([True, False, False, False])
    found = compared(attack, without, CONFIDENCE)
    assert (found.targets, found.attack, found.leave_one_out) == (4, 0.75, 0.25)
    assert found.difference == 0.5
    assert (found.low, found.high) == paired_interval(PairedOutcomes(1, 2, 0, 1), CONFIDENCE)


@lru_cache
def intervals(count: int) -> list[tuple[PairedOutcomes, float, float]]:
    """Every table of so many pairs, and its interval."""
    cells = [
        PairedOutcomes(a, b, c, count - a - b - c)
        for a in range(count + 1)
        for b in range(count + 1 - a)
        for c in range(count + 1 - a - b)
    ]
    return [(each, *paired_interval(each, CONFIDENCE)) for each in cells]


def coverage(count: int, chances: tuple[float, float, float, float]) -> float:
    """The probability that the interval holds the difference, every table of pairs counted."""
    true, found = chances[1] - chances[2], 0.0
    for cells, low, high in intervals(count):
        if low - 1e-12 <= true <= high + 1e-12:
            ways = math.factorial(count) // math.prod(map(math.factorial, cells))
            found += ways * math.prod(p**k for p, k in zip(chances, cells, strict=True))
    return found


CHANCES = [
    (0.5, 0.0, 0.0, 0.5),
    (0.9, 0.05, 0.05, 0.0),
    (0.5, 0.5, 0.0, 0.0),
    (0.25, 0.25, 0.25, 0.25),
    (0.6, 0.3, 0.0, 0.1),
    (0.1, 0.7, 0.1, 0.1),
]


@pytest.mark.parametrize("chances", CHANCES)
def test_of_thirty_pairs_the_interval_holds_the_truth_as_often_as_it_says(
    chances: tuple[float, float, float, float],
) -> None:
    assert coverage(30, chances) >= CONFIDENCE - 0.02


def test_on_average_it_holds_the_truth_more_often_than_it_says() -> None:
    assert np.mean([coverage(15, chances) for chances in CHANCES]) >= CONFIDENCE


# True with a stated probability ---------------------------------------------------------------


def misses(chances: list[float], width: float, rng: np.random.Generator) -> int:
    """How often intervals of 200 pairs, made narrower, miss the true difference in 4,000 trials."""
    true, missed = chances[1] - chances[2], 0
    for cells in rng.multinomial(200, chances, 4_000):
        low, high = paired_interval(PairedOutcomes(*cells.tolist()), CONFIDENCE)
        middle = (low + high) / 2
        missed += abs(true - middle) > width * (high - low) / 2
    return missed


@pytest.mark.parametrize("chances", [[0.5, 0.3, 0.1, 0.1], [0.05, 0.9, 0.0, 0.05]])
def test_of_two_hundred_targets_the_interval_misses_as_seldom_as_it_says(
    chances: list[float], seed: int
) -> None:
    missed = misses(chances, 1.0, np.random.default_rng(seed))
    assert_rate_at_most(missed, 4_000, 1 - CONFIDENCE + 0.01)


def test_the_test_above_would_notice_narrower_intervals(seed: int) -> None:
    missed = misses([0.5, 0.3, 0.1, 0.1], 0.7, np.random.default_rng(seed))
    with pytest.raises(AssertionError):
        assert_rate_at_most(missed, 4_000, 1 - CONFIDENCE + 0.01)
