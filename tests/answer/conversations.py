"""Thousands of cheap simulated conversations, and how far into its bounds each truth lies.

A conversation is a seeded session over a small table that is read once: every further one finds
what the engine said in memory, so that it takes milliseconds. Of a shown cell the `reach` is what
matters: how much of the way from the answered value to its bound the truth is. Beyond 1 the bound
fails; beyond 1/1.3 a bound 1.3 times as narrow would. So one run serves a test and all its twins.

What may be counted so that exact binomial tails hold: of answers with fresh noise every one, a cell
of each, because given all that came before it may fail with 5 %; of the others only the last of a
conversation, and conversations are independent; of the bounds for a session whether any failed.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
from answer.session_world import csv, policy
from chance import assert_rate_at_most

from casemate import Session
from casemate.answer import Answer
from casemate.errors import Refused
from casemate.grid import Noised, Origin
from casemate.table import Table
from casemate.table.sources.source import Frame, SourceView

MISSES = 0.05  # what the default confidence allows
FRESH = "noise"  # where it is paid for, noise that was drawn after all that came before

# Tables -----------------------------------------------------------------------------------------


class Remembered(SourceView):
    """A source that stays open and runs every statement once."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.source)
        self._frames: dict[str, Frame] = {}

    def relation(self, public: str | None = None) -> str:
        return self._source.relation(public)

    def read(self, sql: str) -> Frame:
        if sql not in self._frames:
            self._frames[sql] = self._source.read(sql)
            for series in self._frames[sql].values():
                series.values.flags.writeable = series.missing.flags.writeable = False
        return self._frames[sql]

    def close(self) -> None:
        """Stay open: another conversation follows."""


@dataclass(frozen=True)
class Protected:
    """A table that conversations are about, and the truth about it."""

    name: str
    table: Table
    facts: duckdb.DuckDBPyConnection
    known: dict[str, Mapping[tuple[Any, ...], Any]] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def of(
        cls,
        folder: Path,
        name: str,
        head: Sequence[str],
        rows: Sequence[Sequence[Any]],
        **changes: Any,
    ) -> Iterator["Protected"]:
        """A table of these rows under a policy of `session_world`."""
        path = csv(folder / f"{name}.csv", head, rows)
        declared = policy(folder, table=f'source = "{path}"', name=f"{name}.toml", **changes)
        with Table.open(declared, by_policy=True) as table, duckdb.connect() as facts:
            facts.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{path}')")
            yield cls(name, Table(table.policy, Remembered(table)), facts)

    def truth(self, sql: str) -> Mapping[tuple[Any, ...], Any]:
        """The true number of each group that somebody is in; the last column is the number."""
        if sql not in self.known:
            rows = self.facts.execute(sql).fetchall()
            self.known[sql] = {tuple(row[:-1]): row[-1] for row in rows}
        return self.known[sql]

    def session(self, seed: int) -> Session:
        with mock.patch.object(Table, "open", return_value=self.table):
            return Session.simulated(self.table.policy, seed)


# Conversations ----------------------------------------------------------------------------------


def reach(cell: Noised, truth: Any, session: bool) -> float | None:
    """How far into its bounds the truth is; None where nothing is proven, or nobody is there.

    Narrower bounds have the same middle. Those that end at nothing may be cut there, as everybody
    knows that counts do: they are narrowed around the value, both ways as wide as the longer side.
    """
    band = cell.band(session)
    if band is None or truth is None:
        return None
    (low, high), exact = band, float(truth)
    room = 1e-9 * max(1.0, abs(exact))
    if not low - room <= exact <= high + room:
        return math.inf
    is_cut = low == 0 and cell.value is not None
    value = float(cell.value) if is_cut else (low + high) / 2  # type: ignore[arg-type]  # a number
    off, side = abs(exact - value), max(value - low, high - value)
    return 0.0 if off <= room else min(1.0, off / side)


@dataclass
class Talk:
    """One conversation: what was asked, and how far into their bounds all truths were."""

    about: Protected
    session: Session
    random: Random
    fresh: list[float] = field(default_factory=list)
    last: tuple[str, float] | None = None  # of the last answer, where its noise is not fresh
    together: float = 0.0

    def ask(self, sql: str, *, measure: bool = False) -> Answer | None:
        """Put one question; None where it is refused."""
        self.last = None
        try:
            answer = self.session.query(sql, measure=measure)
        except Refused:
            return None
        truth = self.about.truth(sql)
        nobody = 0 if "COUNT(" in sql else None
        cells = [
            (cell, truth.get(tuple(row[:-1]), nobody))
            for row in answer.rows
            if isinstance(cell := row[-1], Noised)
        ]
        every = [reach(cell, exact, True) for cell, exact in cells]
        self.together = max([self.together, *(each for each in every if each is not None)])
        cell, exact = self.random.choice(cells)
        self._count(
            str(getattr(cell, "proof", None) or answer.origin), answer, reach(cell, exact, False)
        )
        return answer

    def _count(self, label: str, answer: Answer, found: float | None) -> None:
        if found is None or answer.origin is Origin.CACHED:
            return
        if label == FRESH and answer.cost.epsilon > 0:  # all new noise is paid for
            self.fresh.append(found)
        else:
            self.last = label, found


Scenario = Callable[[Talk], None]


@dataclass
class Reaches:
    """What many conversations showed."""

    conversations: int = 0
    fresh: list[float] = field(default_factory=list)
    last: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    together: list[float] = field(default_factory=list)

    def add(self, talk: Talk) -> None:
        """Count one more conversation."""
        self.conversations += 1
        self.fresh += talk.fresh
        self.together.append(talk.together)
        if talk.last is not None:
            label, found = talk.last
            self.last[label].append(found)

    def misses(self, shrunk: float = 1.0) -> dict[str, tuple[int, int]]:
        """For each kind of bounds how many of how many fail if they are so much narrower."""
        found = {label: (each, self.conversations) for label, each in self.last.items()}
        found["together"] = (self.together, self.conversations)
        if self.fresh:
            found["fresh"] = (self.fresh, len(self.fresh))
        return {
            label: (sum(each * shrunk > 1 + 1e-9 for each in reaches), trials)
            for label, (reaches, trials) in found.items()
        }

    def require(self, label: str, shrunk: float = 1.0) -> None:
        """One kind of bounds, so much narrower, fails no more often than is promised."""
        assert_rate_at_most(*self.misses(shrunk)[label], MISSES)


def hold(tables: Iterable[Protected], scenario: Scenario, times: int, seed: int) -> Reaches:
    """So many conversations about each table; no kind of bounds fails too often about any."""
    every = Reaches()
    for about in tables:
        here = Reaches()
        for place in range(times):
            random = Random(f"{scenario.__name__} {about.name} {seed} {place}")
            with about.session(random.getrandbits(32)) as session:
                talk = Talk(about, session, random)
                scenario(talk)
            here.add(talk)
            every.add(talk)
        for label in here.misses():
            here.require(label)
    for label in every.misses():
        every.require(label)
    return every
