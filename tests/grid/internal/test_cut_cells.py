"""Limits inside cells: what is proven holds for the statement as it was typed."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from grid.compiled_world import (
    aggregates,
    ask,
    cells_of,
    contains,
    exactly,
    noised,
    plain,
    truth,
    within,
)
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from query import universes

from casemate.answer import Session
from casemate.errors import Unsupported
from casemate.grid import Compiled, Noised, Relation
from casemate.grid.readings import AverageReading
from casemate.table import AttributeKind, Budget, Column, ColumnType, Policy, Table, Universe
from casemate.table.sources import Source

WORKED = Column("worked", type=ColumnType.INTEGER, low=0, high=99, bins=10)
PAY = Column("pay", type=ColumnType.INTEGER, low=0, high=9)
SEX = Column("sex", type=ColumnType.TEXT, values=("f", "m"))
STATEMENTS = [
    "COUNT(*) FROM t WHERE worked > 50",
    "COUNT(*) FROM t WHERE worked BETWEEN 51 AND 92",
    "COUNT(*) FROM t WHERE NOT worked <= 50",
    "COUNT(*) FROM t WHERE worked = 50 AND sex = 'f'",
    "COUNT(*) FROM t WHERE (worked > 50 AND pay > 4) OR (worked > 72 AND sex = 'f')",
    "SUM(pay) FROM t WHERE worked > 50",
    "SUM(pay - 5) FROM t WHERE worked <= 50",
    "SUM(worked) FROM t WHERE worked > 50",
    "SUM(CASE WHEN worked > 50 THEN pay ELSE 0 END) FROM t",
    "AVG(pay) FROM t WHERE worked > 50 AND worked < 64",
    "AVG(worked) FROM t WHERE worked < 51",
    "MEDIAN(pay) FROM t WHERE worked > 50 AND worked < 60",
    "MIN(9 - pay) FROM t WHERE worked > 50 AND worked < 60",
    "MAX(pay) FROM t WHERE worked > 50 AND worked < 60",
    "CASE WHEN worked < 51 THEN 'less' ELSE 'more' END, COUNT(*) FROM t GROUP BY 1",
    "CASE WHEN worked < 51 THEN 'less' ELSE 'more' END, AVG(pay) FROM t GROUP BY 1",
]


@pytest.fixture(scope="module")
def heaped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """Of 6,000 people 40 % work 50 hours, at a limit and in a cell; all of them are paid 9."""
    random, path = Random(3), tmp_path_factory.mktemp("heaped") / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["worked", "pay", "sex"])
        for place in range(6_000):
            hours = 50 if place % 5 < 2 else random.randrange(100)
            rows.writerow([hours, 9 if hours == 50 else random.randrange(5), random.choice("fm")])
    budget = Budget(Fraction(1), Fraction(1, 10**6))
    with Table.open(Policy(str(path), (WORKED, PAY, SEX), budget=budget)) as table:
        yield table


def true_rows(sql: str, source: Source, policy: Policy) -> dict[tuple[Any, ...], Any]:
    return {row[:-1]: row[-1] for row in truth(sql, source, policy)}


def holds(question: Compiled, sql: str, source: Source, policy: Policy, width: float) -> bool:
    """Whether the truth is within the bounds of every row that SQL shows."""
    shown = question.rows(within(question, cells_of(source, policy), width, Random(7)))
    theirs = true_rows(sql, source, policy)
    nobody = 0 if "COUNT" in sql else None
    for row, cell in zip(plain(shown), noised(shown), strict=True):
        true = theirs.get(row[:-1], nobody)
        if true is not None and not contains(cell, true):
            return False
        if cell.value is not None and not contains(cell, cell.value):
            return False
    return True


def unbracketed(question: Compiled) -> Compiled:
    """The same with bounds around the statement as it was moved."""
    layouts = tuple(
        replace(layout, readings=tuple(map(without_room, layout.readings)))
        for layout in question.layouts
    )
    return replace(question, layouts=layouts)


def without_room(reading: Any) -> Any:
    if isinstance(reading, AverageReading):
        parts = {"count": without_room(reading.count), "sum": without_room(reading.sum)}
        return replace(reading, **parts)
    return replace(reading, room=None)


# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("width", [0.0, 2.0])
def test_what_is_proven_holds_for_the_statement_as_typed(
    heaped: Table, sql: str, width: float
) -> None:
    question = ask(f"SELECT {sql}", heaped.policy)
    assert not question.exact
    assert holds(question, f"SELECT {sql}", heaped.source, heaped.policy, width)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_without_room_for_cut_cells_it_would_not(heaped: Table, sql: str) -> None:
    """The twin: bounds of the statement as it was moved."""
    question = unbracketed(ask(f"SELECT {sql}", heaped.policy))
    assert not holds(question, f"SELECT {sql}", heaped.source, heaped.policy, 0.0)


def test_a_count_is_proven_between_whole_and_touched_cells(heaped: Table) -> None:
    inner, outer, found = (cell_of(f"worked >= {limit}", heaped) for limit in (60, 50, 51))
    assert (found.lo, found.hi) == (inner.value, outer.value)
    assert found.value == outer.value, "51 is nearer to 50"
    assert cell_of("worked >= 57", heaped).value == inner.value


def cell_of(where: str, table: Table, shown: str = "COUNT(*)") -> Noised:
    """The one cell of a statement with exact numbers."""
    question = ask(f"SELECT {shown} FROM t WHERE {where}", table.policy)
    (cell,) = noised(question.rows(exactly(question, cells_of(table.source, table.policy))))
    return cell


@pytest.mark.parametrize("shown", ["COUNT(*)", "SUM(pay)", "AVG(pay)", "MEDIAN(pay)"])
def test_the_typical_error_knows_that_limits_were_moved(heaped: Table, shown: str) -> None:
    whole, cut = (cell_of(f"worked >= {limit}", heaped, shown) for limit in (50, 51))
    assert whole.error == 0.0 and whole.value == cut.value
    assert cut.error is not None and cut.error > 0


def test_only_a_statement_that_cuts_cells_has_parts_for_them() -> None:
    assert len(ask("SELECT COUNT(*) FROM people WHERE age >= 40").asked.parts) == 1
    cut = ask("SELECT COUNT(*) FROM people WHERE age > 42").asked
    assert len(cut.parts) == cut.together == 2
    both = ask("SELECT COUNT(*) FROM people WHERE age > 42 AND age < 53").asked
    assert len(both.parts) == 3 and both.together == 2
    assert ask("SELECT COUNT(*) FROM people WHERE age > 49").exact, "which is >= 50"


def test_a_direct_measurement_is_of_the_statement_and_of_nothing_else() -> None:
    for shown, parts in {"COUNT(*)": 1, "SUM(weight)": 1, "AVG(weight)": 2}.items():
        cut, whole = (
            ask(f"SELECT {shown} FROM people WHERE age > {limit}").direct(Relation())
            for limit in (42, 49)
        )
        assert len(cut.parts) == len(whole.parts) == parts
        assert cut.together == whole.together


@pytest.mark.parametrize(
    ("where", "side"),
    [
        ("age > 42", "inside the cell [40, 50); it was answered as if for values >= 40"),
        ("age > 47", "inside the cell [40, 50); it was answered as if for values >= 50"),
        ("age < 18", "inside the cell [10, 20); it was answered as if for values < 20"),
        ("age = 44", "inside the cell [40, 50); it was answered as if for no value"),
        ("age <> 44", "inside the cell [40, 50); it was answered as if for every value"),
        (
            "age IS NULL OR age < 31 OR age > 77",
            "inside the cells [30, 40), [70, 80); it was answered as if for values < 30 or >= 80 "
            "or NULL",
        ),
        ("age > 91", "inside the cell [90, 99]; it was answered as if for values >= 90"),
        (
            "age BETWEEN 22 AND 48",
            "inside the cells [20, 30), [40, 50); it was answered as if for values >= 20 and < 50",
        ),
    ],
)
def test_a_note_names_the_side_and_what_the_bounds_have_room_for(where: str, side: str) -> None:
    room = "those cells" if "cells" in side else "that cell"
    assert ask(f"SELECT COUNT(*) FROM people WHERE {where}").notes == (
        f"age: a limit lies {side}, and the bounds have room for {room}",
    )


def test_a_note_names_the_group_of_a_cut_cell() -> None:
    key = "CASE WHEN age < 44 THEN 'young' WHEN age < 61 THEN 'middle' END"
    assert ask(f"SELECT {key}, COUNT(*) FROM people GROUP BY 1").notes == (
        "age: a group ends inside the cells [40, 50), [60, 70); it was counted whole as middle, "
        "NULL, and the bounds have room for those cells",
    )


def test_two_keys_that_may_share_out_a_cell_are_refused() -> None:
    keys = "CASE WHEN age < 42 THEN 1 ELSE 2 END, CASE WHEN age < 44 THEN 1 ELSE 2 END"
    with pytest.raises(Unsupported, match="two keys change inside one cell"):
        ask(f"SELECT {keys}, COUNT(*) FROM people GROUP BY 1, 2")


# Properties -------------------------------------------------------------------------------------


@given(st.data(), universes.policies, st.sampled_from([0.0, 0.7, 9.0, 40.0]))
@settings(max_examples=50)
def test_bounds_hold_the_truth_wherever_limits_lie(
    people: Table, data: st.DataObject, policy: Policy, width: float
) -> None:
    attributes = Universe.of(policy).attributes
    binned = [each for each in attributes if each.kind is AttributeKind.BINS]
    on_boundaries = st.sampled_from(attributes).flatmap(universes.on_boundaries)
    anywhere = st.sampled_from(binned).flatmap(universes.anywhere) | on_boundaries
    cut = data.draw(st.booleans())
    where = data.draw(universes.combined(anywhere if cut else on_boundaries))
    limit = data.draw(st.sampled_from(binned).flatmap(universes.anywhere))
    keys = ["", "sex", "area", "member, sex"]
    keys += [f"CASE WHEN {limit} THEN 'a' ELSE 'b' END"] if cut else []
    key, shown = data.draw(st.sampled_from(keys)), data.draw(aggregates)
    grouped = (f"{key}, ", f" GROUP BY {key}") if key else ("", "")
    sql = f"SELECT {grouped[0]}{shown} FROM people WHERE {where}{grouped[1]}"
    try:
        question = ask(sql, policy)
    except Unsupported:
        assert cut
        reject()  # a group narrower than a cell
    assert cut or question.exact
    assert holds(question, sql, people.source, policy, width)


# A session --------------------------------------------------------------------------------------


def test_a_session_proves_what_was_typed_about_a_heaped_column(heaped: Table) -> None:
    """The seed is fixed; a statement fails with a chance of 5 % at most, and in truth far less."""
    statements = [
        "SELECT COUNT(*) FROM t WHERE worked > 50",
        "SELECT COUNT(*) FROM t WHERE worked = 50 AND sex = 'f'",
        "SELECT AVG(pay) FROM t WHERE worked > 50",
        "SELECT MEDIAN(pay) FROM t WHERE worked >= 51",
    ]
    with Session.simulated(heaped.policy, 1) as session:
        for sql in statements:
            answer = session.query(sql)
            ((cell,),) = answer.rows
            ((true,),) = truth(sql, heaped.source, heaped.policy)
            assert isinstance(cell, Noised) and contains(cell, true), sql
            assert any("as if for" in note for note in answer.notes)


def test_a_session_whose_bounds_are_those_of_the_moved_statement_is_wrong(heaped: Table) -> None:
    """The twin: the bounds for 50 hours or more do not hold those who work more than 50."""
    typed = "SELECT COUNT(*) FROM t WHERE worked > 50"
    with Session.simulated(heaped.policy, 0) as session:
        ((moved,),) = session.query("SELECT COUNT(*) FROM t WHERE worked >= 50").rows
    ((true,),) = truth(typed, heaped.source, heaped.policy)
    assert isinstance(moved, Noised) and not contains(moved, true)
