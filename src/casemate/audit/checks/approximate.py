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
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.ranges import is_near, tighten_box
from casemate.audit.region.bounds import Bounds, bounds
from casemate.audit.region.second import components, hold, part
from casemate.audit.result import Approximate, InsiderExposed
from casemate.exact import Region
from casemate.published import true_values
from casemate.query.language import Scalar
from casemate.query.records import Category, Cut

INSIDER_SEARCH_SECONDS = 60.0
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


def approximate_disclosure(
    case: Case,
    ranges: Bounds,
    already_exposed: Collection[Listed],
    already_tight: Collection[Listed],
    *,
    protect: Fraction,
    seconds: float = INSIDER_SEARCH_SECONDS,
) -> Approximated:
    """Look through everybody's eyes in turn, as far as the time allows.

    What is `already_exposed` to everybody or to insiders is not listed again, nor what is
    `already_tight` for everybody.
    """
    if ranges.contradiction:
        return Approximated()
    deadline = time.monotonic() + seconds
    search = _InsiderSearch(
        case, ranges, protect, frozenset(already_exposed), frozenset(already_tight)
    )
    skipped = 0
    for own in search.insiders:
        late = time.monotonic() >= deadline
        skipped += late or not search.look(own, deadline)
    listed = [search.nearest[secret][1] for secret in sorted(search.nearest.keys() - search.exact)]
    exact = [search.exact[secret] for secret in sorted(search.exact)]
    count = len(search.insiders)
    note = f"what insiders nearly learn was searched for {count - skipped} of {count} people"
    return Approximated(tuple(listed), tuple(exact), (note,) if skipped else ())


@dataclass(frozen=True, eq=False)
class _InsiderSearch:
    """The records' parts, and what insiders came to so far."""

    case: Case
    ranges: Bounds
    protect: Fraction
    already_exposed: frozenset[Listed]
    already_tight: frozenset[Listed]
    nearest: dict[Secret, tuple[Fraction, Approximate]] = field(default_factory=dict)
    exact: dict[Secret, InsiderExposed] = field(default_factory=dict)

    @cached_property
    def true(self) -> dict[int, Fraction]:
        """The table's own values."""
        columns = range(self.case.equations.system.columns)
        return true_values(self.case.equations, columns, self.case.source)

    @cached_property
    def parts(self) -> list[tuple[NDArray[np.int64], Region]]:
        """The columns that are not fixed, in parts that share no equation."""
        region = self.case.region.within(tighten_box(self.case.region.box, self.ranges))
        free = np.ones(region.system.columns, np.bool_)
        free[self.ranges.fixed] = False
        label = components(region.system, free)
        each = (np.flatnonzero(label == which) for which in np.unique(label[label >= 0]))
        return [(columns, part(region, columns)) for columns in each if len(columns) > 1]

    @cached_property
    def insiders(self) -> list[set[int]]:
        """The columns of everybody who shares a part with others, those of large values first."""
        equations = self.case.equations
        owned: dict[int, set[int]] = {}
        for columns, _ in self.parts:
            for column in columns.tolist():
                owner = int(equations.people.first[equations.record[column]])
                owned.setdefault(owner, set()).add(column)
        return sorted(
            owned.values(), key=lambda own: max(abs(self.true[c]) for c in own), reverse=True
        )

    def look(self, own: set[int], deadline: float) -> bool:
        """Note what is left of the others for one insider; False if that was not decided."""
        decided = True
        for columns, region in self.parts:
            mine = [place for place, column in enumerate(columns.tolist()) if column in own]
            if not mine:
                continue
            values = {place: self.true[int(columns[place])] for place in mine}
            seconds = max(0.0, deadline - time.monotonic())
            found = bounds(region.within(hold(region.box, values)), seconds=seconds)
            decided &= not found.contradiction and not found.unchecked
            self._note(own, columns, found)
        return decided

    def _note(self, own: set[int], columns: NDArray[np.int64], found: Bounds) -> None:
        """Keep what one insider knows of others, where it is more than everybody or others know."""
        equations, record = self.case.equations, self.case.equations.people.record
        rows = sorted({int(equations.record[column]) for column in own})
        knows = tuple(record(row) for row in rows)
        fixed: dict[Secret, Known] = {}
        for place, column in enumerate(columns.tolist()):
            low, high = found.low[place], found.high[place]
            secret = int(equations.record[column]), self.case.secret(column)
            if column in own or low is None or high is None:
                continue
            if low == high:
                fixed.setdefault(secret, {})[self.case.unknown(column).category] = low
            elif self.case.is_number(column):
                entry = Approximate(record(secret[0]), secret[1], knows, low, high)
                self._near(secret, self.true[column], entry)
        for secret, values in fixed.items():
            listed = record(secret[0]), secret[1]
            new = secret not in self.exact and listed not in self.already_exposed
            if new and self._follows(secret, values):
                self.exact[secret] = InsiderExposed(*listed, knows)

    def _near(self, secret: Secret, true: Fraction, entry: Approximate) -> None:
        """Keep the insider who comes nearest to a number, if near enough."""
        if (entry.record, entry.column) in self.already_exposed | self.already_tight:
            return
        away = max(entry.high - true, true - entry.low)
        better = secret not in self.nearest or away < self.nearest[secret][0]
        if better and is_near(entry.low, entry.high, true, self.protect):
            self.nearest[secret] = away, entry

    def _follows(self, secret: Secret, values: Known) -> bool:
        """Whether what has one value now, and what had before, says what the secret is."""
        values_known = self._public.get(secret, {}) | values
        if None in values_known:  # 0 is a value where a number cannot be missing
            column = self.case.policy.column(secret[1])
            return bool(values_known[None]) or column is None or not column.nullable
        others = [
            value for category, value in values_known.items() if isinstance(category, Category)
        ]
        declared = self.case.declared_values(secret[1])
        return bool(declared) and (1 in others or len(others) >= len(declared) - 1)

    @cached_property
    def _public(self) -> dict[Secret, Known]:
        """What has one value for everybody, by secret."""
        found: dict[Secret, Known] = {}
        for column in self.ranges.fixed:
            secret = int(self.case.equations.record[column]), self.case.secret(column)
            value = self.ranges.low[column] or Fraction(0)
            found.setdefault(secret, {})[self.case.unknown(column).category] = value
        return found
