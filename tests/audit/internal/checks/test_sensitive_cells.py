"""The p % rule and dominance, against a computation cell by cell."""

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.audit import Audit, AuditOptions
from casemate.audit.checks.sensitive_cells import Dominance, read_dominance
from casemate.errors import Misconfigured
from casemate.table import Table

Cell = tuple[int, tuple[tuple[str, object], ...] | None]


def slow_rules(amounts: list[Fraction], protect: Fraction, dominance: Dominance) -> list[str]:
    """The two definitions, word for word."""
    ordered = sorted(amounts, reverse=True)
    total, first, second = sum(ordered), ordered[0], sum(ordered[1:2])
    rules = ["p-percent"] if total - first - second < protect * first else []
    if sum(ordered[: dominance.largest]) > dominance.share * total:
        rules.append("dominance")
    return rules


def table_of(rows: list[tuple[int, int, Fraction]], folder: Path) -> Path:
    path = folder / "pay.csv"
    lines = [f"{area},{weight},{float(pay)}" for area, weight, pay in rows]
    path.write_text("\n".join(["area,weight,pay", *lines]) + "\n")
    return path


@given(st.integers(0, 2**32).map(Random))
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cells_are_sensitive_by_their_definitions(tmp_path: Path, rng: Random) -> None:
    rows = [
        (rng.randint(1, 3), rng.randint(0, 2), Fraction(rng.choice([0, 1, 2, 40, 400]), 4))
        for _ in range(rng.randint(1, 9))
    ]
    protect = Fraction(rng.choice([0, 5, 10, 200]), 100)
    dominance = Dominance(rng.randint(1, 4), Fraction(rng.choice([50, 90, 100]), 100))
    log = [
        "SELECT area, SUM(pay), AVG(pay) FROM t GROUP BY area",
        "SELECT SUM(weight * pay) FROM t",
    ]
    with Table.open(table_of(rows, tmp_path), private=["pay"]) as table:
        found = Audit.of(log, table, options=AuditOptions(protect=protect, dominance=dominance))
    cells: dict[Cell, list[Fraction]] = {
        (1, (("area", area),)): [pay for here, _, pay in rows if here == area]
        for area in {area for area, _, _ in rows}
    }
    weighted = [weight * pay for _, weight, pay in rows if weight]
    cells |= {(2, None): weighted} if weighted else {}
    expected = {cell: slow_rules(amounts, protect, dominance) for cell, amounts in cells.items()}
    shown = {(each.query, each.key): list(each.rules) for each in found.sensitive_cells}
    assert shown == {cell: rules for cell, rules in expected.items() if rules}
    assert {each.column for each in found.sensitive_cells} <= {"pay"}


def test_what_has_no_contributions_to_compare_is_left_out(tmp_path: Path) -> None:
    """A negative value, a difference of sums, and a count."""
    rows = [(1, 1, Fraction(-5)), (1, 1, Fraction(100)), (2, 1, Fraction(100))]
    log = [
        "SELECT SUM(pay) FROM t WHERE area = 1",
        "SELECT SUM(pay) - 2 * SUM(weight * pay) FROM t WHERE area = 2",
        "SELECT COUNT(*) FROM t WHERE pay > 3",
    ]
    with Table.open(table_of(rows, tmp_path), private=["pay"]) as table:
        found = Audit.of(log, table)
    assert found.sensitive_cells == ()
    (note,) = (each for each in found.assumptions if "do not apply" in each)
    assert note.endswith("negative values are among them: 1")


def test_the_rows_of_one_person_are_one_contribution(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("who,x\na,50\na,45\nb,3\nc,2\n")
    (tmp_path / "visits.toml").write_text(
        '[table]\nsource = "visits.csv"\nperson = "who"\nrows_per_person = 2\n'
        '[columns.who]\nrole = "identifier"\n'
        '[columns.x]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 100\n'
    )
    with Table.open(tmp_path / "visits.toml") as table:
        (cell,) = Audit.of(["SELECT SUM(x) FROM t"], table).sensitive_cells
    assert cell.rules == ("p-percent", "dominance")


def test_numbers_past_64_bits_are_compared_exactly(tmp_path: Path) -> None:
    """One part in 10^18 decides; a double would not see it."""
    amounts = [9 * 10**18, 10**18, 1]
    lines = "\n".join(["pay", *map(str, amounts)])
    (tmp_path / "big.csv").write_text(lines + "\n")
    for share, rules in (
        (Fraction(9, 10), ()),
        (Fraction(9, 10) - Fraction(1, 10**17), ("dominance",)),
    ):
        options = AuditOptions(protect=Fraction(0), dominance=Dominance(1, share))
        with Table.open(tmp_path / "big.csv", private=["pay"]) as table:
            found = Audit.of(["SELECT SUM(pay) FROM t"], table, options=options)
        assert tuple(rule for cell in found.sensitive_cells for rule in cell.rules) == rules


@pytest.mark.parametrize("text", ["2", "0,90%", "2,190%", "x,90%", "2,much", "2,-1", "2,1/0"])
def test_dominance_that_is_none_is_one_sentence(text: str) -> None:
    with pytest.raises(Misconfigured, match="is not N,K%; write for example --dominance 2,90%"):
        read_dominance(text)
