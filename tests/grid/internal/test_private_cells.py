"""Exact cells of questions, against a look at every record."""

import numpy as np
import pytest
from grid.internal.test_classes import questions
from grid.small_grid import SHAPE, cells_of, people
from hypothesis import given
from oracles.cells import codes

from casemate.grid import Classes, GridQuestion, PrivateCells, Product, Scope, private_cells
from casemate.table import Table, Universe

CODES = people(200)


def slowly(product: Product) -> int:
    """Record by record."""
    factors = [product.factor(a) for a in range(len(SHAPE))]
    rows = [np.prod([factors[a][code] for a, code in enumerate(row)]) for row in CODES]
    return int(sum(rows))


@given(questions())
def test_exact_cells_are_those_of_every_record(asked: GridQuestion) -> None:
    expected = [[sum(map(slowly, cell)) for cell in part.cells] for part in asked.parts]
    assert cells_of(CODES).exact(asked) == expected


def test_a_narrower_scope_is_summed_from_a_wider_one() -> None:
    asked: list[Scope] = []

    def count(classes: Classes) -> np.ndarray:
        asked.append(classes.scope)
        return cells_of(CODES).marginal(classes.scope)

    cells = PrivateCells(SHAPE, count)
    wide, narrow = cells.marginal((0, 1, 2)), cells.marginal((1,))
    assert asked == [(0, 1, 2)]
    assert (narrow == wide.sum(axis=(0, 2))).all() and cells.total() == 200


def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_cells, "MAX_CACHED_CELLS", 13)
    cells = cells_of(CODES)
    for scope in [(0, 1), (1, 2), (0,), (0, 1)]:
        assert (cells.marginal(scope) == cells_of(CODES).marginal(scope)).all()
        assert sum(table.size for table in cells._tables.values()) <= 13


def test_cells_of_an_open_table_are_those_of_its_records_and_are_never_printed() -> None:
    with Table.open("population:500:3") as table:
        universe = Universe.of(table.policy)
        key = bytes(range(32))
        cells = PrivateCells.of(universe, table.source, key)
        records = codes(universe, table.source, key=key)
        found = np.zeros(universe.sizes((0, 1)), np.int64)
        np.add.at(found, (records[:, 0], records[:, 1]), 1)
        assert (cells.marginal((0, 1)) == found).all()
        assert str(universe.cells) in repr(cells) and str(len(records)) not in repr(cells)
