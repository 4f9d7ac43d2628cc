"""The median mechanism against a slow version, and its number of updates."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Measurement, Product
from casemate.papers.database_updates import (
    MedianMechanism,
    every_database,
    lower_median,
    rows_needed,
    updates_of_databases,
)

TOTAL = 12


def subset(cells: int, chosen: set[int]) -> Product:
    return Product((cells,), {0: np.isin(np.arange(cells), list(chosen))})


def questions(cells: int) -> list[Product]:
    """All subsets but the empty one and the whole."""
    return [
        subset(cells, set(chosen))
        for size in range(1, cells)
        for chosen in itertools.combinations(range(cells), size)
    ]


class SlowMedian:
    """Databases as tuples of cells, counted one by one in fractions."""

    def __init__(self, cells: int, rows: int) -> None:
        self.left = list(itertools.combinations_with_replacement(range(cells), rows))
        self.rows = rows

    def values(self, chosen: set[int]) -> list[Fraction]:
        return [Fraction(sum(cell in chosen for cell in d), self.rows) for d in self.left]

    def answer(self, chosen: set[int]) -> Fraction:
        values = sorted(self.values(chosen))
        return TOTAL * values[(len(values) - 1) // 2]

    def update(self, chosen: set[int], count: int) -> None:
        middle, share = self.answer(chosen) / TOTAL, Fraction(count, TOTAL)
        paired = list(zip(self.left, self.values(chosen), strict=True))
        side = [(d, v) for d, v in paired if (v > middle if share >= middle else v < middle)]
        self.left = [d for d, _ in side] or self.left


transcripts = st.lists(
    st.tuples(st.sets(st.integers(0, 3), min_size=1, max_size=3), st.integers(0, TOTAL)), max_size=8
)


# Exactly true -------------------------------------------------------------------------------------


@pytest.mark.theorem("003: Database update by the median (the algorithm)")
@given(transcripts, st.integers(1, 5))
def test_it_equals_a_slow_version_on_every_database_of_a_size(
    transcript: list[tuple[set[int], int]], rows: int
) -> None:
    fast, slow = MedianMechanism((4,), TOTAL, rows), SlowMedian(4, rows)
    for chosen, count in transcript:
        assert fast.answer(subset(4, chosen)) == pytest.approx(float(slow.answer(chosen)))
        fast.update(MeasuredProduct(subset(4, chosen), count, 0))
        slow.update(chosen, count)
        assert fast.left == len(slow.left)


def worst(stand_in: MedianMechanism, truth: Floats, asked: list[Product]) -> tuple[float, Product]:
    off = [abs(float(truth @ q.dense()) - stand_in.answer(q) / TOTAL) for q in asked]
    return max(off), asked[int(np.argmax(off))]


def longest_sequence(rows: int, truth: Floats, alpha: float, lie: float) -> int:
    """Updates by the question that is most off, each measured with an error of lie < alpha."""
    stand_in = MedianMechanism((len(truth),), TOTAL, rows)
    asked, count = questions(len(truth)), 0
    while True:
        off, question = worst(stand_in, truth, asked)
        if off < alpha:
            return count
        right = float(truth @ question.dense())
        towards = math.copysign(lie, stand_in.answer(question) / TOTAL - right)
        stand_in.update(MeasuredProduct(question, TOTAL * (right + towards), 0))
        count += 1
        assert count <= 1000, "updates do not end"


@pytest.mark.theorem("003: Database update by the median (T)")
@given(
    st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any),
    st.floats(0.3, 0.5),
    st.floats(0, 0.99),
)
def test_with_every_database_of_the_needed_size_updates_end_within_the_bound(
    weights: list[int], alpha: float, lie: float
) -> None:
    rows = rows_needed(alpha, 14)
    truth = np.array(weights) / sum(weights)
    found = longest_sequence(rows, truth, alpha, lie * alpha)
    assert found <= updates_of_databases(4, rows)


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any), st.floats(0.3, 0.5))
def test_some_database_of_the_needed_size_is_close_on_every_question(
    weights: list[int], alpha: float
) -> None:
    truth, asked = np.array(weights) / sum(weights), np.array([q.dense() for q in questions(4)])
    rows = rows_needed(alpha, len(asked))
    shares = every_database(rows, 4) / rows
    assert np.abs((shares - truth) @ asked.T).max(axis=1).min() < alpha


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_half_are_on_either_side_of_a_lower_median(values: list[int]) -> None:
    middle = lower_median(np.array(values, np.float64))
    assert 2 * sum(v <= middle for v in values) >= len(values)
    assert 2 * sum(v >= middle for v in values) >= len(values)
    assert middle == sorted(values)[(len(values) - 1) // 2]


@given(st.integers(2, 6), st.integers(1, 5))
def test_all_databases_are_there_once(cells: int, rows: int) -> None:
    tables = every_database(rows, cells)
    assert len(np.unique(tables, axis=0)) == len(tables) == math.comb(cells + rows - 1, rows)
    assert (tables.sum(axis=1) == rows).all()
    assert updates_of_databases(cells, rows) == pytest.approx(math.log2(len(tables)))


MEASURED: list[Measurement] = [
    MeasuredProduct(Product((2, 3), {1: np.array([True, False, False])}), 9, 1.0),
    MeasuredMarginal(Marginal((0, 1)), np.array([[8.0, 0, 1], [1, 1, 1]]), 1.0),
    MeasuredProduct(Product((2, 3), {0: np.array([False, True])}), 3, 1.0),
]


def replayed(rows: int) -> MedianMechanism:
    stand_in = MedianMechanism((2, 3), TOTAL, rows)
    for measurement in MEASURED:
        stand_in.update(measurement)
    return stand_in


def test_the_transcript_rebuilds_it_bit_for_bit() -> None:
    one, two = replayed(4), replayed(4)
    assert one._databases.tobytes() == two._databases.tobytes()


def test_a_marginal_is_the_answer_to_each_of_its_cells() -> None:
    stand_in = replayed(3)
    cells = [Product((2, 3), {1: np.arange(3) == code}) for code in range(3)]
    assert stand_in.marginal((1,)) == pytest.approx(stand_in.answers(cells))
    assert stand_in.marginal(()) == pytest.approx(stand_in.total) == TOTAL


def test_a_cut_that_would_leave_nothing_is_not_made() -> None:
    stand_in = MedianMechanism((2,), TOTAL, 2)
    first = subset(2, {0})
    for _ in range(5):
        stand_in.update(MeasuredProduct(first, TOTAL, 0))
    assert stand_in.left == 1 and stand_in.answer(first) == TOTAL


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MedianMechanism((2,), 0, 1),
        lambda: MedianMechanism((64,), 1, 20),
        lambda: MedianMechanism((2,), 1, 0),
        lambda: MedianMechanism((2,), 1, 1).answer(subset(3, {1})),
        lambda: MedianMechanism((2,), 1, 1).update(
            MeasuredMarginal(Marginal((0,)), np.ones(3), 1.0)
        ),
        lambda: rows_needed(0, 1),
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"need|too|about|shape"):
        wrong()
