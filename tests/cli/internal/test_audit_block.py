"""The command `casemate audit block`: solutions, limits, and bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
from census_block import COMMON, SECOND, TRUTH, people, seven

from casemate.audit.block.model import Person
from casemate.cli.main import ended

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "block.csv"
    path.write_text(seven())
    return path


def solved(file: Path, capsys: Captured, *options: str) -> dict[str, Any]:
    assert ended(["audit", "block", str(file), "--format", "json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def persons(objects: list[dict[str, int | str]]) -> tuple[Person, ...]:
    return tuple(tuple(each.values()) for each in objects)


@pytest.mark.parametrize(
    ("suppressed", "solutions", "certain"),
    [((), 1, TRUTH), (("2A", "2B"), 8, COMMON), (("4A",), 2, ()), (("3B",), 64, people("8FBS"))],
)
def test_the_block_of_the_literature(
    suppressed: tuple[str, ...],
    solutions: int,
    certain: tuple[Person, ...],
    file: Path,
    capsys: Captured,
) -> None:
    file.write_text(seven(*suppressed))
    found = solved(file, capsys)
    tables = {persons(table) for table in found["tables"]}
    assert (found["solutions"], found["complete"], found["people"]) == (solutions, True, 7)
    assert persons(found["certain"]) == certain
    assert len(tables) == solutions and TRUTH in tables
    assert suppressed != ("4A",) or SECOND in tables


def test_the_text_names_everybody(file: Path, capsys: Captured) -> None:
    assert ended(["audit", "block", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("7 people, 1 solution\nthe statistics give away everybody\n")
    assert "  age 8, sex F, race B, married S\n" in printed


def test_fewer_solutions_can_be_asked_for(file: Path, capsys: Captured) -> None:
    file.write_text(seven("3B"))
    found = solved(file, capsys, "--limit", "3")
    assert (found["solutions"], found["complete"]) == (3, False)
    assert persons(found["certain"]) == people("8FBS")


def test_the_search_may_go_on_for_ever(file: Path, capsys: Captured) -> None:
    assert solved(file, capsys, "--seconds", "0")["complete"] is True


def test_other_ages_can_be_possible(file: Path, capsys: Captured) -> None:
    assert solved(file, capsys, "--ages", "0:83")["solutions"] == 0


def test_a_contradiction_is_said_plainly(file: Path, capsys: Captured) -> None:
    file.write_text(seven(more="5A,F,,,,6,,"))
    assert ended(["audit", "block", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "0 solutions" in printed and "contradict each other" in printed


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("sex,count,meen\n,7,3\n", (), "unknown column meen"),
        ("count,mean\n7,many\n", (), "line 2: the mean is not a number"),
        (seven(), ("--limit", "0"), "--limit 0 is too small"),
        (seven(), ("--seconds", "-1"), "--seconds -1.0 is not a time"),
        (seven(), ("--seconds", "nan"), "--seconds nan is not a time"),
        (seven(), ("--ages", "old"), "--ages old is not LO:HI"),
    ],
)
def test_bad_input_is_one_sentence(
    text: str, options: tuple[str, ...], sentence: str, file: Path, capsys: Captured
) -> None:
    file.write_text(text)
    assert ended(["audit", "block", str(file), *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


def test_the_audit_of_queries_stands_beside_it(file: Path, capsys: Captured) -> None:
    queries = file.with_name("q.sql")
    queries.write_text('SELECT SUM("Blood sugar") FROM hospital')
    assert ended(["audit", str(queries), "--table", "hospital"]) == 0
    assert "none-exposed" in capsys.readouterr().out
    assert ended(["audit", "--help"]) == 0
    assert "block" in capsys.readouterr().out
