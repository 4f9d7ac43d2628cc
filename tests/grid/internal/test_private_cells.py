"""Exact cells of questions and tables of classes, against a look at every record."""

from pathlib import Path

import numpy as np
import pytest
from grid.small_grid import SHAPE, cells_of, counting, people, questions
from hypothesis import given
from oracles.cells import codes

from casemate.grid import (
    CellClasses,
    GridQuestion,
    PrivateCells,
    Product,
    all_codes,
    coarsest_classes,
    contract,
    private_cells,
)
from casemate.grid.question import merge_codes
from casemate.query.snapping import histogram
from casemate.table import Table, Universe

CODES = people(200)
WIDE = (7,) * 12


def slowly(product: Product) -> int:
    """Record by record."""
    factors = [product.factor(a) for a in range(len(SHAPE))]
    rows = [np.prod([factors[a][code] for a, code in enumerate(row)]) for row in CODES]
    return int(sum(rows))


@given(questions())
def test_exact_cells_are_those_of_every_record_by_codes_and_by_classes(
    asked: GridQuestion,
) -> None:
    expected = [[sum(map(slowly, cell)) for cell in part.cells] for part in asked.parts]
    assert cells_of(CODES).exact(asked) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private_cells, "MAX_COUNTED_CODES", 0)
        assert cells_of(CODES).exact(asked) == expected


@given(questions(), questions())
def test_the_coarsest_table_answers_its_question_exactly_and_no_other_that_it_cuts(
    asked: GridQuestion, other: GridQuestion
) -> None:
    cells, classes = cells_of(CODES), coarsest_classes(asked)
    table = np.array(cells.class_counts(classes)).reshape(classes.sizes)
    read = [
        sum(float(contract(table, classes.factors(product))) for product in cell)
        for cell in asked.parts[0].cells
    ]
    assert read == cells.exact(asked)[0]
    assert classes.answers(asked) and all_codes(asked.scope, SHAPE).answers(asked)
    dense = [product.dense() for product in classes.products(SHAPE)]
    assert np.array_equal(np.sum(dense, axis=0), np.ones(24)) and len(dense) == classes.cells
    try:
        for product in other.parts[0].products:
            classes.factors(product)
    except ValueError:
        assert not classes.answers(other)


def test_a_product_that_cuts_a_class_cannot_be_read() -> None:
    classes = coarsest_classes(counting({0: [0, 1]}))
    assert classes.labels == ((0, 0, 1, 1),)
    with pytest.raises(ValueError, match="cuts a class"):
        classes.factors(counting({0: [0]}).parts[0].products[0])
    with pytest.raises(ValueError, match="does not have"):
        classes.factors(counting({1: [0]}).parts[0].products[0])


@pytest.mark.parametrize("labels", [((0, 1, 0, 1), (0, 0)), ((0, 0, 0, 0), (0, 1))])
def test_an_engine_counts_classes_as_they_are_merged_afterwards(
    labels: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    rows = "a,b\n" + "".join(f"{i % 5},{'xyz'[i % 3]}\n" for i in range(40)) + ",\n"
    (tmp_path / "t.csv").write_text(rows)
    policy = tmp_path / "p.toml"
    policy.write_text(
        f'[table]\nsource = "{tmp_path / "t.csv"}"\n[columns.a]\ntype = "integer"\nmin = 0\n'
        'max = 4\nbins = 3\n[columns.b]\ntype = "text"\nvalues = ["x"]\n'
    )
    with Table.open(policy) as table:
        universe = Universe.of(table.policy)
        whole = histogram(universe, (0, 1), table.source)
        found = histogram(universe, (0, 1), table.source, labels=labels)
    assert found.tolist() == merge_codes(whole, CellClasses((0, 1), labels)).tolist()


def test_a_conjunction_over_many_attributes_is_counted_by_its_classes_and_kept() -> None:
    records = np.random.default_rng(3).integers(0, 7, (500, 12))
    asked, counted = counting({a: [0, 2, 3, 5, 6] for a in range(12)}, WIDE), list[CellClasses]()
    cells = cells_of(records, WIDE, counted)
    inside = np.isin(records, [0, 2, 3, 5, 6]).all(axis=1).sum()
    assert cells.exact(asked) == [[inside]]
    assert sum(cells.class_counts(coarsest_classes(asked))) == 500
    assert [each.cells for each in counted] == [2**12]


def test_a_narrower_scope_is_summed_from_a_wider_one() -> None:
    counted: list[CellClasses] = []
    cells = cells_of(CODES, SHAPE, counted)
    wide, narrow = cells.marginal((0, 1, 2)), cells.marginal((1,))
    assert (narrow == wide.sum(axis=(0, 2))).all() and cells.total() == 200
    assert [each.scope for each in counted] == [(0, 1, 2)]


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
