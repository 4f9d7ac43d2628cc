"""Every accepted statement: what it becomes, and that every way to answer it agrees."""

from typing import Any

import numpy as np
import pytest
from oracles.statements import show
from query import golden_files, slow
from query.golden_files import Golden

from casemate.query import Aggregate, Function
from casemate.query.engines import answers, describe
from casemate.query.parse import parse, parse_statement
from casemate.query.records import Lineage, Membership, lineage, linear_form, membership
from casemate.table import Table

ACCEPTED = golden_files.read("accepted.sql")
every_statement = pytest.mark.parametrize("golden", ACCEPTED, ids=str)


@every_statement
def test_a_statement_becomes_these_aggregates(golden: Golden, people: Table) -> None:
    assert tuple(describe(each) for each in parse(golden.sql, people.policy)) == golden.becomes


@pytest.fixture(params=["people", pytest.param("people_in_postgres", marks=pytest.mark.postgres)])
def table(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@every_statement
def test_answers_lineage_and_members_are_those_of_the_slow_interpreter(
    golden: Golden, table: Table, records: list[dict[str, Any]]
) -> None:
    aggregates = parse(golden.sql, table.policy)
    assert_answers(aggregates, answers(aggregates, table.source), records)
    assert_adds_up(aggregates, lineage(aggregates, table.source), records)
    single = [each for each in aggregates if each.single_valued or not each.keys]
    assert_members(single, membership(single, table.source), records)


@pytest.mark.postgres
@pytest.mark.parametrize("golden", [each for each in ACCEPTED if each.everywhere], ids=str)
def test_the_original_text_prints_the_same_in_postgres(
    golden: Golden, people: Table, people_in_postgres: Table, people_url: str
) -> None:
    import psycopg

    text = golden.sql.replace("FROM anything", "FROM people")
    if " FROM " not in text:
        text = text.replace(" WHERE ", " FROM people WHERE ")
        text = text if " FROM " in text else f"{text} FROM people"
    unlimited = text.split(" LIMIT ")[0]
    with psycopg.connect(people_url) as connection:
        printed = connection.execute(unlimited.encode()).fetchall()
    for table in (people, people_in_postgres):
        shown = show(parse_statement(golden.sql, table.policy), table.source)
        assert slow.same_rows(shown.rows, printed)


def assert_answers(
    aggregates: list[Aggregate], found: list[dict[Any, Any]], records: list[dict[str, Any]]
) -> None:
    for aggregate, cells in zip(aggregates, found, strict=True):
        expected = slow.answer(aggregate, records)
        assert cells.keys() == expected.keys(), describe(aggregate)
        for key, value in expected.items():
            assert slow.close(cells[key], value), describe(aggregate)


def assert_adds_up(
    aggregates: list[Aggregate], found: Lineage, records: list[dict[str, Any]]
) -> None:
    """The coefficients times the true secrets are the sums, for all that is linear."""
    secrets = {
        each: [each.of(record[each.column]) for record in records] for each in found.unknowns
    }
    totals = dict.fromkeys(found.cells, 0.0)
    for cell, record, unknown, coefficient in zip(
        found.cell, found.record, found.unknown, found.coefficient, strict=True
    ):
        known = 1 if unknown < 0 else secrets[found.unknowns[unknown]][record]
        totals[found.cells[cell]] += float(coefficient) * float(known)
    for index, aggregate in enumerate(aggregates):
        opaque = linear_form(aggregate) is None
        assert (index in found.opaque) == opaque
        if not opaque and aggregate.function in (Function.SUM, Function.COUNT, Function.AVG):
            shown = {cell.key: total for cell, total in totals.items() if cell.aggregate == index}
            assert_sums(aggregate, shown, records)


def assert_sums(
    aggregate: Aggregate, shown: dict[Any, float], records: list[dict[str, Any]]
) -> None:
    function = Function.COUNT if aggregate.function is Function.COUNT else Function.SUM
    plain = Aggregate(
        function, aggregate.argument, aggregate.predicate, aggregate.keys, aggregate.joins
    )
    expected = slow.answer(plain, records)
    for key in expected.keys() | shown.keys():
        assert slow.close(shown.get(key, 0.0), expected.get(key) or 0), describe(aggregate)


def assert_members(
    aggregates: list[Aggregate], found: Membership, records: list[dict[str, Any]]
) -> None:
    for index, aggregate in enumerate(aggregates):
        inside = list(slow.selected(aggregate, records))
        assert set(np.flatnonzero(found.mask(index))) == {place for place, _ in inside}
        groups = found.groups[index]
        assert (groups is None) == (not aggregate.keys)
        for place, row in inside if groups is not None else []:
            key = tuple(slow.value(each, row) for each in aggregate.keys)
            assert groups is not None
            assert groups.keys[groups.codes[place]] == key
