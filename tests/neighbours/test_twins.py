"""Each breach that was found once, put back, is noticed by the comparison of neighbours.

A twin is a session that is broken at a public seam: what it is opened with, or what leaves it. Each
world is one in which the session as it is passes.
"""

import csv as csv_module
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from neighbours.attack import Pair, session_statements
from neighbours.compare import Finding, Open
from neighbours.online import PEOPLE, conversation, exposed
from neighbours.statements import Statement, statements
from neighbours.tables import CATALOGUE, Column, Row, World, csv

from casemate import Misconfigured, OnlineAuditor, Refused, ScanFailed, Session

BY_NAME = {column.name: column for column in CATALOGUE}
STATEMENTS = 10
BY_SEX = Statement(
    "SELECT sex, COUNT(*) FROM t GROUP BY sex", frozenset(), frozenset({"sex"}), keys=1, counts=True
)
BY_GRADE = replace(BY_SEX, sql="SELECT grade, COUNT(*) FROM t GROUP BY grade")


def table_of(policy: Path) -> list[dict[str, str]]:
    with (policy.parent / "people.csv").open(encoding="utf-8", newline="") as file:
        return list(csv_module.DictReader(file))


# Broken sessions ------------------------------------------------------------------------------


@dataclass
class Twin:
    """A session through which everything passes; subclasses break one thing."""

    session: Session
    policy: Path

    def query(self, sql: str, **how: bool) -> Any:
        return self.session.query(sql, **how)

    def forecast(self, sql: str, *, measure: bool = False) -> Any:
        return self.session.forecast(sql, measure=measure)

    def standing(self) -> Any:
        return self.session.standing()

    def __enter__(self) -> "Twin":
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()


class LooksKeysUp(Twin):
    """A key that one evaluator computes is looked up among those of another, and not found."""

    def query(self, sql: str, **how: bool) -> Any:
        answer = super().query(sql, **how)
        if "GROUP BY" in sql and any(row["grade"] == "7" for row in table_of(self.policy)):
            raise ScanFailed
        return answer


class RefusesOnKeys(LooksKeysUp):
    """The same with another error."""

    def query(self, sql: str, **how: bool) -> Any:
        try:
            return super().query(sql, **how)
        except ScanFailed:
            raise Refused("this cannot be answered") from None


class ShowsGroupsThatAreThere(Twin):
    """Keys come from the data."""

    def query(self, sql: str, **how: bool) -> Any:
        answer = super().query(sql, **how)
        there = {row["grade"] for row in table_of(self.policy)}
        kept = [row for row in answer.rows if len(row) == 1 or _text(row[0]) in there]
        return replace(answer, rows=tuple(kept))


class CostsWhatOthersSpend(Twin):
    """The cost is read off what changed in the meantime."""

    def query(self, sql: str, **how: bool) -> Any:
        answer = super().query(sql, **how)
        more = Fraction(len(table_of(self.policy)), 10**6)
        return replace(answer, cost=replace(answer.cost, epsilon=answer.cost.epsilon + more))


class NotesWhatItSaw(Twin):
    """A note says what only the table can tell."""

    def query(self, sql: str, **how: bool) -> Any:
        answer = super().query(sql, **how)
        outside = sum(row["grade"] not in BY_NAME["grade"].cells for row in table_of(self.policy))
        return replace(answer, notes=(*answer.notes, f"{outside} values were clamped"))


def _text(key: object) -> str:
    return "" if key is None or hasattr(key, "lo") else str(key)


def wrapped(twin: type[Twin]) -> Open:
    def opened(policy: Path, seed: int) -> Session:
        return cast(Session, twin(Session.simulated(policy, seed), policy))

    return opened


def infers_types(policy: Path, seed: int) -> Session:
    """A column is whole where all its cells are."""
    whole = all(re.fullmatch(r"-?\d*", row["loose"]) for row in table_of(policy))
    section = '[columns."loose"]'
    guessed = f'{section}\ntype = "{"integer" if whole else "decimal"}"'
    path = policy.with_name("guessed.toml")
    path.write_text(policy.read_text().replace(section, guessed))
    return Session.simulated(path, seed)


def fails_on_misfits(policy: Path, seed: int) -> Session:
    """One cell that is no number makes the table unreadable."""
    for row in table_of(policy):
        with suppress(KeyError):
            try:
                Decimal(row["grade"] or "0")
            except InvalidOperation:
                raise Misconfigured("some cells of grade are something else") from None
    return Session.simulated(policy, seed)


def chooses_by_position(policy: Path, seed: int) -> Session:
    """Of each person the rows are kept that stand at lucky places of the file."""
    rows, kept = table_of(policy), defaultdict(list)
    for place, row in enumerate(rows):
        kept[row["who"]].append((Random(place).random(), place))
    chosen = {place for places in kept.values() for _, place in sorted(places)[:1]}
    cut: list[Row] = [tuple(row.values()) for i, row in enumerate(rows) if i in chosen]
    folder = policy.parent / "cut"
    folder.mkdir(exist_ok=True)
    csv(folder / "people.csv", tuple(rows[0]), cut)
    (folder / policy.name).write_text(policy.read_text())
    return Session.simulated(folder / policy.name, seed)


# Worlds ---------------------------------------------------------------------------------------


def world_of(
    names: Sequence[str], base: Sequence[str], ours: Sequence[str], **changes: Any
) -> World:
    """People who are all alike, and one more who is not."""
    columns: tuple[Column, ...] = tuple(BY_NAME[name] for name in names)
    usual: list[Row] = [tuple(base)] * 12
    world = World(columns, ((*usual, tuple(ours)), tuple(usual)), **changes)
    return replace(world, epsilon="1000", questions=1000)


GRADES = world_of(["grade", "sex"], ["3", "f"], ["7", "x"])
CLAMPED = world_of(["grade", "sex"], ["3", "f"], ["10", "x"])
LOOSE = world_of(["loose", "sex"], ["3", "f"], ["3.5", "m"])
MISFIT = world_of(["grade", "sex"], ["3", "f"], ["seven", "m"])


def people_with_many_rows(rng: Random) -> World:
    columns = (BY_NAME["grade"], BY_NAME["sex"])
    world = World(columns, ((), ()), person=1, epsilon="1000", questions=1000)
    cells = (("1", "f"), ("8", "m"), ("4", "f"))
    many: list[Row] = [(f"p{place}", *each) for place in range(40) for each in cells]
    rng.shuffle(many)
    return replace(world, tables=((("p-new", "9", "m"), *many), tuple(many)))


TWINS: dict[str, tuple[World, Open, str]] = {
    "keys are looked up": (GRADES, wrapped(LooksKeysUp), "unexpected"),
    "keys are refused": (GRADES, wrapped(RefusesOnKeys), "error"),
    "keys come from the data": (GRADES, wrapped(ShowsGroupsThatAreThere), "rows"),
    "cost of others": (GRADES, wrapped(CostsWhatOthersSpend), "cost"),
    "notes of the table": (CLAMPED, wrapped(NotesWhatItSaw), "notes"),
    "types are inferred": (LOOSE, infers_types, "error"),
    "misfits fail": (MISFIT, fails_on_misfits, "opening"),
    "rows by position": (people_with_many_rows(Random(1)), chooses_by_position, "sensitivity"),
}


def found_by(
    world: World, open_session: Open, folder: Path, seed: int, mode: str = "laplace"
) -> list[Finding]:
    rng = Random(f"twin {seed}")
    world = replace(world, strategy=mode)
    asked_for = [BY_SEX, *statements(rng, world.columns, STATEMENTS)]
    pair = Pair(world.written(folder), open_session, seed)
    return session_statements(mode, world, asked_for, pair).found


@pytest.mark.parametrize("name", TWINS)
def test_a_breach_that_is_put_back_is_noticed(name: str, seed: int, tmp_path: Path) -> None:
    world, broken, part = TWINS[name]
    found = {each.part for each in found_by(world, broken, tmp_path, seed)}
    assert part in found


@pytest.mark.parametrize("name", TWINS)
def test_without_the_breach_nothing_is_noticed(name: str, seed: int, tmp_path: Path) -> None:
    world, _, _ = TWINS[name]
    found = found_by(world, Session.simulated, tmp_path, seed)
    assert not found, str(found[0])


def test_a_difference_behind_the_gate_is_noticed_where_it_persists(
    seed: int, tmp_path: Path
) -> None:
    world = replace(GRADES, epsilon="1", surprises=25)
    world = replace(world, strategy="cold")
    for twin, part in ((RefusesOnKeys, "error"), (ShowsGroupsThatAreThere, "rows")):
        pair = Pair(world.written(tmp_path / twin.__name__), wrapped(twin), seed)
        found = session_statements("cold", world, [BY_SEX, BY_GRADE], pair).found
        assert part in {each.part for each in found}


class AnswersEverything(OnlineAuditor):
    """Whatever is asked, without a memory."""

    policy: Path

    def would_expose(self, query: str) -> Any:
        return replace(super().would_expose(query), allowed=True)

    def ask(self, query: str) -> Any:
        with OnlineAuditor(self.policy) as fresh:
            return fresh.ask(query)


class LooksAtTheAnswer(OnlineAuditor):
    """Refuses where the answer is one that somebody could draw conclusions from."""

    policy: Path

    def would_expose(self, query: str) -> Any:
        decision = super().would_expose(query)
        rich = '"5200"' in (self.policy.parent / "staff.csv").read_text()
        return replace(decision, allowed=decision.allowed and not rich)


@pytest.mark.parametrize("twin", [AnswersEverything, LooksAtTheAnswer])
def test_a_broken_online_auditor_is_noticed(twin: Any, seed: int, tmp_path: Path) -> None:
    def opened(policy: Path, scans_from: int) -> OnlineAuditor:
        auditor = twin(policy, scans_from=scans_from)
        auditor.policy = policy
        return cast(OnlineAuditor, auditor)

    def found(turn: int) -> set[str]:
        rng = Random(f"online {seed} {turn}")
        return {each.part for each in conversation(rng, 6, tmp_path / str(turn), False, opened)[3]}

    assert any(found(turn) & {"exposed", "not affine", "null", "decision"} for turn in range(4))


def test_a_sum_that_leaves_one_person_out_exposes_that_person() -> None:
    """The check of what an online auditor answers: rank, found by elimination."""
    everybody = [Fraction(1)] * len(PEOPLE)
    without = [Fraction(name != "dora") for name in PEOPLE]
    halves = [Fraction(place % 2) for place in range(len(PEOPLE))]
    assert exposed([everybody, halves]) is None
    assert exposed([everybody, without]) == PEOPLE.index("dora")
