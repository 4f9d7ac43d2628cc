"""Whatever is asked of whatever table: a measurement never fails, and means what Python means."""

from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from answer.session_world import csv, policy
from grid import hostile_world as hostile
from grid.compiled_world import ask, plain
from hypothesis import example, given, settings
from servers import PostgresServer

from casemate import Session
from casemate.errors import Unsupported
from casemate.grid import Direct, Relation, Spread
from casemate.query import Function, Select
from casemate.query.engines import group_by, rows, values
from casemate.query.language import KeyRef, ResultRef
from casemate.query.parse import parse_statement
from casemate.query.snapping import cells_of
from casemate.query.snapping.histograms import as_declared
from casemate.table.sources import Source

TINY = (
    "SELECT CASE WHEN grade = 7 THEN grade*0.0000001*0.0000001 ELSE 1 END, COUNT(*) "
    "FROM people WHERE age = 99 GROUP BY 1"
)


@pytest.fixture(scope="session")
def source(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Source]:
    with ExitStack() as held:
        if request.param == "duckdb":
            made = hostile.in_duckdb(tmp_path_factory.mktemp("hostile"))
        else:
            server: PostgresServer = request.getfixturevalue("postgres_server")
            made = hostile.in_postgres(held.enter_context(server.database()))
        held.callback(made.close)
        yield made


IN_DUCKDB = pytest.mark.parametrize("source", ["duckdb"], indirect=True)
IN_BOTH = pytest.mark.parametrize(
    "source", ["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


def compiled(sql: str) -> Direct | None:
    """A statement to be measured; None where it is refused, which depends on its text alone."""
    try:
        return ask(sql, hostile.POLICY).direct(Relation())
    except Unsupported:
        return None


def assert_measured(sql: str, source: Source) -> None:
    made = compiled(sql)
    if made is None:
        return
    cells = made.cells(source)
    for part, found in zip(made.parts, cells, strict=True):
        assert found == hostile.slow_cells(part)
    (select,) = parse_statement(sql, hostile.POLICY).selects
    shown = plain(made.rows(made.outcome(cells, lambda _part, _added: Spread(0.0, 0.0, 0.0))))
    unit = max(part.unit for part in made.parts)
    assert_rows(shown, select, unit)


def assert_rows(shown: list[tuple[Any, ...]], select: Select, unit: Fraction) -> None:
    """Every group of the slow way is shown with its numbers, and all others with nothing."""
    exact = hostile.slow_rows(select)
    references = [each.expression for each in select.outputs]
    keys = [references.index(KeyRef(i, each.type)) for i, each in enumerate(select.keys)]
    by_key = {tuple(row[place] for place in keys): row for row in shown}
    assert exact.keys() <= by_key.keys()
    for key, row in by_key.items():
        expected = exact.get(key, [Fraction(0)] * len(select.aggregates))
        for number, reference in zip(row, references, strict=True):
            if isinstance(reference, ResultRef):
                assert_number(number, expected[reference.index], select, reference.index, unit)


def assert_number(number: Any, true: Fraction, select: Select, index: int, unit: Fraction) -> None:
    function = select.aggregates[index].function
    if function is not Function.MAX:
        room = 0 if function is Function.COUNT else hostile.ROWS * unit
        assert abs(Fraction(number) - true) <= room + abs(true) * Fraction(1, 10**12)


# Exactly true ---------------------------------------------------------------------------------


@IN_BOTH
@given(hostile.statements())
@example(TINY)
@settings(max_examples=60)
def test_a_measurement_never_fails_and_is_what_the_interpreter_says_row_by_row(
    source: Source, sql: str
) -> None:
    assert_measured(sql, source)


@IN_DUCKDB
@pytest.mark.parametrize(
    "sql",
    [
        TINY,
        "SELECT upper(word), COUNT(*) FROM people GROUP BY 1",
        "SELECT grade * 0.0000001 * 0.0000003, COUNT(*) FROM people GROUP BY 1",
    ],
)
def test_keys_that_an_engine_computes_are_not_found_among_those_of_the_interpreter(
    source: Source, sql: str
) -> None:
    """The twin: what a measurement once did fails on statements that are now measured."""
    assert_measured(sql, source)
    (select,) = parse_statement(sql, hostile.POLICY).selects
    with pytest.raises(KeyError):
        looked_up(select, source)


def looked_up(select: Select, source: Source) -> list[int]:
    """Groups by keys that the engine computes, looked up among those that Python computed."""
    groups = cells_of(select, hostile.UNIVERSE).groups
    numbers = {group.key: number for number, group in enumerate(groups)}
    keys = {f"k{i}": as_declared(each) for i, each in enumerate(select.keys)}
    inner = rows(source, (), as_declared(select.predicate), keys)
    frame = source.read(group_by(inner, list(keys), {"n": "count(*)"}))
    return [numbers[key] for key in zip(*(values(frame[name]) for name in keys), strict=True)]


@pytest.mark.parametrize(
    "sql",
    [
        "SUM(far * 2) FROM people",
        "SUM(far + 1) FROM people",
        "SUM(CASE WHEN far > 0 THEN far + 9223372036854775807 ELSE 0 END) FROM people",
        "SUM(share * 1e300 * 1e300) FROM people",
        "SUM(rate * 99999999999999999999 * 99999999999) FROM people",
        "COUNT(*) FROM people WHERE far + 1 > 3",
        "AVG(ROUND(rate, 1) * 1234567890123456789012345.5) FROM people",
    ],
)
def test_what_might_overflow_within_the_bounds_is_refused_from_its_text(sql: str) -> None:
    with pytest.raises(Unsupported):
        ask(f"SELECT {sql}", hostile.POLICY)


SUMS_AND_RANKS = [
    "SUM(far) FROM people",
    "SUM(grade / 3), SUM(grade % 4), SUM(sqrt(grade)), AVG(1.0 / grade) FROM people",
    "SUM(CASE WHEN far > 0 THEN 2.5 ELSE 1 END) FROM people",
    "SUM(CASE WHEN rate < 0.333333333334 THEN rate * 3 ELSE 0.5 END) FROM people",
    "SUM(CASE WHEN word LIKE '%s%' THEN length(upper(word)) ELSE 3 END) FROM people",
    "SUM(rate), SUM(share), SUM(share * 0.1), SUM(rate * 0.5) FROM people GROUP BY flag",
    "AVG(share), SUM(share + 0.5), SUM(0.25 - share), SUM(share * share) FROM people",
    "SUM(CAST(rate AS double precision)), AVG(rate) FROM people",
    "COUNT(*), SUM(floor(rate)), AVG(age) FROM people WHERE age % 2 = 1 OR flag",
    "COUNT(*) FILTER (WHERE (age % 3 = 1) IS NOT TRUE), COUNT(*) FROM people GROUP BY grade",
    "MEDIAN(share), MAX(rate), MIN(far), MIN(born), MAX(seen) FROM people GROUP BY level",
    f"SUM(rate{' + 0.25' * 20}), AVG(grade{' + 1' * 20}) FROM people",
]


@IN_BOTH
@pytest.mark.parametrize("sql", SUMS_AND_RANKS)
def test_sums_and_ranks_are_measured_as_the_interpreter_says(source: Source, sql: str) -> None:
    made = compiled(f"SELECT {sql}")
    assert made is not None
    for part, found in zip(made.parts, made.cells(source), strict=True):
        assert found == hostile.slow_cells(part)


@pytest.mark.parametrize("grade", [7, 8, None])
@pytest.mark.parametrize("strategy", ["warm", "laplace"])
def test_whatever_one_person_has_the_same_groups_are_answered(
    grade: int | None, strategy: str, tmp_path: Path
) -> None:
    csv(tmp_path / "people.csv", ("age", "grade"), [(99, grade), *[(30, 5)] * 40])
    columns = """
    [columns.age]
    type = "integer"
    min = 0
    max = 99
    [columns.grade]
    type = "integer"
    role = "private"
    min = 1
    max = 10
    """
    more = f'[answer]\nstrategy = "{strategy}"\nquestions = 10\n'
    path = policy(tmp_path, table='source = "people.csv"', columns=columns, more=more)
    with Session(path) as session:
        answer = session.query(TINY, measure=True)
    assert [row[0] for row in answer.rows] == [Decimal(1), Decimal("7E-14")]


def test_two_keys_whose_combination_no_cell_has_are_refused() -> None:
    keys = "CASE WHEN age < 16 THEN 1 ELSE 2 END, CASE WHEN age < 18 THEN 1 ELSE 2 END"
    with pytest.raises(Unsupported, match="narrower than"):
        ask(f"SELECT {keys}, COUNT(*) FROM people GROUP BY 1, 2", hostile.POLICY)


def test_a_statement_is_the_same_measurement_however_it_is_written() -> None:
    def parts(sql: str) -> object:
        made = compiled(f"SELECT {sql}")
        assert made is not None
        return repr(made.parts)

    several = [
        "COUNT(*) FROM people WHERE age < 18 AND grade <> 7",
        "COUNT(*) FROM people WHERE NOT (age >= 18) AND grade IN (1, 2, 3, 4, 5, 6, 8, 9, 10)",
        "COUNT(*) FROM people WHERE grade <> 7 AND age + 1 <= 18 AND age > -5",
    ]
    first, *others = map(parts, several)
    assert all(each == first for each in others)
    assert parts("COUNT(*) FROM people WHERE age < 17 AND grade <> 7") != first
