"""Approximate disclosure: whose value somebody who knows their own pins down to within a share.

A cell of ten in which one income is nearly all of it exposes nobody by rank; the second largest of
the ten, who knows what is his, comes close to the largest all the same.

Guarantee  Over everything that was published together with types and bounds, not cell by cell:
           every range is proved in exact arithmetic, as all ranges of an audit are.
Cost       The ranges of a connected part of the records, once for each person in it. People are
           taken in the order of their largest value, for the best-placed insider is a large one;
           those whom the time did not suffice for are counted.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.ranges import is_near, tightened
from casemate.audit.region.bounds import Bounds, bounds
from casemate.audit.region.second import components, part
from casemate.audit.result import Approximate, InsiderExposed
from casemate.exact import Box, Region
from casemate.published import true_values
from casemate.query.language import Scalar
from casemate.query.records import Category, Cut

SECONDS = 60.0
"""How long the search may take."""

Secret = tuple[int, str]
"""The position of a record, and a private column."""

Known = dict[Category | Cut | None, Fraction]
"""What is known of one secret: of the number, or of its 0/1 parts."""


@dataclass(frozen=True)
class Approximated:
    """What insiders nearly learn, what they learn by bounds and types, and what is not decided."""

    found: tuple[Approximate, ...] = ()
    exposed: tuple[InsiderExposed, ...] = ()
    notes: tuple[str, ...] = ()


Listed = tuple[Scalar, str]
"""A record, and a private column."""


def approximated(
    case: Case,
    left: Bounds,
    known: Collection[Listed],
    near: Collection[Listed],
    *,
    protect: Fraction,
    seconds: float = SECONDS,
) -> Approximated:
    """Look through everybody's eyes in turn, as far as the time allows.

    What is `known` to everybody or to insiders is not listed again, nor what is `near` already.
    """
    if left.contradiction:
        return Approximated()
    deadline = time.monotonic() + seconds
    search = _InsiderSearch(case, left, protect, frozenset(known), frozenset(near))
    skipped = 0
    for insider in search.insiders:
        late = time.monotonic() >= deadline
        skipped += late or not search.look(insider, deadline)
    return search.result(skipped)


@dataclass(frozen=True, eq=False)
class _Insider:
    """A person, and the columns of theirs that are not known to everybody."""

    owner: int
    columns: list[int]


@dataclass(frozen=True, eq=False)
class _InsiderSearch:
    """The records' parts, and what insiders came to so far."""

    case: Case
    left: Bounds
    protect: Fraction
    known: frozenset[Listed]
    near: frozenset[Listed]
    nearest: dict[Secret, tuple[Fraction, Approximate]] = field(default_factory=dict)
    exact: dict[Secret, InsiderExposed] = field(default_factory=dict)

    @cached_property
    def region(self) -> Region:
        """What is left of everything, with all that is published."""
        return self.case.region.within(tightened(self.case.region.box, self.left))

    @cached_property
    def true(self) -> dict[int, Fraction]:
        """The table's own values."""
        columns = range(self.case.equations.system.columns)
        return true_values(self.case.equations, columns, self.case.source)

    @cached_property
    def parts(self) -> list[tuple[NDArray[np.int64], Region]]:
        """The columns that are not fixed, in parts that share no equation."""
        fixed = np.zeros(self.region.system.columns, np.bool_)
        fixed[self.left.fixed] = True
        label = components(self.region.system, ~fixed)
        each = (np.flatnonzero(label == which) for which in np.unique(label[label >= 0]))
        return [(columns, part(self.region, columns)) for columns in each if len(columns) > 1]

    @cached_property
    def insiders(self) -> list[_Insider]:
        """Everybody who shares a part with others, those of the largest values first."""
        equations = self.case.equations
        owned: dict[int, list[int]] = {}
        for columns, _ in self.parts:
            for column in columns.tolist():
                owner = int(equations.people.first[equations.record[column]])
                owned.setdefault(owner, []).append(column)
        people = [_Insider(owner, columns) for owner, columns in owned.items()]
        return sorted(people, key=self._largest, reverse=True)

    def _largest(self, insider: _Insider) -> Fraction:
        return max(abs(self.true[column]) for column in insider.columns)

    def look(self, insider: _Insider, deadline: float) -> bool:
        """Note what is left of the others for one insider; False if that was not decided."""
        own, decided = set(insider.columns), True
        for columns, region in self.parts:
            mine = [place for place, column in enumerate(columns.tolist()) if column in own]
            if not mine:
                continue
            values = {place: self.true[int(columns[place])] for place in mine}
            seconds = max(0.0, deadline - time.monotonic())
            found = bounds(region.within(_fixed(region.box, values)), seconds=seconds)
            decided &= not found.contradiction and not found.unchecked
            self._note(insider, columns, found)
        return decided

    def _note(self, insider: _Insider, columns: NDArray[np.int64], found: Bounds) -> None:
        """Keep what one insider knows of others, where it is more than everybody or others know."""
        equations, own = self.case.equations, set(insider.columns)
        rows = sorted({int(equations.record[column]) for column in own})
        knows = tuple(equations.people.record(row) for row in rows)
        fixed: dict[Secret, Known] = {}
        for place, column in enumerate(columns.tolist()):
            low, high = found.low[place], found.high[place]
            if column in own or low is None or high is None:
                continue
            secret = int(equations.record[column]), self.case.secret(column)
            if low == high:
                fixed.setdefault(secret, {})[self.case.unknown(column).category] = low
            else:
                self._near(column, Approximate(*self._listed(secret), knows, low, high))
        for secret, values in fixed.items():
            listed = self._listed(secret)
            if (
                secret not in self.exact
                and listed not in self.known
                and self._follows(secret, values)
            ):
                self.exact[secret] = InsiderExposed(*listed, knows)

    def _listed(self, secret: Secret) -> Listed:
        return self.case.equations.people.record(secret[0]), secret[1]

    def _near(self, column: int, entry: Approximate) -> None:
        """Keep the insider who comes nearest to a number, if near enough."""
        true, listed = self.true[column], (entry.record, entry.column)
        if listed in self.known or listed in self.near or not self.case.is_number(column):
            return
        secret = int(self.case.equations.record[column]), entry.column
        away = max(entry.high - true, true - entry.low)
        better = secret not in self.nearest or away < self.nearest[secret][0]
        if better and is_near(entry.low, entry.high, true, self.protect):
            self.nearest[secret] = away, entry

    def _follows(self, secret: Secret, values: Known) -> bool:
        """Whether what has one value now, and what had before, says what the secret is."""
        known: Known = {
            self.case.unknown(column).category: self.left.low[column] or Fraction(0)
            for column in self._public.get(secret, ())
        }
        known |= values
        if None in known:
            return bool(known[None]) or self._is_there(secret)
        others = [value for category, value in known.items() if isinstance(category, Category)]
        declared = self.case.declared(secret[1])
        return bool(declared) and (1 in others or len(others) >= len(declared) - 1)

    def _is_there(self, secret: Secret) -> bool:
        """Whether a number cannot be missing, so that 0 is a value."""
        column = self.case.policy.column(secret[1])
        return column is None or not column.nullable

    @cached_property
    def _public(self) -> dict[Secret, list[int]]:
        """The columns that have one value for everybody, by secret."""
        found: dict[Secret, list[int]] = {}
        for column in self.left.fixed:
            secret = int(self.case.equations.record[column]), self.case.secret(column)
            found.setdefault(secret, []).append(column)
        return found

    def result(self, skipped: int) -> Approximated:
        """What was found, in the order of the records."""
        near = {secret: entry for secret, (_, entry) in self.nearest.items()}
        listed = [near[secret] for secret in sorted(near) if secret not in self.exact]
        exact = [self.exact[secret] for secret in sorted(self.exact)]
        return Approximated(tuple(listed), tuple(exact), tuple(self._notes(skipped)))

    def _notes(self, skipped: int) -> Iterator[str]:
        if skipped:
            yield (
                f"what insiders nearly learn was searched for {len(self.insiders) - skipped} of "
                f"{len(self.insiders)} people"
            )


def _fixed(box: Box, values: Mapping[int, Fraction]) -> Box:
    """The box of somebody who knows these values."""
    low = tuple(values.get(place, end) for place, end in enumerate(box.low))
    high = tuple(values.get(place, end) for place, end in enumerate(box.high))
    return Box(low, high, box.integer)
