"""Refusals are silent about the data: what decides them, and what an asker learns from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from audit.staff import EVERYTHING, PAY, PRIVATE, of, written
from chance import assert_rate_at_most

from casemate.audit import Audit
from casemate.audit.online import OnlineAuditor
from casemate.table import ColumnType, Table
from casemate.table.sources import Frame, Source


class Watched:
    """A source that takes note of every statement sent to it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.sent: list[str] = []

    @property
    def dialect(self) -> str:
        return self._source.dialect

    def relation(self, public: str | None = None) -> str:
        return self._source.relation(public)

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        return self._source.fields(public)

    def read(self, sql: str) -> Frame:
        self.sent.append(sql)
        return self._source.read(sql)

    def close(self) -> None:
        self._source.close()


def test_nothing_private_is_read_to_decide(tmp_path: Path) -> None:
    with Table.open(written(tmp_path), private=PRIVATE) as table:
        watched = Watched(table.source)
        auditor = OnlineAuditor(Table(table.policy, watched))
        for sql in EVERYTHING:
            watched.sent.clear()
            decision = auditor.would_expose(sql)
            assert not any(name in sent for sent in watched.sent for name in ("pay", "bonus"))
            if decision.allowed:
                auditor.record(sql)
        assert len(auditor.history) >= 4


def test_the_watch_above_would_notice_an_auditor_that_looks(tmp_path: Path) -> None:
    with Table.open(written(tmp_path), private=PRIVATE) as table:
        watched = Watched(table.source)
        Audit.of(EVERYTHING[:2], Table(table.policy, watched))
        assert any("pay" in sent for sent in watched.sent)


def test_decisions_are_the_same_on_any_table_that_gives_the_same_answers(tmp_path: Path) -> None:
    """Other private values, and the same extremes told to both: nobody can tell them apart."""
    rng = Random(3)
    (tmp_path / "other").mkdir()
    paths = written(tmp_path), written(tmp_path / "other", [rng.randint(0, 99) for _ in PAY])
    with (
        OnlineAuditor(paths[0], private=PRIVATE) as one,
        OnlineAuditor(paths[1], private=PRIVATE) as other,
    ):
        for _ in range(30):
            who = rng.sample(range(1, 9), rng.randint(1, 8))
            sql = of(rng.choice(["SUM(pay)", "AVG(pay)", "MIN(bonus)", "MAX(bonus)"]), *who)
            decision = one.would_expose(sql)
            assert other.would_expose(sql) == decision
            if decision.allowed:
                one.record(sql)
                other.record(sql, one.history[-1].answers)
        assert len(one.history) > 5


# Refusals, as the asker sees them -----------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """Four people, one of whom is left out of the second question."""

    number: int
    left_out: int
    pay: list[int]

    @property
    def four(self) -> str:
        return f"SELECT MAX(pay) FROM staff WHERE team = {self.number}"

    @property
    def three(self) -> str:
        return f"{self.four} AND n <> {self.left_out + 1}"

    @property
    def has_the_most(self) -> bool:
        """What the asker guesses from a refusal: the maximum is that of the one left out."""
        return self.pay[self.left_out] == max(self.pay[4 * self.number : 4 * self.number + 4])


def refusals(
    folder: Path, rng: Random, blocks: int, refuses: Callable[[Block, OnlineAuditor, Table], bool]
) -> tuple[int, int]:
    """Ask for the maximum of four, then of three of them; guess from a refusal, and count."""
    pay = rng.sample(range(10**6), 4 * blocks)
    path = written(folder, pay, [str(n // 4) for n in range(4 * blocks)])
    asked = [Block(number, 4 * number + rng.randrange(4), pay) for number in range(blocks)]
    with Table.open(path, private=PRIVATE) as table:
        auditor = OnlineAuditor(table)
        refused = [block for block in asked if refuses(block, auditor, table)]
    return len(refused), sum(block.has_the_most for block in refused)


def by_simulation(block: Block, auditor: OnlineAuditor, _: Table) -> bool:
    auditor.record(block.four)
    return not auditor.would_expose(block.three).allowed


def by_looking(block: Block, _: OnlineAuditor, table: Table) -> bool:
    """The audit of a log, of the questions before they are answered."""
    return bool(Audit.of([block.four, block.three], table).exposed)


def by_value(block: Block, _: OnlineAuditor, __: Table) -> bool:
    """What the audit comes to here, without the audit."""
    return block.has_the_most


@pytest.mark.theorem("002: Beyond linear queries (refusals that look leak)")
def test_every_refusal_of_an_audit_that_looks_first_gives_a_value_away(
    rng: Random, tmp_path: Path
) -> None:
    refused, right = refusals(tmp_path, rng, 30, by_looking)
    assert refused == right > 0


@pytest.mark.theorem("002: Beyond linear queries (simulatable refusals do not)")
def test_refusals_of_the_online_auditor_leave_the_asker_guessing(
    rng: Random, tmp_path: Path
) -> None:
    refused, right = refusals(tmp_path, rng, 120, by_simulation)
    assert refused == 120
    assert_rate_at_most(right, refused, rate=1 / 4)
    assert_rate_at_most(refused - right, refused, rate=3 / 4)


def test_the_test_above_would_notice_refusals_that_depend_on_the_data(
    rng: Random, tmp_path: Path
) -> None:
    refused, right = refusals(tmp_path, rng, 400, by_value)
    with pytest.raises(AssertionError):
        assert_rate_at_most(right, refused, rate=1 / 4)
