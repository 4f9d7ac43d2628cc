"""Statements out of lines."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.answer.conversation import is_ended, statements
from casemate.errors import Misconfigured, Unsupported

ENDED = ["", "SELECT 1;", "SELECT 1; ", "SELECT 1; -- done", "a; b; /* c */", ";", "SELECT ';';"]
OPEN = ["SELECT 1", "SELECT ';", "SELECT 1 -- ;", "SELECT 1 /* ;", '"a;"', "a; b", "SELECT ';'"]


def test_a_semicolon_ends_a_statement_and_inside_something_else_ends_nothing() -> None:
    assert [text for text in ENDED + OPEN if is_ended(text, "postgres")] == ENDED


def test_a_statement_comes_as_soon_as_its_line_has_come() -> None:
    seen: list[str] = []

    def lines() -> Iterator[str]:
        for line in ("SELECT\n", "1;\n", "SELECT 2;\n"):
            seen.append(line)
            yield line

    found = statements(lines(), "postgres")
    assert next(found) == "SELECT\n1" and len(seen) == 2
    assert list(found) == ["SELECT 2"]


def test_what_is_never_closed_is_refused_at_the_end() -> None:
    with pytest.raises(Unsupported, match="never closed"):
        list(statements(["SELECT 'a;\n", "SELECT 1;\n"], "postgres"))


def test_an_unknown_dialect_is_refused_before_anything_is_read() -> None:
    with pytest.raises(Misconfigured, match="no SQL dialect"):
        is_ended("", "klingon")


pieces = st.sampled_from(
    ["SELECT 1", "SELECT ';'", "SELECT 'a''b'", 'SELECT "x;y"', "SELECT /*;*/ 2"]
)


@given(st.lists(pieces, max_size=6), st.sampled_from([";", ";\n", " ;\n\n", "; -- a;b\n"]))
def test_joined_statements_come_back_as_they_were(given: list[str], separator: str) -> None:
    text = "".join(f"{each}{separator}" for each in given)
    assert list(statements(text.splitlines(keepends=True), "postgres")) == given
