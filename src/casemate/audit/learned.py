"""From parts that insiders learn to whole values: a number, or a category out of its 0/1 parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.insiders import LISTED, Fact, Learning, unions
from casemate.audit.parts import Parts
from casemate.audit.result import Exposed, InsiderExposed
from casemate.published.truth import column_values
from casemate.query.expression import Scalar
from casemate.solve.bounds import Bounds

Secret = tuple[int, str]
"""The position of a record, and a private column."""


@dataclass(frozen=True, eq=False)
class Learners:
    """The secrets that insiders may learn, and what everybody knows of them."""

    case: Case
    parts: Parts
    determined: NDArray[np.bool_]
    left: Bounds

    def listed(
        self, learning: Learning, most: int, shown: Sequence[Exposed]
    ) -> tuple[tuple[InsiderExposed, ...], bool]:
        """Everybody whose value follows for insiders, and whether some of those were left out."""
        seen = {(each.record, each.column) for each in shown}
        found: list[InsiderExposed] = []
        cut = False
        for (record, name), facts in sorted(self._by_secret(learning).items()):
            if (self.case.equations.people.record(record), name) not in seen:
                entries = list(self._entries((record, name), facts, most))
                cut |= len(entries) > LISTED
                found += entries[:LISTED]
        return tuple(found), cut

    def _by_secret(self, learning: Learning) -> dict[Secret, list[Fact]]:
        about: dict[Secret, list[Fact]] = {}
        for index, facts in learning.by_part.items():
            part = self.parts.listed[index]
            if not all(self.case.settled(column) for column in part.columns):
                about.setdefault((part.record, part.unknown.column), []).extend(facts)
        return about

    def _entries(
        self, secret: Secret, facts: Sequence[Fact], most: int
    ) -> Iterator[InsiderExposed]:
        """The smallest coalitions that learn the value."""
        done: list[frozenset[int]] = []
        for knows in unions(facts, most):
            used = [fact for fact in facts if fact.knows <= knows]
            smaller = any(each <= knows for each in done)
            if not smaller and self._follows(secret, {fact.part for fact in used}):
                done.append(knows)
                yield self._entry(secret, used)

    def _entry(self, secret: Secret, used: Sequence[Fact]) -> InsiderExposed:
        people = self.case.equations.people
        rows = {self.parts.listed[part].record for fact in used for part in fact.shares}
        names = tuple(people.record(row) for row in sorted(rows))
        return InsiderExposed(people.record(secret[0]), secret[1], names)

    def _follows(self, secret: Secret, learned: set[int]) -> bool:
        """Whether a value follows from the parts learned, and those that everybody knows."""
        own = [(index, self.parts.listed[index].unknown) for index in self._own[secret]]
        value = self._true(secret[1])[self.case.equations.people.record(secret[0])]
        if own[0][1].category is None:  # 0 may also stand for a missing number
            column = self.parts.listed[own[0][0]].columns[0]
            return bool(value) or not self.case.may_be_missing(column)
        known = [
            unknown.of(value) for index, unknown in own if index in learned or self._public(index)
        ]
        return 1 in known or len(known) >= len(self.case.declared(secret[1])) - 1

    @cached_property
    def _own(self) -> dict[Secret, list[int]]:
        """The parts of each secret."""
        own: dict[Secret, list[int]] = {}
        for index, part in enumerate(self.parts.listed):
            own.setdefault((part.record, part.unknown.column), []).append(index)
        return own

    def _public(self, index: int) -> bool:
        """Whether a part is known to everybody."""
        low, high = self.left.low, self.left.high
        columns = self.parts.listed[index].columns
        fixed = all(low[column] is not None and low[column] == high[column] for column in columns)
        return fixed or bool(self.determined[index])

    def _true(self, name: str) -> dict[Scalar, Scalar]:
        """What the table says of a category: it decides how much a part gives away."""
        if name not in self._read:
            self._read[name] = column_values(name, self.case.source)
        return self._read[name]

    @cached_property
    def _read(self) -> dict[str, dict[Scalar, Scalar]]:
        return {}
