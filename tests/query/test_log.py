"""Query logs: scripts, CSV with answers, and PostgreSQL's own log; and columns beside a text."""

import csv
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.query.parse import Logged, Unread, compared_with_text, read_queries

SCRIPT = "-- monthly\nSELECT COUNT(*) FROM t;\n\nSELECT\n  SUM(x) FROM t WHERE a = ';';\n"
ANSWERED = 'sql,answer\n"SELECT SUM(x) FROM t\nWHERE a = 1",32.10\nSELECT COUNT(*),\n'
PARTLY_READ = "sql,answer\nSELECT 1,many\n,3\nSELECT 2,4\nSELECT 3,inf\n"


@pytest.mark.parametrize(
    ("name", "text", "entries"),
    [
        (
            "q.sql",
            SCRIPT,
            [
                Logged("SELECT COUNT(*) FROM t", 2, title="monthly"),
                Logged("SELECT\n  SUM(x) FROM t WHERE a = ';'", 4),
            ],
        ),
        (
            "q.csv",
            ANSWERED,
            [
                Logged("SELECT SUM(x) FROM t\nWHERE a = 1", 2, Decimal("32.10")),
                Logged("SELECT COUNT(*)", 4),
            ],
        ),
        (
            "q.csv",
            PARTLY_READ,
            [
                Unread("SELECT 1", 2, "the answer is not a number"),
                Unread("", 3, "there is no statement on this line"),
                Logged("SELECT 2", 4, Decimal(4)),
                Unread("SELECT 3", 5, "the answer is not a number"),
            ],
        ),
    ],
)
def test_a_log_is_read_line_by_line_and_a_line_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, text: str, entries: list[Logged | Unread]
) -> None:
    (tmp_path / name).write_text(text)
    assert read_queries(tmp_path / name, "postgres") == entries


def server_line(message: str, detail: str = "", severity: str = "LOG") -> list[str]:
    cells = [""] * 26
    cells[11], cells[13], cells[14] = severity, message, detail
    return cells


def test_the_log_of_a_server_is_read_with_its_parameters(tmp_path: Path) -> None:
    """A parameter of two digits is not mistaken for one of one."""
    path = tmp_path / "log.csv"
    eleven = ", ".join(f"${i} = '{i}0'" for i in range(1, 12))
    lines = [
        server_line("connection authorized"),
        server_line("statement: SELECT SUM(x) FROM t;"),
        server_line(
            "execute <unnamed>: SELECT SUM(x) FROM t WHERE a = $1 AND b = '$1' AND c > $2",
            "Parameters: $1 = 'it''s', $2 = '3'",
        ),
        server_line("statement: INSERT INTO t VALUES (1)"),
        server_line("execute s1: SELECT SUM(x) FROM t WHERE a = $12", f"parameters: {eleven}"),
        server_line("statement: SELECT oops", severity="ERROR"),
        server_line("execute s1: SELECT SUM(x) WHERE a IN ($11, $1)", f"parameters: {eleven}"),
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    missing = "the value of $12 is not in the log; put it back"
    assert read_queries(path, "postgres") == [
        Logged("SELECT SUM(x) FROM t", 2),
        Logged("SELECT SUM(x) FROM t WHERE a = 'it''s' AND b = '$1' AND c > '3'", 3),
        Unread("SELECT SUM(x) FROM t WHERE a = $12", 5, missing),
        Logged("SELECT SUM(x) WHERE a IN ('110', '10')", 7),
    ]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("q.csv", "a,b\n1,2\n", "no column sql"),
        ("q.csv", "sql,answer,who\nSELECT 1,2,me\n", "a column 'who'"),
        ("q.sql", "-- nothing\n", "no statement"),
        ("gone.sql", None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_log_is_refused_in_one_sentence(
    tmp_path: Path, name: str, text: str | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(Misconfigured, match=reason):
        read_queries(tmp_path / name, "postgres")


# Which columns a statement compares with text, read off its tokens alone -------------------------


@pytest.mark.parametrize(
    "predicate",
    [
        "status = 'C'",
        "status <> 'C'",
        "status IN ('C', 'D')",
        "status NOT IN ('C')",
        "status LIKE 'C%'",
        "status NOT LIKE 'C%'",
        "\"status\" = 'C'",
        "STATUS = 'C'",
        "t.status = 'C'",
        "area = 3 AND (pay > 2 OR status = 'C')",
    ],
)
def test_a_text_beside_a_name_is_found(predicate: str) -> None:
    sql = f"SELECT COUNT(*) FROM t WHERE {predicate}"
    assert compared_with_text([sql], ["status", "pay"]) == {"status"}


@pytest.mark.parametrize(
    "predicate", ["status = 1", "status IN (1, 2)", "status IS NULL", "area = 'C'", "status > 3"]
)
def test_numbers_and_other_names_are_not(predicate: str) -> None:
    sql = f"SELECT SUM(status) FROM t WHERE {predicate}"
    assert compared_with_text([sql], ["status"]) == frozenset()


def test_one_statement_of_many_is_enough_and_unreadable_ones_are_passed_over() -> None:
    statements = ["SELECT SUM(x) FROM t", "SELECT 'open", "SELECT COUNT(*) FROM t WHERE x = 'a'"]
    assert compared_with_text(statements, ["x"]) == {"x"}


@given(st.text(alphabet="ab'\"=() ,1;-", max_size=30))
def test_no_text_at_all_is_an_accident(text: str) -> None:
    assert compared_with_text([text], ["a"]) <= {"a"}
