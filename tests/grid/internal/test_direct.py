"""Measured on the table itself: whole numbers, one statement a grouping, bounded sensitivities."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from grid.compiled_world import POLICY, ask, cells_of, plain, truth

from casemate.grid import Direct, Relation, Spread
from casemate.table import Column, ColumnType, Policy, Table
from casemate.table.sources import Series, Source
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.files import ColumnsInMemory

KEY = b"a secret of the dataset"


def direct(sql: str, policy: Policy = POLICY, relation: Relation | None = None) -> Direct:
    return ask(f"SELECT {sql}", policy).direct(relation or Relation())


def without_noise(_: int, __: int) -> Spread:
    return Spread(0.0, 0.0, 0.0)


def measured(sql: str, source: Source, policy: Policy = POLICY) -> list[tuple[Any, ...]]:
    made = direct(sql, policy)
    return plain(made.rows(made.outcome(made.cells(source), without_noise)))


# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "COUNT(*), SUM(age), AVG(age) FROM people WHERE age < 18",
        "SUM(bonus), AVG(bonus) FROM people WHERE bonus > 0.5",
        "AVG(weight), SUM(weight) / COUNT(*) FROM people WHERE weight <> 3",
        "COUNT(*) FILTER (WHERE age > 31), MEDIAN(weight) FROM people",
        "SUM(CASE WHEN age > 31 THEN weight ELSE 0 END) FROM people",
    ],
)
def test_without_noise_it_is_the_answer_of_sql_however_fine_the_limits(
    people: Table, sql: str
) -> None:
    (ours,) = measured(sql, people.source)
    (theirs,) = truth(f"SELECT {sql}", people.source)
    assert ours == pytest.approx(tuple(float(each) for each in theirs))


def test_one_statement_is_sent_for_each_grouping(people: Table) -> None:
    sent: list[str] = []

    class Listening:
        dialect = people.source.dialect
        relation, fields, close = people.source.relation, people.source.fields, people.source.close

        def read(self, sql: str) -> Any:
            sent.append(sql)
            return people.source.read(sql)

    direct("COUNT(*), SUM(weight), AVG(age) FROM people GROUP BY sex").cells(Listening())
    assert len(sent) == 1
    direct("COUNT(*), MEDIAN(age) FROM people GROUP BY ROLLUP (sex)").cells(Listening())
    assert len(sent) == 1 + 4


def test_at_most_so_many_rows_of_a_person_are_counted(people: Table) -> None:
    policy = replace(POLICY, person="area", rows_per_person=3)
    made = direct("COUNT(*), SUM(weight) FROM people", policy)
    with Table.open(replace(people.policy, person="area", rows_per_person=3)) as table:
        (count,), _ = made.cells(table.source, KEY)
        assert count == 4 * 3
        with pytest.raises(ValueError, match="needs the dataset's key"):
            made.cells(table.source)


def test_counts_of_whole_cells_say_what_they_count_on_the_grid(people: Table) -> None:
    made = direct("area, COUNT(*), SUM(weight) FROM people WHERE age >= 20 GROUP BY area")
    counted, summed = made.on_grid
    assert summed is None and counted is not None
    assert cells_of(people.source).values(counted) == made.cells(people.source)[0]
    assert direct("COUNT(*) FROM people WHERE age >= 21").on_grid == (None,)
    assert direct("COUNT(*) FROM people WHERE age >= 20 OR sex = 'f'").on_grid == (None,)


def test_noise_is_carried_along_the_ranks_and_scaled_to_the_units_of_the_rows() -> None:
    made = direct("MEDIAN(weight), SUM(bonus) FROM people")

    def noise(part: int, added: int) -> Spread:
        return Spread(float(added), 10.0 * added + part, None)

    numbers = {10: [1] * 10, 1: [3 * 10**7]}
    outcome = made.outcome([numbers[size] for size in made.sizes], noise)
    ranked = made.sizes.index(10)
    ranks, total = outcome.parts[ranked], outcome.parts[1 - ranked]
    assert [each.value for each in ranks] == list(range(1, 11))
    assert ranks[4].error == 5.0 and ranks[4].hi == 5 + 50 + ranked
    assert ranks[4].session_hi is None
    shown = made.rows(outcome).rows[0][1]
    room = (10 + 1 - ranked) * 1e-7
    assert shown.value == pytest.approx(3.0) and shown.hi == pytest.approx(3.0 + room)  # type: ignore[union-attr]  # a sum
    assert total[0].value == 3 * 10**7
    with pytest.raises(ValueError, match="a noised number for each cell"):
        made.outcome([[1]], noise)


# Sensitivity ------------------------------------------------------------------------------------

TINY = Policy(
    "",
    (
        Column("x", type=ColumnType.INTEGER, low=-2, high=3),
        Column("sex", type=ColumnType.TEXT, values=("m", "f")),
    ),
)
RECORDS = list(product([-2, 0, 3, None], ["m", "f", None]))
TYPES = {"x": ColumnType.INTEGER, "sex": ColumnType.TEXT}


def in_memory(columns: dict[str, Sequence[Any]], types: dict[str, ColumnType]) -> DuckDBSource:
    empty = {ColumnType.TEXT: "", ColumnType.INTEGER: 0, ColumnType.DOUBLE: 0.0}
    series = {}
    for name, values in columns.items():
        missing = np.array([each is None for each in values])
        kind: Any = object if types[name] is ColumnType.TEXT else None
        filled = [empty[types[name]] if each is None else each for each in values]
        series[name] = Series(np.array(filled, dtype=kind), missing)
    return DuckDBSource(ColumnsInMemory("memory", series, types))


@pytest.fixture(scope="module")
def single_records() -> list[DuckDBSource]:
    return [in_memory({"x": [x], "sex": [sex]}, TYPES) for x, sex in RECORDS]


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize(
    "sql",
    [
        "COUNT(*), SUM(x), AVG(x) FROM people GROUP BY sex",
        "COUNT(*), SUM(x), AVG(x) FROM people",
        "COUNT(x), SUM(x + 2) FROM people WHERE sex = 'f'",
        "MEDIAN(x) FROM people GROUP BY sex",
    ],
)
def test_sensitivities_are_what_the_worst_neighbours_show(
    single_records: list[DuckDBSource], sql: str, most: int, exchanged: bool
) -> None:
    """Cells add up over records, so those of one record each tell all neighbours."""
    made = direct(sql, TINY, Relation(exchanged, most))
    alone = [made.cells(source) for source in single_records]
    for part, bound in enumerate(made.sensitivities):
        rows = [np.array(each[part]) for each in alone]
        moves = [b - a for a in rows for b in rows] if exchanged else rows
        sums = [sum(each) for each in combinations_with_replacement(moves, most)]
        worst = max(int(np.abs(each).sum()) for each in sums)
        assert worst in (bound.in_all, 0)  # the number of rows never changes, if exchanged
        assert max(int(np.square(each).sum()) for each in sums) in (bound.squared, worst)


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize(
    "sql",
    ["COUNT(*), SUM(x), AVG(x) FROM people GROUP BY sex", "MEDIAN(x), MAX(x) FROM people"],
)
def test_the_sensitivity_of_a_question_is_what_the_worst_neighbours_show(
    single_records: list[DuckDBSource], sql: str, exchanged: bool
) -> None:
    asked = ask(f"SELECT {sql}", TINY).asked
    alone = [cells_of(source, TINY).exact(asked) for source in single_records]
    for place, part in enumerate(asked.parts):
        rows = [np.array(each[place]) for each in alone]
        moves = [b - a for a in rows for b in rows] if exchanged else rows
        worst = max(int(np.abs(each).max()) for each in moves)
        assert worst <= part.sensitivity(Relation(exchanged))
        if not exchanged:
            assert worst == part.sensitivity(Relation())
