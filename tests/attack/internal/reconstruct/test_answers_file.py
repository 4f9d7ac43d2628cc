"""Published answers in a file: which cell each is about, and one sentence for each mistake."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from casemate.attack.reconstruct.answers_file import Given, read_answers, with_answers
from casemate.errors import Misconfigured
from casemate.published import Publication, publication
from casemate.query.engines import Key
from casemate.query.parse import Logged
from casemate.table import Table

TOTAL = "SELECT SUM(pay) FROM t"
BY_AREA = "SELECT area, SUM(pay) FROM t GROUP BY area"
BY_BOTH = "SELECT area, sex, SUM(pay) AS total, AVG(pay) AS mean FROM t GROUP BY area, sex"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    (tmp_path / "t.csv").write_text("area,sex,pay\n5,f,10\n5,m,20\n7,f,40\n,f,80\n")
    with Table.open(tmp_path / "t.csv", private=["pay"]) as opened:
        yield opened


def read(folder: Path, *lines: str, header: str = "query,cell,answer") -> list[Given]:
    (folder / "a.csv").write_text("\n".join([header, *lines, ""]))
    return read_answers(folder / "a.csv")


def answered(table: Table, folder: Path, statements: list[str], *lines: str) -> Publication:
    found = publication([Logged(sql, 1) for sql in statements], table.policy)
    return with_answers(found, read(folder, *lines), table.source)


def told(found: Publication) -> list[dict[Key, Decimal]]:
    return [dict(column.answers or {}) for column in found.columns]


# What a line is about -------------------------------------------------------------------------


def test_a_statement_that_shows_one_number_needs_no_cell(table: Table, tmp_path: Path) -> None:
    for line in ("1,,150", "1,1,150"):
        assert told(answered(table, tmp_path, [TOTAL], line)) == [{(): Decimal(150)}]


def test_the_column_cell_may_be_absent(tmp_path: Path) -> None:
    (given,) = read(tmp_path, "2, 7.50 ", header="query,answer")
    assert (given.query, given.cell, given.answer) == (2, "", Decimal("7.50"))


def test_a_cell_is_named_by_its_keys(table: Table, tmp_path: Path) -> None:
    found = answered(table, tmp_path, [BY_AREA], "1,7,40", "1,5,30", "1,,80")
    assert told(found) == [{(7,): Decimal(40), (5,): Decimal(30), (None,): Decimal(80)}]


def test_a_cell_is_named_by_its_number_where_no_key_is_called_so(
    table: Table, tmp_path: Path
) -> None:
    found = answered(table, tmp_path, [BY_AREA], "1,1,30", "1,2,40")
    assert told(found) == [{(5,): Decimal(30), (7,): Decimal(40)}]


def test_several_keys_and_columns_have_bars_between_them(table: Table, tmp_path: Path) -> None:
    found = answered(table, tmp_path, [BY_BOTH], "1,5|f|total,10", "1,5|f|mean,10", "1,7|f|mean,40")
    by_name = {column.output.name: column.answers for column in found.columns}
    assert by_name == {
        "total": {(5, "f"): Decimal(10)},
        "mean": {(5, "f"): Decimal(10), (7, "f"): Decimal(40)},
    }


def test_where_one_column_is_of_use_its_name_may_stand_there_and_others_are_passed_over(
    table: Table, tmp_path: Path
) -> None:
    counted = "SELECT area, AVG(pay), COUNT(*), MAX(pay) FROM t GROUP BY area"
    lines = ["1,5|avg,15", "1,5|count,2", "1,7,40", "1,7|count,1", "1,7|max,40"]
    assert told(answered(table, tmp_path, [counted], *lines)) == [
        {(5,): Decimal(15), (7,): Decimal(40)}
    ]


def test_cells_are_numbered_in_the_order_of_numbers_and_not_of_digits(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("area,pay\n10,1\n9,2\n100,3\n")
    with Table.open(tmp_path / "n.csv", private=["pay"]) as table:
        found = answered(table, tmp_path, [BY_AREA], "1,1,2", "1,2,1", "1,3,3")
    assert told(found) == [{(9,): Decimal(2), (10,): Decimal(1), (100,): Decimal(3)}]


def test_cells_without_an_answer_were_not_published(table: Table, tmp_path: Path) -> None:
    assert told(answered(table, tmp_path, [BY_AREA], "1,7,40")) == [{(7,): Decimal(40)}]


# One sentence for each mistake ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1,,abc", r"line 2: the answer is not a number"),
        ("1,,", r"line 2: the answer is not a number"),
        ("1", r"line 2: the answer is not a number"),
        ("1,,nan", r"line 2: the answer is not a finite number"),
        ("1,,inf", r"line 2: the answer is not a finite number"),
        ("0,,3", r"line 2: the query must be its number"),
        ("-1,,3", r"line 2: the query must be its number"),
        ("x,,3", r"line 2: the query must be its number"),
        (",,3", r"line 2: the query must be its number"),
    ],
)
def test_a_line_that_says_nothing_is_refused(line: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        read(tmp_path, line)


@pytest.mark.parametrize("header", ["", "query,answers", "sql,answer", "query,cell,answer,more"])
def test_another_header_is_refused(header: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="must begin with query,cell,answer"):
        read(tmp_path, "1,,3", header=header)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"gone.csv cannot be read"):
        read_answers(tmp_path / "gone.csv")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["1,,150"], "query 2 has no answer"),
        (["1,,150", "2,5,30", "3,,1"], r"line 4 answers query 3, and there are 2 queries"),
        (["1,,150", "2,9,30"], r"line 3: query 2 shows no cell of that name.*'5'"),
        (["1,,150", "2,4,30"], "shows no cell of that name"),
        (["1,,150", "2,5,30", "2,5,31"], r"line 4: this cell has an answer already"),
        (["1,,150", "1,,151", "2,5,3"], r"line 3: this cell has an answer already"),
    ],
)
def test_answers_that_do_not_match_the_queries_are_refused(
    lines: list[str], sentence: str, table: Table, tmp_path: Path
) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        answered(table, tmp_path, [TOTAL, BY_AREA], *lines)
