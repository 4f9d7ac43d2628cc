"""Values that are missing although nothing says that they may be."""

from pathlib import Path

import pytest

from casemate import Audit

ROWS = "name,area,pay\nana,1,50\nben,1,\ncem,2,44\ndora,2,71\n"
BY_AREA = ["SELECT area, AVG(pay) FROM staff WHERE area = 1 GROUP BY area"]


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "staff.csv"
    path.write_text(ROWS)
    return path


def test_nobody_is_called_safe_where_values_are_missing_undeclared(staff: Path) -> None:
    found = Audit.of(BY_AREA, staff, private="pay")  # it shows what ana earns, if ben earns nothing
    assert found.verdict == "incomplete"
    assert any("pay is missing in some records" in each for each in found.assumptions)


def test_where_nothing_is_missing_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "staff.csv"
    path.write_text(ROWS.replace("ben,1,", "ben,1,60"))
    found = Audit.of(BY_AREA, path, private="pay")
    assert found.verdict == "none-exposed"
    assert not any("missing" in each for each in found.assumptions)


@pytest.mark.parametrize("missing", ["secret", "public"])
def test_what_is_said_of_declared_missing_values_does_not_tell_whether_there_are_any(
    missing: str, staff: Path
) -> None:
    policy = staff.with_suffix(".toml")
    policy.write_text(
        '[table]\nsource = "staff.csv"\n[columns.area]\n[columns.pay]\nrole = "private"\n'
        f'type = "decimal"\nmin = 0\nmax = 99\nmissing = "{missing}"\n'
    )
    with_gaps = Audit.of(["SELECT SUM(pay) FROM staff"], policy).assumptions
    staff.write_text(ROWS.replace("ben,1,", "ben,1,60"))
    assert Audit.of(["SELECT SUM(pay) FROM staff"], policy).assumptions == with_gaps
    assert any("was taken to be" in each for each in with_gaps)
