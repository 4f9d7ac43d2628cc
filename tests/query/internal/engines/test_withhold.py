"""A statement without some of its rows: the old text with another HAVING, and nothing else."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.statements import show
from query import golden_files
from query.golden_files import Golden

from casemate.errors import Unsupported
from casemate.query import Aggregate, Function
from casemate.query.engines import answers, shown_rows
from casemate.query.parse import ShownRow, Withholding, parse_statement
from casemate.query.parse.withhold import constant
from casemate.table import Table

ACCEPTED = golden_files.read("accepted.sql")
CONSTANT_KEYS = 3  # statements grouped by a constant, whose rows have nothing to be told apart by


def present(withholding: Withholding, table: Table) -> dict[ShownRow, list[tuple[Any, ...]]]:
    """Every row there is, and what it shows: nothing where HAVING does not let it through."""
    found: dict[ShownRow, list[tuple[Any, ...]]] = {}
    for select in withholding.statement.selects:
        there = Aggregate(Function.COUNT, None, select.predicate, select.keys, select.joins)
        counts, *answered = answers([there, *select.aggregates], table.source)
        results = dict(zip(select.aggregates, answered, strict=True))
        printed = shown_rows(select, counts, results)
        for key in counts:
            rows = found.setdefault(withholding.row(select, key), [])
            rows += [printed[key]] if key in printed else []
    return found


def shown(sql: str, table: Table) -> Counter[Any]:
    return Counter(show(parse_statement(sql, table.policy), table.source).rows)


def kept(there: dict[ShownRow, list[tuple[Any, ...]]], rows: set[ShownRow]) -> Counter[Any]:
    """What is shown of the rows that are not withheld."""
    return Counter(each for row, printed in there.items() if row not in rows for each in printed)


# Exactly true -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "without"),
    [
        (
            "SELECT sex, SUM(income) FROM people GROUP BY sex -- by sex",
            "SELECT sex, SUM(income) FROM people GROUP BY sex "
            "HAVING NOT (sex IS NOT DISTINCT FROM 'f') -- by sex",
        ),
        (
            "SELECT sex, SUM(income) FROM people WHERE sex <> 'x' GROUP BY 1 "
            "HAVING COUNT(*) > 1 OR MIN(age) > 2 ORDER BY 2 LIMIT 3",
            "SELECT sex, SUM(income) FROM people WHERE sex <> 'x' GROUP BY 1 "
            "HAVING (COUNT(*) > 1 OR MIN(age) > 2) AND NOT (sex = 'f') ORDER BY 2 LIMIT 3",
        ),
        (
            "SELECT upper(sex) AS kind, SUM(income) FROM people WHERE sex <> 'x' GROUP BY kind",
            "SELECT upper(sex) AS kind, SUM(income) FROM people WHERE sex <> 'x' GROUP BY kind "
            "HAVING NOT (upper(sex) = 'F')",
        ),
        (  # a name of FROM goes before a name of SELECT
            "SELECT upper(sex) AS sex, SUM(income) FROM people WHERE sex <> 'x' GROUP BY sex",
            "SELECT upper(sex) AS sex, SUM(income) FROM people WHERE sex <> 'x' GROUP BY sex "
            "HAVING NOT (sex = 'f')",
        ),
        (
            "WITH v AS (SELECT sex, SUM(income) s FROM people WHERE sex <> 'x' GROUP BY sex) "
            "SELECT sex, s FROM v WHERE s > 0 UNION ALL SELECT sex, 2 * s FROM v",
            "WITH v AS (SELECT sex, SUM(income) s FROM people WHERE sex <> 'x' GROUP BY sex "
            "HAVING NOT (sex = 'f')) "
            "SELECT sex, s FROM v WHERE s > 0 UNION ALL SELECT sex, 2 * s FROM v",
        ),
    ],
)
def test_the_condition_goes_to_the_having_of_the_select_and_nothing_else_changes(
    sql: str, without: str, people: Table
) -> None:
    withholding = Withholding(sql, people.policy)
    rows = [ShownRow(0, ("f",)), ShownRow(0, ("F",))]
    there = present(withholding, people)
    assert withholding.without([row for row in rows if row in there], there) == without


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "mysql", "snowflake", "bigquery"])
def test_other_dialects_are_written_as_they_are_read(dialect: str, people: Table) -> None:
    sql = "SELECT area, sex, SUM(income) FROM people GROUP BY area, sex"
    withholding = Withholding(sql, people.policy, dialect)
    there = present(withholding, people)
    text = withholding.without([ShownRow(0, (None, "f")), ShownRow(0, (1, "m"))], there)
    assert text is not None
    shown_rows = show(parse_statement(text, people.policy, dialect), people.source).rows
    assert len(shown_rows) == len(there) - 2


def test_a_branch_without_keys_is_withheld_whole(people: Table) -> None:
    sql = "SELECT SUM(income) FROM people UNION ALL SELECT SUM(income) FROM people GROUP BY sex"
    withholding = Withholding(sql, people.policy)
    there = present(withholding, people)
    text = withholding.without([ShownRow(0, ())], there)
    assert text is not None and "SELECT SUM(income) FROM people HAVING NOT (TRUE) UNION" in text
    assert sum(shown(text, people).values()) == len(there) - 1


def test_nothing_is_left_of_a_statement_all_of_whose_rows_are_withheld(people: Table) -> None:
    for sql in ("SELECT SUM(income) FROM people", "SELECT sex, COUNT(*) FROM people GROUP BY sex"):
        withholding = Withholding(sql, people.policy)
        there = present(withholding, people)
        assert withholding.without(list(there), there) is None


def test_rows_that_look_the_same_go_together(people: Table) -> None:
    """The total over all members looks like the row of those whose membership is not known."""
    withholding = Withholding(
        "SELECT sex, member, SUM(income) FROM people GROUP BY ROLLUP (sex, member)", people.policy
    )
    both, by_sex, _ = withholding.statement.selects
    assert withholding.row(both, ("f", None)) == withholding.row(by_sex, ("f",))
    assert withholding.row(both, ("f", True)) != withholding.row(by_sex, ("f",))


def test_rows_grouped_by_a_constant_cannot_be_told_apart(people: Table) -> None:
    with pytest.raises(Unsupported, match="cannot be told apart"):
        Withholding("SELECT 1, COUNT(*) FROM people GROUP BY 1", people.policy)


def test_thousands_of_rows_can_be_withheld_at_once(people: Table) -> None:
    withholding = Withholding("SELECT age, COUNT(*) FROM people GROUP BY age", people.policy)
    rows = [ShownRow(0, (age,)) for age in range(1_000)]
    assert withholding.without(rows, [*rows, ShownRow(0, (-1,))]) is not None
    with pytest.raises(Unsupported, match="more than"):
        withholding.without(
            many := [ShownRow(0, (age,)) for age in range(30_000)], [*many, ShownRow(0, ())]
        )


def test_a_text_that_hides_other_rows_is_noticed(people: Table) -> None:
    """A key that may be NULL compared with `=` hides the row of NULL too."""
    withholding = Withholding("SELECT sex, COUNT(*) FROM people GROUP BY sex", people.policy)
    grouped = "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING NOT "
    null_too = f"{grouped} (sex = 'f')"
    another_too = f"{grouped} (sex IS NOT DISTINCT FROM 'f' OR sex IS NOT DISTINCT FROM 'm')"
    other = "SELECT sex, COUNT(*) FROM people WHERE age > 3 GROUP BY sex"
    row, there = ShownRow(0, ("f",)), [ShownRow(0, ("f",)), ShownRow(0, (None,))]
    for wrong in (null_too, another_too):
        with pytest.raises(Unsupported, match="told apart"):
            withholding._check(wrong, [row], there)
    with pytest.raises(Unsupported, match="another HAVING"):
        withholding._check(other, [row], there)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_key_that_is_not_a_number_has_no_constant(value: float) -> None:
    with pytest.raises(Unsupported, match="not a number"):
        constant(value, "postgres")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8))
def test_any_text_can_be_a_key(value: str) -> None:
    from sqlglot import parse_one

    for dialect in ("postgres", "duckdb", "mysql"):
        assert parse_one(f"SELECT {constant(value, dialect)}", read=dialect).expressions[
            0
        ].name == (value)


# Against the rows one by one ----------------------------------------------------------------------


def some_rows(there: dict[ShownRow, Any], rng: Random) -> set[ShownRow]:
    share = rng.choice([0.05, 0.3, 0.7])
    return {row for row in there if rng.random() < share}


GROUPED = [golden for golden in ACCEPTED if "GROUP BY" in golden.sql]


def told_apart(sql: str, table: Table) -> Withholding | None:
    try:
        return Withholding(sql, table.policy)
    except Unsupported:
        return None


@pytest.mark.parametrize("golden", GROUPED, ids=str)
def test_the_rows_shown_are_the_old_ones_without_those_withheld(
    golden: Golden, people: Table, rng: Random
) -> None:
    withholding = told_apart(golden.sql, people)
    if withholding is None:
        return
    there = present(withholding, people)
    rows = some_rows(there, rng)
    text = withholding.without(sorted(rows, key=repr), there)
    if text is not None:
        assert shown(text, people) == kept(there, rows)


def test_nearly_every_statement_can_be_rewritten(people: Table) -> None:
    assert [told_apart(golden.sql, people) for golden in ACCEPTED].count(None) == CONSTANT_KEYS


@pytest.mark.postgres
@pytest.mark.parametrize("golden", GROUPED, ids=str)
def test_postgres_itself_shows_fewer_rows_by_those_withheld(
    golden: Golden, people_in_postgres: Table, people_url: str, rng: Random
) -> None:
    """The text as it is sent to PostgreSQL, which looks for HAVING's keys in GROUP BY as text."""
    import psycopg

    withholding = told_apart(golden.sql, people_in_postgres)
    there = {} if withholding is None else present(withholding, people_in_postgres)
    rows = some_rows(there, rng)
    text = None if withholding is None else withholding.without(sorted(rows, key=repr), there)
    if text is None or "LIMIT" in text:
        return
    with psycopg.connect(people_url) as connection:
        try:
            connection.execute(golden.sql.encode())
        except psycopg.Error:
            return  # what is an error there is NULL for us, with the old HAVING too
        assert len(connection.execute(text.encode()).fetchall()) == kept(there, rows).total()
