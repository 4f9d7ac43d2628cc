"""Which columns a statement compares with text, read off its tokens alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.query.parse import compared_with_text


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
