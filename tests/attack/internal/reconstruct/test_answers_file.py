"""Published answers in a file: which cell each is about, and one sentence for each mistake."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from casemate.attack.reconstruct.answers_file import Given, read_answers, with_answers
from casemate.errors import Misconfigured
from casemate.published import Publication, publication
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


# What a line is about -------------------------------------------------------------------------

COUNTED = "SELECT area, AVG(pay), COUNT(*), MAX(pay) FROM t GROUP BY area"


@pytest.mark.parametrize(
    ("statement", "lines", "expected"),
    [
        # One number needs no cell, and may be called the first.
        (TOTAL, ["1,,150"], [{(): 150}]),
        (TOTAL, ["1,1,150"], [{(): 150}]),
        # A cell is named by its keys, or by its number where no key is called so.
        (BY_AREA, ["1,7,40", "1,5,30", "1,,80"], [{(7,): 40, (5,): 30, (None,): 80}]),
        (BY_AREA, ["1,1,30", "1,2,40"], [{(5,): 30, (7,): 40}]),
        # A cell without an answer was not published.
        (BY_AREA, ["1,7,40"], [{(7,): 40}]),
        # Several keys and columns have bars between them.
        (
            BY_BOTH,
            ["1,5|f|total,10", "1,5|f|mean,10", "1,7|f|mean,40"],
            [{(5, "f"): 10}, {(5, "f"): 10, (7, "f"): 40}],
        ),
        # Where one column is of use its name may stand there, and others are passed over.
        (
            COUNTED,
            ["1,5|avg,15", "1,5|count,2", "1,7,40", "1,7|count,1", "1,7|max,40"],
            [{(5,): 15, (7,): 40}],
        ),
    ],
)
def test_a_line_is_about_the_cell_that_it_names(
    statement: str, lines: list[str], expected: list[Any], table: Table, tmp_path: Path
) -> None:
    found = answered(table, tmp_path, [statement], *lines)
    assert [column.answers for column in found.columns] == expected


def test_cells_are_numbered_in_the_order_of_numbers_and_not_of_digits(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("area,pay\n10,1\n9,2\n100,3\n")
    with Table.open(tmp_path / "n.csv", private=["pay"]) as table:
        (column,) = answered(table, tmp_path, [BY_AREA], "1,1,2", "1,2,1", "1,3,3").columns
    assert dict(column.answers or {}) == {(9,): Decimal(2), (10,): Decimal(1), (100,): Decimal(3)}


def test_a_statement_of_which_a_part_is_refused_needs_no_answer(
    table: Table, tmp_path: Path
) -> None:
    partly = "SELECT SUM(pay), SUM(pay * pay) FROM t"
    (column,) = answered(table, tmp_path, [TOTAL, partly], "1,,150").columns
    assert (column.query, column.answers) == (1, {(): Decimal(150)})


def test_the_column_cell_may_be_absent(tmp_path: Path) -> None:
    (given,) = read(tmp_path, "2, 7.50 ", header="query,answer")
    assert (given.query, given.cell, given.answer) == (2, "", Decimal("7.50"))


# One sentence for each mistake ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["1,,abc"], "line 2: the answer is not a number"),
        (["1,,"], "line 2: the answer is not a number"),
        (["1"], "line 2: the answer is not a number"),
        (["1,,nan"], "line 2: the answer is not a finite number"),
        (["1,,inf"], "line 2: the answer is not a finite number"),
        (["0,,3"], "line 2: the query must be its number"),
        (["-1,,3"], "line 2: the query must be its number"),
        (["x,,3"], "line 2: the query must be its number"),
        ([",,3"], "line 2: the query must be its number"),
        (["1,,150"], "query 2 has no answer"),
        (["1,,150", "2,5,30", "3,,1"], "line 4 answers query 3, and there are 2 queries"),
        (["1,,150", "2,9,30"], "line 3: query 2 shows no cell of that name.*'5'"),
        (["1,,150", "2,4,30"], "shows no cell of that name"),
        (["1,,150", "2,5,30", "2,5,31"], "line 4: this cell has an answer already"),
        (["1,,150", "1,,151", "2,5,3"], "line 3: this cell has an answer already"),
    ],
)
def test_answers_that_say_nothing_or_do_not_match_the_queries_are_refused(
    lines: list[str], sentence: str, table: Table, tmp_path: Path
) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        answered(table, tmp_path, [TOTAL, BY_AREA], *lines)


@pytest.mark.parametrize("header", ["", "query,answers", "sql,answer", "query,cell,answer,more"])
def test_another_header_is_refused_and_so_is_a_file_that_cannot_be_read(
    header: str, tmp_path: Path
) -> None:
    with pytest.raises(Misconfigured, match="must begin with query,cell,answer"):
        read(tmp_path, "1,,3", header=header)
    with pytest.raises(Misconfigured, match=r"gone.csv cannot be read"):
        read_answers(tmp_path / "gone.csv")
