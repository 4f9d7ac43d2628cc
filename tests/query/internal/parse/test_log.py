"""Query logs: scripts, CSV with answers, and PostgreSQL's own log."""

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from casemate.errors import Misconfigured, Unsupported
from casemate.query.parse import Logged, Unread
from casemate.query.parse.log import bind_parameters, read_log


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_script_is_cut_into_statements_with_their_lines(tmp_path: Path) -> None:
    text = "-- monthly\nSELECT COUNT(*) FROM t;\n\nSELECT\n  SUM(x) FROM t WHERE a = ';';\n"
    assert read_log(written(tmp_path, "q.sql", text)) == [
        Logged("SELECT COUNT(*) FROM t", 2),
        Logged("SELECT\n  SUM(x) FROM t WHERE a = ';'", 4),
    ]


def test_a_csv_gives_statements_with_their_published_answers(tmp_path: Path) -> None:
    text = 'sql,answer\n"SELECT SUM(x) FROM t\nWHERE a = 1",32.10\nSELECT COUNT(*),\n'
    assert read_log(written(tmp_path, "q.csv", text)) == [
        Logged("SELECT SUM(x) FROM t\nWHERE a = 1", 2, Decimal("32.10")),
        Logged("SELECT COUNT(*)", 4),
    ]


def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    text = "sql,answer\nSELECT 1,many\n,3\nSELECT 2,4\nSELECT 3,inf\n"
    assert read_log(written(tmp_path, "q.csv", text)) == [
        Unread("SELECT 1", 2, "the answer is not a number"),
        Unread("", 3, "there is no statement on this line"),
        Logged("SELECT 2", 4, Decimal(4)),
        Unread("SELECT 3", 5, "the answer is not a number"),
    ]


def server_line(message: str, detail: str = "", severity: str = "LOG") -> list[str]:
    cells = [""] * 26
    cells[11], cells[13], cells[14] = severity, message, detail
    return cells


def test_the_log_of_a_server_is_read_with_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [
                server_line("connection authorized"),
                server_line("statement: SELECT SUM(x) FROM t;"),
                server_line(
                    "execute <unnamed>: SELECT SUM(x) FROM t WHERE a = $1 AND b = '$1' AND c > $2",
                    "Parameters: $1 = 'it''s', $2 = '3'",
                ),
                server_line("statement: INSERT INTO t VALUES (1)"),
                server_line("execute s1: SELECT SUM(x) FROM t WHERE a = $1"),
                server_line("statement: SELECT oops", severity="ERROR"),
            ]
        )
    assert read_log(path) == [
        Logged("SELECT SUM(x) FROM t", 2),
        Logged("SELECT SUM(x) FROM t WHERE a = 'it''s' AND b = '$1' AND c > '3'", 3),
        Unread(
            "SELECT SUM(x) FROM t WHERE a = $1",
            5,
            "the value of $1 is not in the log; put it back",
        ),
    ]


def test_parameters_of_two_digits_are_not_mistaken_for_one() -> None:
    detail = ", ".join(f"${i} = '{i}0'" for i in range(1, 12))
    sql = "SELECT COUNT(*) FROM t WHERE a IN ($11, $1)"
    assert (
        bind_parameters(sql, f"parameters: {detail}")
        == "SELECT COUNT(*) FROM t WHERE a IN ('110', '10')"
    )
    with pytest.raises(Unsupported, match=r"\$12"):
        bind_parameters("SELECT COUNT(*) WHERE a = $12", detail)


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
    path = tmp_path / name if text is None else written(tmp_path, name, text)
    with pytest.raises(Misconfigured, match=reason):
        read_log(path)
