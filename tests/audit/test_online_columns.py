"""What can be asked online at all: by the text of a question, and by the column's policy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from audit.staff import PRIVATE, of, written

from casemate.audit.online import OnlineAuditor
from casemate.errors import Misconfigured
from casemate.table import Column, ColumnType, Missing, PerPerson, Policy, Role, Table


@pytest.fixture
def auditor(tmp_path: Path) -> Iterator[OnlineAuditor]:
    with OnlineAuditor(written(tmp_path), private=PRIVATE) as made:
        yield made


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT MEDIAN(pay) FROM staff", "other than sums"),
        ("SELECT SUM(pay * pay) FROM staff", "other than sums"),
        ("SELECT SUM(pay + bonus) FROM staff", "other than sums"),
        ("SELECT SUM(CASE WHEN pay > 5 THEN 1 ELSE 0 END) FROM staff", "other than sums"),
        ("SELECT MAX(pay) - MIN(pay) FROM staff", "other than sums"),
        ("SELECT MAX(2 * pay) FROM staff", "plain minimum or maximum"),
        ("SELECT SUM(pay) / SUM(bonus) FROM staff", "divides by something private"),
        ("SELECT SQRT(SUM(pay)) FROM staff", "not a linear combination"),
        ("SELECT COUNT(*) FROM staff WHERE pay > 5", "chooses depends"),
        ("SELECT pay, COUNT(*) FROM staff GROUP BY pay", "chooses depends"),
        ("SELECT SUM(age) FILTER (WHERE pay > 5) FROM staff", "adds up depends"),
        ("SELECT team, COUNT(*) FROM staff GROUP BY team HAVING SUM(pay) > 9", "HAVING"),
        ("SELECT team, COUNT(*) FROM staff GROUP BY team ORDER BY SUM(pay)", "order of its rows"),
        ("SELECT team, SUM(pay) FROM staff GROUP BY team ORDER BY 2 LIMIT 1", "order of its rows"),
        ("SELECT STDDEV(pay) FROM staff", "only COUNT, SUM, AVG"),
        ("SELECT pay FROM staff", "single rows are not shown"),
        ("SELECT SUM(wage) FROM staff", "no column wage"),
    ],
)
def test_anything_else_is_refused_with_a_reason(
    sql: str, reason: str, auditor: OnlineAuditor
) -> None:
    decision = auditor.would_expose(sql)
    assert not decision.allowed
    assert reason in decision.reason


def test_order_that_shows_nothing_new_is_allowed(auditor: OnlineAuditor) -> None:
    cells = "SELECT team, SUM(pay) FROM staff GROUP BY team HAVING COUNT(*) > 1"
    assert auditor.would_expose(f"{cells} ORDER BY 2 DESC").allowed
    assert auditor.would_expose(f"{cells} ORDER BY team LIMIT 1").allowed


def described(folder: Path, person: str | None = None, **pay: Any) -> Policy:
    """The file with a policy, in which a column of private numbers need not have bounds."""
    columns = (
        *(Column(name, type=ColumnType.INTEGER) for name in ("n", "age")),
        Column("team", type=ColumnType.TEXT),
        Column("pay", Role.PRIVATE, ColumnType.INTEGER, **pay),
        Column("bonus", Role.PRIVATE, ColumnType.INTEGER, values=(0, 1)),
    )
    return Policy(str(written(folder)), columns, person=person, rows_per_person=4)


@pytest.mark.parametrize(
    "pay", [{"low": 0}, {"high": 100}, {"low": 0, "high": 100}, {"values": (3, 4, 5)}]
)
def test_a_column_with_bounds_or_values_is_not_taken(pay: dict[str, Any], tmp_path: Path) -> None:
    with (
        Table.open(described(tmp_path, **pay)) as table,
        pytest.raises(Misconfigured, match="pay has declared bounds or values"),
    ):
        OnlineAuditor(table, private="pay")


def test_a_column_that_is_no_number_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="'team' is to be read as decimal"):
        OnlineAuditor(written(tmp_path), private=["team"])


def test_the_columns_to_protect_must_be_private(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="no column is private; name one"):
        OnlineAuditor(written(tmp_path))
    with (
        Table.open(written(tmp_path), private=["pay"]) as table,
        pytest.raises(Misconfigured, match="age is not private"),
    ):
        OnlineAuditor(table, private="age")


def test_private_columns_that_are_not_audited_cannot_be_asked_about(tmp_path: Path) -> None:
    with Table.open(described(tmp_path)) as table:
        auditor = OnlineAuditor(table, private="pay")
        assert "value of pay," in auditor.assumption
        assert "bonus, which is not audited" in auditor.would_expose(of("SUM(bonus)", 1, 2)).reason
        assert auditor.would_expose(of("SUM(pay)", 1, 2)).allowed


def test_values_that_may_be_missing_are_added_up_and_never_counted(tmp_path: Path) -> None:
    with Table.open(described(tmp_path, missing=Missing.SECRET)) as table:
        auditor = OnlineAuditor(table, private="pay")
        assert "how many there are" in auditor.would_expose(of("AVG(pay)", 1, 2)).reason
        assert not auditor.would_expose(of("COUNT(pay)", 1, 2)).allowed
        assert not auditor.would_expose(of("MAX(pay)", 1, 2)).allowed
        assert "COALESCE" in auditor.would_expose(of("SUM(pay)", 1, 2)).reason
        assert "COALESCE" in auditor.would_expose(of("COALESCE(SUM(pay), 1)", 1, 2)).reason
        assert auditor.would_expose(of("COALESCE(SUM(pay), 0)", 1, 2)).allowed


def test_a_value_that_is_the_same_in_all_rows_of_a_person_is_one_unknown(tmp_path: Path) -> None:
    """Persons are teams here, of four, three and one rows."""
    policy = described(tmp_path, "team", per_person=PerPerson.CONSTANT)
    written(tmp_path, [5, 5, 5, 5, 2, 2, 2, 8])
    with Table.open(policy) as table:
        auditor = OnlineAuditor(table, private="pay")
        assert not auditor.would_expose(of("SUM(pay)", 1, 2)).allowed
        assert not auditor.would_expose(of("MAX(pay)", 1, 2)).allowed
        assert auditor.would_expose(of("MAX(pay)", 1, 5)).allowed
        auditor.record(of("SUM(pay)", 1, 2, 5))
        assert not auditor.would_expose(of("SUM(pay)", 3, 5)).allowed
        assert auditor.would_expose(of("SUM(pay)", 3, 4, 6)).allowed


def test_what_the_rows_of_a_person_add_up_to_is_protected_too(tmp_path: Path) -> None:
    with Table.open(described(tmp_path, "team")) as table:
        auditor = OnlineAuditor(table, private="pay")
        assert not auditor.would_expose("SELECT SUM(pay) FROM staff WHERE team = 'a'").allowed
        assert auditor.would_expose(of("SUM(pay)", 1, 2, 3)).allowed
        auditor.record(of("SUM(pay)", 1, 2, 5, 6))
        auditor.record(of("SUM(pay)", 3, 4, 7))
        assert not auditor.would_expose(of("SUM(pay)", 5, 6, 7)).allowed
        assert auditor.would_expose(of("SUM(pay)", 1, 4, 5)).allowed
    with OnlineAuditor(written(tmp_path), private=PRIVATE) as rows:
        assert rows.would_expose("SELECT SUM(pay) FROM staff WHERE team = 'a'").allowed
