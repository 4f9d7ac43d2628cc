"""Second tables: everybody who is not exposed has one, and each gives every published number."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from audit.small_tables import Row, Small, small

from casemate.audit import Audit, AuditOptions, exposure, witnesses
from casemate.audit.checks.ranges import WholeNumbers
from casemate.audit.region.bounds import Bounds
from casemate.audit.result import Audited, Verdict
from casemate.audit.witness.witness import SecondTables, as_csv, read_back
from casemate.errors import Misconfigured
from casemate.published import Knowledge
from casemate.table import Table

KINDS = ("sum", "sum", "count", "max", "min", "median")


def second(found: Audited) -> SecondTables:
    assert isinstance(found.witness, SecondTables)
    return found.witness


def as_rows(world: Small, table: dict[tuple[int, str], object]) -> list[Row]:
    """A second table as rows; what nothing was published about stays as it is."""
    return [
        (int(str(table.get((i, "pay"), number))), str(table.get((i, "ill"), ill)))
        for i, (number, ill) in enumerate(world.rows)
    ]


@pytest.mark.parametrize("case", range(40))
def test_everybody_asked_about_is_exposed_or_differs_in_a_possible_table(
    case: int, seed: int, tmp_path: Path
) -> None:
    """The tables in the file are judged by plain Python over the rows, not by the audit."""
    world = small(Random(f"{seed} {case}"), KINDS)
    with world.open(tmp_path) as table:
        found = Audit.of(world.log, table, options=AuditOptions(witness=True))
    path = tmp_path / "second.csv"
    path.write_text(as_csv(second(found)))
    kept = read_back(path, second(found))
    assert kept.check() and not kept.uncovered and kept.file == path
    tables = [as_rows(world, dict(each)) for each in kept.tables]
    possible = set(world.possible())
    assert all(tuple(rows) in possible for rows in tables)
    exposed = {(each.record, each.column) for each in found.exposed}
    for record, column in world.asked_about() - exposed:
        which = ("pay", "ill").index(column)
        true = world.rows[record - 1][which]
        assert any(rows[record - 1][which] != true for rows in tables)


def test_a_table_that_is_not_possible_is_noticed_in_the_file(tmp_path: Path) -> None:
    with Table.open("hospital") as table:
        found = second(
            Audit.of(
                ['SELECT SUM("Blood sugar") FROM t'], table, options=AuditOptions(witness=True)
            )
        )
    path = tmp_path / "second.csv"
    lines = as_csv(found).splitlines()
    for wrong in ("1,1,Blood sugar,9.99", "1,1,Blood sugar,-3", "1,1,Blood sugar,"):
        path.write_text("\n".join([lines[0], wrong, *lines[2:]]) + "\n")
        assert not read_back(path, found).check()
    path.write_text("\n".join(lines[:-1]) + "\n")
    assert not read_back(path, found).check()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "cannot be read"),
        ("record,value\n1,2\n", "must begin with table,record,column,value"),
        ("table,record,column,value\n1,1\n", "line 2 has 2 cells"),
        ("table,record,column,value\n1,77,Blood sugar,4\n", "not asked about"),
        ("table,record,column,value\n1,1,Blood sugar,high\n", "not a number"),
    ],
)
def test_a_file_that_is_no_second_table_is_refused_in_one_sentence(
    text: str, sentence: str, tmp_path: Path
) -> None:
    with Table.open("hospital") as table:
        found = second(
            Audit.of(
                ['SELECT SUM("Blood sugar") FROM t'], table, options=AuditOptions(witness=True)
            )
        )
    (tmp_path / "second.csv").write_text(text)
    with pytest.raises(Misconfigured, match=sentence):
        read_back(tmp_path / "second.csv", found)


def test_tables_differ_by_the_protection_width_where_that_is_possible() -> None:
    """Between 3 and 10 everybody can move by a tenth; 7.1 cannot move by nine tenths of itself."""
    found = witnesses(
        ["SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Male'"],
        "hospital",
        options=AuditOptions(protect=Fraction(1, 10)),
    )
    assert isinstance(found, SecondTables)
    assert found.covered == 3 and not found.narrow and found.check()
    far = witnesses(
        ["SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Male'"],
        "hospital",
        options=AuditOptions(protect=Fraction(9, 10)),
    )
    assert far.narrow == (5,) and not far.uncovered and far.check()


def test_numbers_without_bounds_have_second_tables_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,pay\n1,5\n2,7\n3,9\n4,2\n")
    log = ["SELECT SUM(pay) FROM t WHERE id < 4", "SELECT SUM(3 * pay) FROM t WHERE id > 1"]
    found = witnesses(log, str(tmp_path / "t.csv"), private="pay")
    assert found.covered == 4 and found.check()
    assert all(
        isinstance(value, Fraction) and value.denominator == 1
        for each in found.tables
        for value in each.values()
    )


def test_answers_that_are_not_the_tables_begin_with_a_table_that_gives_them(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('sql,answer\n"SELECT SUM(""Blood sugar"") FROM t",40\n')
    found = witnesses(tmp_path / "log.csv", "hospital")
    assert found.covered == 6 and len(found.tables) >= 2 and found.check()
    assert all(sum(map(Fraction, each.values())) == 40 for each in found.tables)  # type: ignore[arg-type]  # numbers


def test_what_the_tables_show_is_never_printed() -> None:
    found = witnesses(['SELECT SUM("Blood sugar") FROM t'], "hospital")
    assert repr(found) == "<SecondTables: 1 tables that cover 6 records>"


def test_coverage_that_is_overstated_is_noticed() -> None:
    found = witnesses(['SELECT SUM("Blood sugar") FROM t'], "hospital")
    assert isinstance(found, SecondTables)
    assert not replace(found, tables=()).check()


def test_whoever_a_second_table_covers_is_not_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time may run out before the search of whole numbers, and not before that of second tables."""
    (tmp_path / "t.csv").write_text("w,pay\n6,1\n10,1\n15,1\n")
    log, bounds = ["SELECT SUM(w * pay) FROM t"], Knowledge(Fraction(-9), Fraction(9))
    monkeypatch.setattr(
        exposure, "whole_numbers", lambda _, found, *__: WholeNumbers(found, every(found))
    )
    short = Audit.of(log, tmp_path / "t.csv", private="pay", knowledge=bounds)
    assert short.verdict is Verdict.INCOMPLETE and short.undecided == (1, 2, 3)
    options = AuditOptions(witness=True)
    shown = Audit.of(log, tmp_path / "t.csv", private="pay", knowledge=bounds, options=options)
    assert shown.verdict is Verdict.NONE_EXPOSED and not shown.undecided


def every(found: Bounds) -> frozenset[int]:
    return frozenset(range(len(found.low)))
