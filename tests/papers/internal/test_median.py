"""The median mechanism against a slow version, its number of updates, its committee."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st
from oracles.measurements import measurement_from_dict

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Measurement, Product
from casemate.papers.median import (
    CandidateTables,
    Committee,
    Cuts,
    EveryDatabase,
    MedianMechanism,
    _pairs,
    _sweep,
    lower_median,
    rows_needed,
    updates_of_databases,
    updates_of_simplex,
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

    def __init__(self, cells: int, rows: int, width: Fraction | None) -> None:
        self.left = list(itertools.combinations_with_replacement(range(cells), rows))
        self.rows, self.width = rows, width

    def values(self, chosen: set[int]) -> list[Fraction]:
        return [Fraction(sum(cell in chosen for cell in d), self.rows) for d in self.left]

    def answer(self, chosen: set[int]) -> Fraction:
        values = sorted(self.values(chosen))
        return TOTAL * values[(len(values) - 1) // 2]

    def update(self, chosen: set[int], count: int) -> None:
        middle, share = self.answer(chosen) / TOTAL, Fraction(count, TOTAL)
        paired = list(zip(self.left, self.values(chosen), strict=True))
        side = [(d, v) for d, v in paired if (v > middle if share >= middle else v < middle)]
        if self.width is not None:
            side = [(d, v) for d, v in side if abs(v - share) <= self.width] or side
        self.left = [d for d, _ in side] or self.left


transcripts = st.lists(
    st.tuples(st.sets(st.integers(0, 3), min_size=1, max_size=3), st.integers(0, TOTAL)), max_size=8
)


# Exactly true -------------------------------------------------------------------------------------


@pytest.mark.theorem("003: Database update by the median (the algorithm)")
@given(transcripts, st.integers(1, 5), st.sampled_from([None, Fraction(1, 8), Fraction(1, 2)]))
def test_it_equals_a_slow_version_on_every_database_of_a_size(
    transcript: list[tuple[set[int], int]], rows: int, width: Fraction | None
) -> None:
    fast = MedianMechanism(
        (4,), TOTAL, EveryDatabase(rows), width=None if width is None else float(width)
    )
    slow = SlowMedian(4, rows, width)
    for chosen, count in transcript:
        assert fast.answer(subset(4, chosen)) == pytest.approx(float(slow.answer(chosen)))
        fast.update(MeasuredProduct(subset(4, chosen), count, 0))
        slow.update(chosen, count)
        assert fast.left == len(slow.left)


def worst(stand_in: MedianMechanism, truth: Floats, asked: list[Product]) -> tuple[float, Product]:
    off = [abs(float(truth @ q.dense()) - stand_in.answer(q) / TOTAL) for q in asked]
    return max(off), asked[int(np.argmax(off))]


def longest_sequence(
    candidates: CandidateTables, truth: Floats, alpha: float, lie: float, width: float | None = None
) -> int:
    """Updates by the question that is most off, each measured with an error of lie < alpha."""
    stand_in = MedianMechanism((len(truth),), TOTAL, candidates, width=width)
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
    found = longest_sequence(EveryDatabase(rows), truth, alpha, lie * alpha)
    assert found <= updates_of_databases(4, rows)


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any), st.floats(0.3, 0.5))
def test_some_database_of_the_needed_size_is_close_on_every_question(
    weights: list[int], alpha: float
) -> None:
    truth, asked = np.array(weights) / sum(weights), np.array([q.dense() for q in questions(4)])
    rows = rows_needed(alpha, len(asked))
    shares = EveryDatabase(rows).start(4) / rows
    assert np.abs((shares - truth) @ asked.T).max(axis=1).min() < alpha


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_half_are_on_either_side_of_a_lower_median(values: list[int]) -> None:
    middle = lower_median(np.array(values, np.float64))
    assert 2 * sum(v <= middle for v in values) >= len(values)
    assert 2 * sum(v >= middle for v in values) >= len(values)
    assert middle == sorted(values)[(len(values) - 1) // 2]


@given(st.integers(2, 6), st.integers(1, 5))
def test_all_databases_are_there_once(cells: int, rows: int) -> None:
    tables = EveryDatabase(rows).start(cells)
    assert len(np.unique(tables, axis=0)) == len(tables) == math.comb(cells + rows - 1, rows)
    assert (tables.sum(axis=1) == rows).all()
    assert updates_of_databases(cells, rows) == pytest.approx(math.log2(len(tables)))


MEASURED: list[Measurement] = [
    MeasuredProduct(Product((2, 3), {1: np.array([True, False, False])}), 9, 1.0),
    MeasuredMarginal(Marginal((0, 1)), np.array([[8.0, 0, 1], [1, 1, 1]]), 1.0),
    MeasuredProduct(Product((2, 3), {0: np.array([False, True])}), 3, 1.0),
]


def replayed(candidates: CandidateTables, written: bool = False) -> MedianMechanism:
    stand_in = MedianMechanism((2, 3), TOTAL, candidates, width=0.2)
    for measurement in MEASURED:
        again = measurement_from_dict(measurement.to_dict()) if written else measurement
        stand_in.update(again)
    return stand_in


@pytest.mark.parametrize("candidates", [EveryDatabase(4), Committee(50, key=3)])
def test_the_transcript_rebuilds_it_bit_for_bit(candidates: CandidateTables) -> None:
    one, two = replayed(candidates), replayed(candidates, written=True)
    assert one._points.tobytes() == two._points.tobytes()


def test_another_key_is_another_committee() -> None:
    assert not np.array_equal(
        replayed(Committee(key=1))._points, replayed(Committee(key=2))._points
    )


@pytest.mark.parametrize("candidates", [EveryDatabase(3), Committee(40)])
def test_a_marginal_is_the_answer_to_each_of_its_cells(candidates: CandidateTables) -> None:
    stand_in = replayed(candidates)
    cells = [Product((2, 3), {1: np.arange(3) == code}) for code in range(3)]
    assert stand_in.marginal((1,)) == pytest.approx(stand_in.answers(cells))
    assert stand_in.marginal(()) == pytest.approx(stand_in.total) == TOTAL


def test_a_cut_that_would_leave_nothing_is_not_made() -> None:
    stand_in = MedianMechanism((2,), TOTAL, EveryDatabase(2))
    first = subset(2, {0})
    for _ in range(5):
        stand_in.update(MeasuredProduct(first, TOTAL, 0))
    assert stand_in.left == 1 and stand_in.answer(first) == TOTAL


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MedianMechanism((2,), 0, EveryDatabase(1)),
        lambda: MedianMechanism((2,), 1, EveryDatabase(1), width=0),
        lambda: MedianMechanism((64,), 1, EveryDatabase(20)),
        lambda: MedianMechanism((2,), 1, EveryDatabase(0)),
        lambda: MedianMechanism((2,), 1, Committee(0)),
        lambda: MedianMechanism((2,), 1, EveryDatabase(1)).answer(subset(3, {1})),
        lambda: MedianMechanism((2,), 1, EveryDatabase(1)).update(
            MeasuredMarginal(Marginal((0,)), np.ones(3), 1.0)
        ),
        lambda: rows_needed(0, 1),
        lambda: updates_of_simplex(2, 2),
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"need|too|about|shape"):
        wrong()


# The committee ------------------------------------------------------------------------------------


def slow_sweep(points: Any, cuts: Cuts, pairs: Any, uniform: Any) -> None:
    """Each move by trying the two ends of what is allowed, from the definition of a cut."""
    for point, moves, draws in zip(points, pairs, uniform, strict=True):
        for (i, j), draw in zip(moves, draws, strict=True):
            low, high = -point[i], point[j]
            for normal, offset in zip(cuts.normals, cuts.offsets, strict=True):
                slope, room = normal[i] - normal[j], float(normal @ point) - offset
                if slope:
                    edge = -room / slope
                    low, high = (max(low, edge), high) if slope > 0 else (low, min(high, edge))
            if low < high:
                shift = low + draw * (high - low)
                point[i] += shift
                point[j] -= shift


@given(st.integers(2, 6), st.integers(0, 4), st.integers(0, 2**32))
def test_hit_and_run_equals_a_slow_version(cells: int, count: int, key: int) -> None:
    random = np.random.default_rng(key)
    points = Committee(7, key).start(cells)
    cuts = Cuts()
    for _ in range(count):
        normal = (random.random(cells) < 0.5).astype(float)
        cuts.add(normal, float((points @ normal).min()) - 0.01)
    normals, offsets = np.array(cuts.normals).reshape(-1, cells), np.array(cuts.offsets)
    pairs, uniform = _pairs(random, 7, cells), random.random((7, cells))
    slow = points.copy()
    _sweep(points, normals, points @ normals.T - offsets, pairs, uniform)
    slow_sweep(slow, cuts, pairs, uniform)
    assert points == pytest.approx(slow, abs=1e-9)
    assert (points @ normals.T >= offsets - 1e-9).all() and (points > -1e-12).all()
    assert points.sum(axis=1) == pytest.approx(1)


def thousandths(values: Floats) -> list[int]:
    return [math.floor(value * 1000) for value in values]


def cut_once(key: int) -> tuple[MedianMechanism, float]:
    """Three cells, cut at the median of the first: then the first has a known law."""
    stand_in = MedianMechanism((3,), 1, Committee(members=4000, key=key, sweeps=20))
    middle = stand_in.answer(subset(3, {0}))
    stand_in.update(MeasuredProduct(subset(3, {0}), 1, 0))
    return stand_in, middle


def test_a_committee_is_a_uniform_sample_of_what_the_cuts_allow(seed: int) -> None:
    """On the triangle P(p > t) = (1 - t)^2; given p > m it is ((1 - t)/(1 - m))^2.

    Members start from copies of survivors, so they are only almost independent after 60 moves
    each: an alarm of 1e-12 on the whole leaves room for that.
    """
    stand_in, middle = cut_once(seed)
    first = stand_in._points[:, 0]

    def cdf(value: int) -> float:
        t = max((value + 1) / 1000, middle)
        return 1 - ((1 - min(t, 1)) / (1 - middle)) ** 2

    assert_follows(thousandths(first), cdf, alarm=1e-12)


def test_the_test_above_would_notice_a_committee_that_was_not_cut(seed: int) -> None:
    first = Committee(members=4000, key=seed).start(3)[:, 0]
    _, middle = cut_once(seed)
    with pytest.raises(AssertionError):
        assert_follows(
            thousandths(first),
            lambda v: 1 - ((1 - max((v + 1) / 1000, middle)) / (1 - middle)) ** 2,
        )


def test_a_committee_needs_no_more_updates_than_the_volume_allows(seed: int) -> None:
    """The bound is for exact medians; 400 members are near enough on six cells."""
    random, alpha = np.random.default_rng(seed), 0.05
    for key in range(5):
        truth = random.dirichlet(np.full(6, 0.3))
        found = longest_sequence(Committee(400, key), truth, alpha, lie=0.0)
        assert found <= updates_of_simplex(6, alpha)


def test_cuts_on_both_sides_need_fewer_updates(seed: int) -> None:
    random, alpha = np.random.default_rng(seed), 0.05
    truths = [random.dirichlet(np.full(6, 0.3)) for _ in range(5)]
    one, both = (
        sum(longest_sequence(Committee(400, key=9), t, alpha, 0.0, width) for t in truths)
        for width in (None, alpha)
    )
    assert both < one
