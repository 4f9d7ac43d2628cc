"""What the parser refuses, where it says so, and what it makes of the rest."""

import logging
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query import golden_files
from query.golden_files import Golden
from sqlglot import exp

from casemate.errors import Misconfigured, Unsupported
from casemate.query import Function, Ordering
from casemate.query.engines import describe
from casemate.query.parse import parse, parse_statement, split
from casemate.query.parse.translate import AGGREGATES, READINGS
from casemate.table import Table

ACCEPTED = golden_files.read("accepted.sql")
REFUSED = golden_files.read("refused.sql")


@pytest.mark.parametrize("golden", REFUSED, ids=str)
def test_a_hostile_statement_is_refused_with_its_place_and_a_reason(
    golden: Golden, people: Table, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(Unsupported) as refused:
        parse(golden.sql, people.policy)
    error = refused.value
    assert (f"{error.line}:{error.column} {error.reason}",) == golden.becomes
    assert not caplog.records, "the parser's own messages stay inside"


def test_the_caret_stands_under_the_first_character_of_what_is_refused(people: Table) -> None:
    sql = "SELECT COUNT(*)\nFROM people\nWHERE age > 3 AND md5(note) = 'x'"
    with pytest.raises(Unsupported) as refused:
        parse(sql, people.policy)
    _, shown, caret = str(refused.value).splitlines()
    assert shown[caret.index("^") :].startswith("md5(note)")


def spread(sql: str, column: int) -> tuple[str, tuple[int, int]]:
    """The text with breaks and tabs for spaces outside quotes, and where a character went."""
    text, place, quote = "/* é😀 */\t\r\n\t", 0, ""
    for offset, character in enumerate(sql, 1):
        place = len(text) if offset == column else place
        quote = quote if quote and character != quote else "" if quote else character
        quote = quote if quote in ("'", '"') else ""
        text += "\r\n\t " if character == " " and not quote else character
    before = text[:place].split("\n")
    return text, (len(before), len(before[-1]) + 1)


@pytest.mark.parametrize(
    "golden", [each for each in REFUSED if "\n" not in each.sql and "'" not in each.sql], ids=str
)
def test_the_place_does_not_depend_on_how_the_text_is_spaced(golden: Golden, people: Table) -> None:
    expected = int(golden.becomes[0].partition(":")[2].partition(" ")[0])
    text, place = spread(golden.sql, expected)
    with pytest.raises(Unsupported) as refused:
        parse(text, people.policy)
    assert (refused.value.line, refused.value.column) == place


def chained(first: str, later: str, last: str, links: int = 40) -> str:
    """A WITH in which each query doubles what the one before it gives."""
    views = [f"a0 AS ({first})", *(f"a{i + 1} AS ({later.format(i)})" for i in range(links))]
    return f"WITH {', '.join(views)} {last} FROM a{links}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 3_000 + "1" + ")" * 3_000,
        "SELECT COUNT(*) FROM t WHERE " + "NOT " * 3_000 + "member",
        "SELECT " + "- " * 3_000 + "1",
        "SELECT " + "CASE WHEN member THEN " * 500 + "1" + " END" * 500,
        "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 500 + "people" + ") AS q" * 500,
        "SELECT COUNT(*) FROM t WHERE age " + "+ age " * 26_000 + "> 3",
        "SELECT COUNT(*) FROM t WHERE age IN (" + "1, " * 60_000 + "1)",
        "SELECT '" + "x" * 2_000_000 + "', COUNT(*)",
        "SELECT COUNT(*) FROM t WHERE age " + "+ age " * 200 + "> 3",
        "SELECT " + "COUNT(*) + " * 200 + "1 FROM t",
        chained("SELECT age AS x FROM t", "SELECT x + x AS x FROM a{0}", "SELECT SUM(x)"),
        chained(
            "SELECT COUNT(*) AS x FROM t",
            "SELECT x FROM a{0} UNION ALL SELECT x FROM a{0}",
            "SELECT x",
        ),
    ],
    ids=[
        *("parentheses", "not", "minus", "case", "derived", "sum", "list", "text"),
        *("chain", "results", "doubling", "branches"),
    ],
)
def test_what_is_too_deep_or_too_long_is_refused_and_not_crashed_on(
    sql: str, people: Table
) -> None:
    with pytest.raises(Unsupported, match=r"deep|more than|longer"):
        parse(sql, people.policy)


@pytest.mark.parametrize("opening", ["(", "abs(", "coalesce(1, ", "(1 + "])
def test_what_is_refused_as_deep_down_as_is_read_at_all_has_a_place(
    people: Table, opening: str
) -> None:
    sql = f"SELECT COUNT(*) WHERE {opening * 31}md5(note){')' * 31} > 3"
    with pytest.raises(Unsupported, match="md5") as refused:
        parse(sql, people.policy)
    assert sql.index("md5") <= refused.value.column - 1 <= sql.index("note")


def test_long_but_flat_statements_are_read(people: Table) -> None:
    ages = " OR ".join(f"age = {each}" for each in range(2_000))
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {ages}", people.policy)
    assert aggregate.private_predicate == frozenset()
    several = " UNION ALL ".join("SELECT SUM(income) FROM people" for _ in range(300))
    assert len(parse_statement(several, people.policy).selects) == 300


def reason(text: str, table: Table) -> str | None:
    try:
        parse(text, table.policy)
    except Unsupported as refused:
        return refused.reason
    return None


PIECES = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|[^\w\s]")
STATEMENTS = [PIECES.findall(golden.sql) for golden in (*ACCEPTED, *REFUSED)]
ODD = ["$1", "::", "[", "{", "\\", "E'a'", "LATERAL", "OVER", "()", "1e400", "0x1f", "²", "NULLS"]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A golden statement with some of its pieces replaced, removed or added."""
    pieces = list(draw(st.sampled_from(STATEMENTS)))
    others = draw(st.sampled_from(STATEMENTS))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(pieces)))
        removed = draw(st.integers(0, 2))
        pieces[place : place + removed] = [" ", draw(st.sampled_from([*others, *ODD, ""])), " "]
    return "".join(pieces)


@given(st.text(max_size=60))
def test_any_text_at_all_is_read_or_refused(people: Table, text: str) -> None:
    assert reason(text, people) != ""


@given(mutated())
def test_a_statement_with_a_mistake_in_it_is_read_or_refused(people: Table, text: str) -> None:
    assert reason(text, people) != ""


@pytest.mark.parametrize("character", ["\x00", "\ud800"])
def test_characters_that_no_database_holds_are_refused(people: Table, character: str) -> None:
    assert "character" in str(reason(f"SELECT COUNT(*) WHERE note = '{character}'", people))


def test_order_keeps_its_direction_and_the_place_of_nulls(people: Table) -> None:
    ending = "ORDER BY n DESC, sex NULLS FIRST LIMIT 3"
    sql = f"SELECT sex, COUNT(*) AS n FROM people GROUP BY sex {ending}"
    statement = parse_statement(sql, people.policy)
    (select,) = statement.selects
    sex, count = (each.expression for each in select.outputs)
    assert select.order == (Ordering(count, True, True), Ordering(sex, False, True))
    assert statement.limit == 3


@pytest.mark.parametrize(
    ("ending", "limit"),
    [
        ("LIMIT 7", 7),
        ("LIMIT 0", 0),
        ("LIMIT ALL", None),
        ("LIMIT NULL", None),
        ("FETCH FIRST 7 ROWS ONLY", 7),
        ("", None),
    ],
)
def test_a_limit_is_a_number_of_rows_or_none(people: Table, ending: str, limit: int | None) -> None:
    for text in ("SELECT COUNT(*) FROM people {}", "(SELECT COUNT(*) FROM people {})"):
        assert parse_statement(text.format(ending), people.policy).limit == limit


def test_every_accepted_node_type_is_listed_by_name() -> None:
    """The allow-list holds concrete types only: no base class lets a family through."""
    listed = {*READINGS, *AGGREGATES}
    families = {exp.Expression, exp.Func, exp.AggFunc, exp.Binary, exp.Unary, exp.Condition}
    assert not listed & families


def test_private_columns_in_predicate_and_argument_are_marked(people: Table) -> None:
    sql = "SELECT SUM(income) FROM people WHERE diagnosis = 'flu' AND age > 3"
    (aggregate,) = parse(sql, people.policy)
    assert aggregate.private_argument == {"income"}
    assert aggregate.private_predicate == {"diagnosis"}
    (grouped,) = parse("SELECT diagnosis, COUNT(*) FROM people GROUP BY 1", people.policy)
    assert grouped.private_predicate == {"diagnosis"}
    assert not grouped.private_argument


def test_aggregates_of_having_and_order_are_asked_for_but_not_shown(people: Table) -> None:
    sql = "SELECT sex, SUM(income) FROM people GROUP BY sex HAVING COUNT(*) > 3 ORDER BY MAX(age)"
    (select,) = parse_statement(sql, people.policy).selects
    functions = [Function.SUM, Function.COUNT, Function.MAX]
    assert [each.function for each in select.aggregates] == functions
    assert select.shown == {0}


def test_a_join_on_the_key_is_known_to_meet_one_row_at_most(people: Table) -> None:
    def single(condition: str) -> bool:
        sql = f"SELECT COUNT(*) FROM people p JOIN areas a ON {condition}"
        return parse(sql, people.policy)[0].single_valued

    assert single("p.area = a.area")
    assert single("a.area = p.age + 1 AND a.region = 'north'")
    assert not single("p.area > a.area")
    assert not single("p.area = a.rate")
    assert not single("a.area = a.rate")


@pytest.mark.parametrize(
    ("sql", "dialect", "read"),
    [
        *(
            (f"SELECT SUM({spelling}) FROM people", "postgres", 'sum("Height")')
            for spelling in ('"Height"', "Height", "height", "HEIGHT")
        ),
        ('SELECT COUNT(*) WHERE sex = "f"', "mysql", "count(*) where \"sex\" = 'f'"),
        ("SELECT SUM(age / 2)", "duckdb", 'sum((cast("age" as double) / 2.0e0))'),
        ("SELECT SUM(age // 2)", "duckdb", 'sum(("age" / 2))'),
    ],
)
def test_names_and_signs_are_read_as_the_dialect_reads_them(
    people: Table, sql: str, dialect: str, read: str
) -> None:
    (aggregate,) = parse(sql, people.policy, dialect)
    assert describe(aggregate) == read


def test_what_a_dialect_does_not_have_or_means_otherwise_is_refused(people: Table) -> None:
    sql = "SELECT SUM(LEAST(age, 3)) FROM people"
    assert parse(sql, people.policy, "duckdb") == parse(sql, people.policy)
    with pytest.raises(Unsupported, match="NULL in this dialect"):
        parse(sql, people.policy, "mysql")
    with pytest.raises(Unsupported, match="no column height"):
        parse('SELECT SUM("height") FROM people', people.policy)
    with pytest.raises(Misconfigured, match="klingon"):
        parse(sql, people.policy, "klingon")


def test_a_script_is_cut_at_its_semicolons(people: Table) -> None:
    script = "SELECT COUNT(*) FROM people; -- one\n\nSELECT SUM(income) FROM t WHERE note = ';';"
    assert split(script) == [
        "SELECT COUNT(*) FROM people",
        "SELECT SUM(income) FROM t WHERE note = ';'",
    ]
    with pytest.raises(Unsupported, match="one statement at a time"):
        parse(script, people.policy)
    with pytest.raises(Unsupported, match="no statement"):
        parse("  -- nothing", people.policy)


def test_a_column_without_a_type_is_refused_where_it_is_named(people: Table) -> None:
    bare = replace(
        people.policy, columns=tuple(replace(each, type=None) for each in people.policy.columns)
    )
    assert parse("SELECT COUNT(*) FROM people", bare)
    for sql in ("SELECT SUM(age) FROM people", "SELECT COUNT(*) FROM (SELECT age FROM people)"):
        with pytest.raises(Unsupported, match="the type of age is not known; declare `type`"):
            parse(sql, bare)
