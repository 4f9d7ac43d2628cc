"""Second tables: everybody who is not exposed has one, and each gives every published number."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from audit.every_world import consistent, true_table
from audit.small_world import opened, random_world, readable_log

from casemate.audit import Audit, AuditOptions, decide_exposure, witnesses
from casemate.audit.checks.ranges import WholeNumbers
from casemate.audit.region.bounds import Bounds
from casemate.audit.result import Audited, Verdict
from casemate.audit.second_tables import SecondTables
from casemate.audit.second_tables_file import as_csv, read_back
from casemate.errors import Misconfigured
from casemate.published import Knowledge
from casemate.query.parse import parse_statement
from casemate.table import Table


def second(found: Audited) -> SecondTables:
    assert isinstance(found.witness, SecondTables)
    return found.witness


def test_everybody_asked_about_is_exposed_or_differs_in_a_possible_table(
    seed: int, tmp_path: Path
) -> None:
    """The tables in the file are judged by an evaluator that shares nothing with the audit."""
    rng, path = Random(f"second {seed}"), tmp_path / "second.csv"
    for _ in range(8):
        world = random_world(rng, nullable=False)
        with opened(world, tmp_path) as table:
            log = readable_log(rng, world, table)
            found = second(Audit.of(log, table, options=AuditOptions(witness=True)))
            statements = [parse_statement(sql, table.policy) for sql in log]
        path.write_text(as_csv(found))
        kept = read_back(path, found)
        assert kept.check() and not kept.uncovered and kept.file == path
        possible, truth = set(consistent(world, statements)), true_table(world)
        names = [secret.name for secret in world.secrets]
        tables = [
            tuple(
                tuple(each.get((place, name), row[name]) for name in names)
                for place, row in enumerate(world.rows)
            )
            for each in kept.tables
        ]
        assert possible.issuperset(tables)
        for place, name in kept.wanted:
            which = names.index(name)
            assert any(each[place][which] != truth[place][which] for each in tables)


def test_a_table_that_is_not_possible_is_noticed_in_the_file(tmp_path: Path) -> None:
    with Table.open("hospital") as table:
        found = second(
            Audit.of(
                ['SELECT SUM("Blood sugar") FROM t'], table, options=AuditOptions(witness=True)
            )
        )
    path = tmp_path / "second.csv"
    lines = as_csv(found).splitlines()
    for wrong in ("9.99,", "-3,", ",", "4.3,1/3"):
        path.write_text("\n".join([lines[0], f"1,1,Blood sugar,{wrong}", *lines[2:]]) + "\n")
        assert not read_back(path, found).check()
    path.write_text("\n".join(lines[:-1]) + "\n")
    assert not read_back(path, found).check()
    start, _, right = lines[1].removesuffix(",").rpartition(",")
    path.write_text("\n".join([lines[0], f"{start},0,{right}", *lines[2:]]) + "\n")
    assert read_back(path, found).check()  # what is exact counts


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "cannot be read"),
        ("record,value\n1,2\n", "must begin with table,record,column,value,exact"),
        ("table,record,column,value,exact\n1,1\n", "line 2 has 2 cells"),
        ("table,record,column,value,exact\n1,77,Blood sugar,4,\n", "not asked about"),
        ("table,record,column,value,exact\n1,1,Blood sugar,high,\n", "not a number"),
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
    assert found.covered == 3 and not found.narrow and found.check()
    far = witnesses(
        ["SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Male'"],
        "hospital",
        options=AuditOptions(protect=Fraction(9, 10)),
    )
    assert far.narrow == (5,) and not far.uncovered and far.check()


def test_answers_that_are_not_the_tables_begin_with_a_table_that_gives_them(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text('sql,answer\n"SELECT SUM(""Blood sugar"") FROM t",40\n')
    found = witnesses(tmp_path / "log.csv", "hospital")
    assert found.covered == 6 and len(found.tables) >= 2 and found.check()
    assert all(sum(map(Fraction, each.values())) == 40 for each in found.tables)  # type: ignore[arg-type]  # numbers


def test_coverage_that_is_overstated_is_noticed() -> None:
    found = witnesses(['SELECT SUM("Blood sugar") FROM t'], "hospital")
    assert not replace(found, tables=()).check()


def test_whoever_a_second_table_covers_is_not_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time may run out before the search of whole numbers, and not before that of second tables."""
    (tmp_path / "t.csv").write_text("w,pay\n6,1\n10,1\n15,1\n")
    log, bounds = ["SELECT SUM(w * pay) FROM t"], Knowledge(Fraction(-9), Fraction(9))
    monkeypatch.setattr(
        decide_exposure, "whole_numbers", lambda _, found, *__: WholeNumbers(found, every(found))
    )
    short = Audit.of(log, tmp_path / "t.csv", private="pay", knowledge=bounds)
    assert short.verdict is Verdict.INCOMPLETE and short.undecided == (1, 2, 3)
    options = AuditOptions(witness=True)
    shown = Audit.of(log, tmp_path / "t.csv", private="pay", knowledge=bounds, options=options)
    assert shown.verdict is Verdict.NONE_EXPOSED and not shown.undecided


def every(found: Bounds) -> frozenset[int]:
    return frozenset(range(len(found.low)))
