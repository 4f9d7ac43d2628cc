"""Marginals by shared summation, answers from summed-area tables, and tables that agree."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import (
    Floats,
    Marginal,
    MeasuredMarginal,
    Scope,
    contract,
    over_many_ranges,
    over_ranges,
    summed_area,
)
from casemate.surrogate import dense as module
from casemate.surrogate.dense import MarginalTables, marginals
from casemate.surrogate.projection import reconcile

SHAPE = (3, 2, 4, 1, 3)
SCOPES = [s for k in range(6) for s in itertools.combinations(range(5), k)]


@pytest.fixture
def cells(seed: int) -> Floats:
    return np.random.default_rng(seed).random(SHAPE)


def others(scope: Scope) -> tuple[int, ...]:
    return tuple(set(range(len(SHAPE))) - set(scope))


def test_every_marginal_is_the_sum_over_the_other_attributes(cells: Floats) -> None:
    found = marginals(cells, SCOPES)
    assert set(found) == set(SCOPES)
    for scope in SCOPES:
        assert found[scope] == pytest.approx(cells.sum(axis=others(scope)))


def test_the_bits_of_a_marginal_do_not_depend_on_which_others_are_wanted(cells: Floats) -> None:
    together = marginals(cells, SCOPES)
    for scope in SCOPES:
        assert np.array_equal(marginals(cells, [scope])[scope], together[scope])


@given(st.data())
def test_a_range_is_read_off_the_corners(data: st.DataObject) -> None:
    table = np.arange(24.0).reshape(2, 3, 4)
    ranges = [sorted(data.draw(st.tuples(*2 * [st.integers(0, width)]))) for width in table.shape]
    box = tuple(slice(first, end) for first, end in ranges)
    firsts, ends = zip(*ranges, strict=True)
    assert float(over_ranges(summed_area(table), firsts, ends)) == table[box].sum()


def test_weights_are_contracted_axis_by_axis(seed: int) -> None:
    draw = np.random.default_rng(seed)
    table, rows, columns = draw.random((3, 4)), draw.normal(size=3), draw.normal(size=4)
    rows[1] = 0.0
    assert contract(table, [rows, columns]) == pytest.approx(rows @ table @ columns)
    assert contract(table, [rows]) == pytest.approx(rows @ table)
    assert contract(table, [np.zeros(3), columns]) == 0.0
    assert contract(np.array(7), []) == 7


def test_many_ranges_are_looked_up_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    area = summed_area(np.arange(24.0).reshape(2, 3, 4))
    ranges = np.array([[(0, 1 + i % 2), (i % 3, 3), (0, i % 5)] for i in range(50)])
    together = over_many_ranges(area, ranges)
    monkeypatch.setattr("casemate.grid.product.MAX_CORNERS_AT_ONCE", 40)
    assert over_many_ranges(area, ranges).tobytes() == together.tobytes()


# What is remembered -----------------------------------------------------------------------------


def test_what_was_asked_before_the_cells_changed_is_made_again_together(cells: Floats) -> None:
    tables = MarginalTables()
    for scope in [(0, 1), (2, 4)]:
        tables.table(cells, scope)
    tables.forget()
    changed = cells * 2
    assert np.array_equal(tables.table(changed, (0, 1)), marginals(changed, [(0, 1)])[(0, 1)])
    assert set(tables._tables) == {(0, 1), (2, 4)}
    assert np.array_equal(tables.area(changed, (2, 4)), summed_area(tables.table(changed, (2, 4))))


def test_what_was_not_asked_for_between_two_changes_is_let_go(cells: Floats) -> None:
    tables = MarginalTables()
    tables.table(cells, (0, 1))
    tables.table(cells, (2,))
    for _ in range(2):
        tables.forget()
        tables.table(cells, (2,))
    assert set(tables._tables) == {(2,)}


def test_memory_stays_bounded(cells: Floats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED_NUMBERS", 14)
    tables = MarginalTables()
    for scope in [(0, 4), (0,), (2,), (0, 2)]:
        assert np.array_equal(tables.table(cells, scope), marginals(cells, [scope])[scope])
        tables.area(cells, scope)
        assert len(tables._tables) == 1 or sum(t.size for t in tables._tables.values()) <= 14
    assert set(tables._areas) == set(tables._tables) == {(0, 2)}


# Tables that agree ------------------------------------------------------------------------------


def noisy(
    cells: Floats, scopes: list[Scope], deviation: float, seed: int
) -> list[MeasuredMarginal]:
    draw, exact = np.random.default_rng([seed, 3]), marginals(cells, scopes)
    return [
        MeasuredMarginal(
            Marginal(s), exact[s] + draw.normal(0, deviation, exact[s].shape), deviation**2
        )
        for s in scopes
    ]


def in_one_world(tables: list[MeasuredMarginal], total: float) -> list[Floats]:
    moved = reconcile(tables, [table.values[..., None] for table in tables], np.array([total]))
    return [values[..., 0] for values in moved]


PAIRS: list[Scope] = list(itertools.combinations(range(5), 2))


def test_tables_agree_on_the_total_and_on_every_attribute(cells: Floats, seed: int) -> None:
    tables = noisy(cells, PAIRS, 0.5, seed)
    moved = in_one_world(tables, 100.0)
    for attribute in range(5):
        sums = [
            values.sum(axis=tuple(i for i, a in enumerate(t.marginal.scope) if a != attribute))
            for t, values in zip(tables, moved, strict=True)
            if attribute in t.marginal.scope
        ]
        assert all(one == pytest.approx(sums[0]) for one in sums)
        assert sums[0].sum() == pytest.approx(100)


def test_the_sharper_table_counts_more() -> None:
    sharp = MeasuredMarginal(Marginal((0,)), np.array([8.0, 2.0]), 1.0)
    blunt = MeasuredMarginal(Marginal((0,)), np.array([4.0, 6.0]), 3.0)
    for values in in_one_world([sharp, blunt], 10.0):
        assert values == pytest.approx([7, 3])
