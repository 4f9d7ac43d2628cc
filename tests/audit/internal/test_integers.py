"""Whole numbers and categories: exactly those are exposed who have one value in every table."""

from fractions import Fraction
from pathlib import Path

import pytest

from casemate.audit import Audit, AuditOptions
from casemate.audit.result import Proof, Verdict
from casemate.published import Knowledge
from casemate.table import Table


@pytest.fixture
def weighted(tmp_path: Path) -> Path:
    """6 x + 10 y + 15 z = 31 has one solution in whole numbers from 0 to 3, and many others."""
    (tmp_path / "t.csv").write_text("w,pay\n6,1\n10,1\n15,1\n")
    return tmp_path / "t.csv"


LOG = ["SELECT SUM(w * pay) FROM t"]
UP_TO_THREE = Knowledge(Fraction(0), Fraction(3))


def test_what_only_whole_numbers_fix_is_exposed_with_that_proof(weighted: Path) -> None:
    found = Audit.of(LOG, weighted, private="pay", knowledge=UP_TO_THREE)
    assert [(each.record, each.value, each.proof) for each in found.exposed] == [
        (record, 1, Proof.INTEGER) for record in (1, 2, 3)
    ]
    assert {(each.low, each.high) for each in found.bounds} == {(Fraction(1), Fraction(1))}


def test_what_is_not_reached_in_time_is_undecided_or_unchecked(weighted: Path) -> None:
    short = AuditOptions(seconds=1e-9)
    found = Audit.of(LOG, weighted, private="pay", knowledge=UP_TO_THREE, options=short)
    assert found.verdict is Verdict.INCOMPLETE
    assert {*found.undecided, *found.unchecked} == {1, 2, 3}


def test_given_answers_that_are_not_the_tables_are_searched_from_elsewhere(tmp_path: Path) -> None:
    """The table has 1, 0 where the log says that the two add up to 2."""
    (tmp_path / "t.csv").write_text("id,pay\n1,1\n2,0\n")
    (tmp_path / "log.csv").write_text("sql,answer\nSELECT SUM(pay) FROM t,2\n")
    with Table.open(str(tmp_path / "t.csv"), private=["pay"]) as table:
        wide = Audit.of(tmp_path / "log.csv", table, knowledge=Knowledge(Fraction(0), Fraction(2)))
        narrow = Audit.of(
            tmp_path / "log.csv", table, knowledge=Knowledge(Fraction(0), Fraction(1))
        )
    assert (wide.verdict, wide.consistent) == (Verdict.NONE_EXPOSED, True)
    assert [(each.record, each.value) for each in narrow.exposed] == [(1, 1), (2, 1)]
