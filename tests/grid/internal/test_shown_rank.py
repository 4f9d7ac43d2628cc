"""Quantiles from counts below boundaries: SQL's own on exact counts, and bounds that hold."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Estimate, Noised
from casemate.grid.ranks import Quantile, Rank, RankedCells, RankReading

SINGLE = [(value, value) for value in (1, 2, 4, 7)]
BINS = [(0.0, 2.5), (2.5, 5.0), (5.0, 7.5), (7.5, 10.0)]
Steps = Sequence[tuple[float, float]]
fractions = st.fractions(0, 1, max_denominator=20)


def reading(steps: Steps, quantile: Quantile, extreme: bool = False) -> RankReading:
    masks = np.eye(len(steps) + 1, dtype=np.bool_)
    made = tuple(RankedCells(mask, *step) for mask, step in zip(masks, steps, strict=False))
    return RankReading(0, Rank(0, made), quantile, extreme)


def read(made: RankReading, counts: Sequence[float], width: float = 0.0) -> Noised:
    below = np.cumsum(counts).tolist()
    cells = [Estimate(c, c - width, c + width, width / 2, c - width, c + width) for c in below]
    return made.read([cells], 0)


def slowly(values: list[float], quantile: Quantile) -> float:
    """percentile_cont and percentile_disc as SQL defines them."""
    if quantile.discrete:
        shares = [(i + 1) / Fraction(len(values)) for i in range(len(values))]
        return next(v for v, s in zip(values, shares, strict=True) if s >= quantile.fraction)
    return float(np.quantile(np.array(values), float(quantile.fraction)))


@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    st.builds(Quantile, fractions, st.booleans()),
)
def test_single_values_have_the_quantiles_of_sql(counts: list[int], quantile: Quantile) -> None:
    values = [float(v) for (v, _), n in zip(SINGLE, counts, strict=True) for _ in range(n)]
    found = read(reading(SINGLE, quantile), [float(each) for each in counts])
    assert found.value == pytest.approx(slowly(values, quantile))
    assert isinstance(found.lo, float) and isinstance(found.hi, float)
    assert found.lo <= found.value + 1e-9 and found.value <= found.hi + 1e-9  # type: ignore[operator]  # numbers


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=12).map(sorted),
    st.builds(Quantile, fractions, st.booleans()),
    st.integers(0, 6),
    st.data(),
)
def test_bounds_hold_wherever_every_count_is_within_its_own(
    values: list[float], quantile: Quantile, width: int, data: st.DataObject
) -> None:
    exact = [sum(v < end for v in values) for _, end in BINS[:-1]] + [len(values)]
    off = data.draw(st.lists(st.integers(-width, width), min_size=4, max_size=4))
    cells = []
    for count, shift in zip(exact, off, strict=True):
        ends = (count + shift - width, count + shift + width)
        cells.append(Estimate(count + shift, *ends, 1.0, *ends))
    found = reading(BINS, quantile).read([cells], 0)
    true = slowly(values, quantile)
    assert isinstance(found.lo, float) and isinstance(found.hi, float)
    assert found.lo - 1e-9 <= true <= found.hi + 1e-9


def test_records_of_a_bin_are_spread_over_it() -> None:
    assert read(reading(BINS, Quantile(Fraction(1, 2))), [0, 3, 0, 0]).value == 3.75
    assert read(reading(BINS, Quantile(Fraction(0))), [0, 2, 0, 0]).value == 2.5 + 2.5 / 4


def test_extremes_have_the_declared_bound_on_the_open_side() -> None:
    least = reading(BINS, Quantile(Fraction(0)), extreme=True)
    most = reading(BINS, Quantile(Fraction(1)), extreme=True)
    assert (read(least, [0, 9, 9, 0]).lo, read(least, [0, 9, 9, 0]).hi) == (0.0, 5.0)
    assert (read(most, [0, 9, 9, 0]).lo, read(most, [0, 9, 9, 0]).hi) == (5.0, 10.0)
    wide = read(least, [0, 9, 9, 0], width=10)
    assert (wide.lo, wide.hi) == (0.0, 7.5)


def test_nobody_has_no_median() -> None:
    assert read(reading(BINS, Quantile(Fraction(1, 2))), [0.2, 0.1, 0, 0]).value is None


def test_counts_that_fall_are_read_as_if_they_did_not() -> None:
    for fraction in (Fraction(1, 2), Fraction(3, 4)):
        made = reading(BINS, Quantile(fraction))
        fallen, level = (read(made, each, width=8.0) for each in ([4, -1, 2, 0], [4, 0, 1, 0]))
        assert fallen.value == level.value


@pytest.mark.parametrize(
    ("bounds", "ends"),
    [
        ([(0, 9), (0, 3), (7, 9), (8, 10)], (5.0, 7.5)),  # no more than after the next boundary
        ([(0, 2), (6, 9), (0, 9), (1, 9)], (2.5, 5.0)),  # no fewer than before it
        ([(1, 1), (2, 2), (3, 3), (4, 4)], (2.5, 7.5)),  # exact counts are proven to the record
    ],
)
def test_the_bounds_of_a_count_are_those_of_all_counts_together(
    bounds: list[tuple[int, int]], ends: tuple[float, float]
) -> None:
    cells = [Estimate((low + high) / 2, low, high, 1.0, low, high) for low, high in bounds]
    found = reading(BINS, Quantile(Fraction(1, 2))).read([cells], 0)
    assert (found.lo, found.hi) == ends


def test_the_typical_error_is_that_of_the_counts_turned_into_values() -> None:
    made = reading(BINS, Quantile(Fraction(1, 2)))
    within_bin = 2.5 / 8
    assert read(made, [10.0] * 4, width=8.0).error == pytest.approx(math.hypot(1.0, within_bin))
    assert made.width([[Estimate(5.0, 3.0, 8.0)] * 4], 1) == 2.5


def test_exact_counts_leave_open_where_in_its_bin_a_quantile_is() -> None:
    half = Quantile(Fraction(1, 2))
    assert read(reading(BINS, half), [0, 3, 0, 0]).error == pytest.approx(2.5 / 8)
    assert read(reading(SINGLE, half), [0, 3, 0, 0]).error == 0
