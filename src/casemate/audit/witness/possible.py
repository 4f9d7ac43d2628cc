"""Which tables are possible: same types and bounds, and the same answer to everything published.

A table is judged by its values alone, record by record, so that one that was read from a file is
judged like any other: each secret follows from the value, each equation from the secrets, and each
extreme or median from the values of its records.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from casemate.audit.case import Case
from casemate.audit.order.nodes import Node, OrderLog
from casemate.exact import Bound, within
from casemate.published import column_values, exact
from casemate.query.language import Scalar
from casemate.query.records import Unknown

Secret = tuple[int, str]
"""A record's position and a private column."""

Value = Scalar | Fraction
Values = Mapping[Secret, Value]
"""A table, as far as it is secret and anything was published about it."""


@dataclass(frozen=True, eq=False, repr=False)
class Possible:
    """What was published, and the custodian's own values."""

    case: Case
    logs: Mapping[str, OrderLog]  # of the columns of which extremes or medians were published
    tied: Mapping[str, frozenset[int]]  # positions that repeat another row of the same person

    @cached_property
    def columns(self) -> dict[Secret, list[int]]:
        """The columns of the equations that a secret's value decides."""
        found: dict[Secret, list[int]] = {}
        for column, place in enumerate(self.case.equations.record.tolist()):
            found.setdefault((place, self.case.secret(column)), []).append(column)
        return found

    @cached_property
    def secrets(self) -> list[Secret]:
        """Everything that anything was published about, in the order of the records."""
        asked = {
            (place, name)
            for name, log in self.logs.items()
            for place in log.asked() - self.tied[name]
        }
        others = {self.owner(node) for log in self.logs.values() for node in log.extras.values()}
        return sorted({*self.columns, *asked, *others})

    def owner(self, node: Node) -> Secret:
        """The secret of which a node is a part; of a constant column, that of the first row."""
        owners = self.case.equations.people.owners(node.unknown.column)
        place = node.place if owners is None else int(owners[node.place])
        return place, node.unknown.column

    @cached_property
    def truth(self) -> dict[Secret, Value]:
        """The table's own values."""
        names = {name for _, name in self.secrets}
        known = {name: column_values(name, self.case.source) for name in sorted(names)}
        record = self.case.equations.people.record
        return {
            (place, name): self._plain(name, known[name][record(place)])
            for place, name in self.secrets
        }

    def _plain(self, name: str, value: Scalar) -> Value:
        """A value of the table; a number as a fraction."""
        return value if value is None or self.case.declared(name) else exact(value)

    def numbers(self, values: Values) -> list[Fraction]:
        """The columns of the equations for these values."""
        found = [Fraction(0)] * self.case.equations.system.columns
        for secret, columns in self.columns.items():
            for column in columns:
                found[column] = self.case.unknown(column).of(values[secret])  # type: ignore[arg-type]  # a fraction is a number
        return found

    def holds(self, values: Values) -> bool:
        """Whether a table could be the true one, in exact arithmetic."""
        return (
            values.keys() == set(self.secrets)
            and all(self._allowed(secret, value) for secret, value in values.items())
            and self._equations_hold(self.numbers(values))
            and all(self._order_holds(name, log, values) for name, log in self.logs.items())
        )

    def _allowed(self, secret: Secret, value: Value) -> bool:
        """Whether a category has a declared value, and a number is one, or may be missing."""
        declared = self.case.declared(secret[1])
        if declared:
            return value in declared
        column = self.case.policy.column(secret[1])
        if value is None:
            return column is not None and column.nullable
        return not isinstance(value, str)

    def _equations_hold(self, numbers: Sequence[Fraction]) -> bool:
        region, equations = self.case.region, self.case.equations
        if not region.contains(numbers):
            return False
        for row in np.flatnonzero(np.array([any(each) for each in equations.open_ends], bool)):
            total = sum((a * numbers[c] for c, a in region.equations[row]), Fraction(0))
            if not _inside(
                total, equations.low[row], equations.high[row], equations.open_ends[row]
            ):
                return False
        return True

    def _order_holds(self, name: str, log: OrderLog, values: Values) -> bool:
        """Whether extremes and medians are as published, and bounds and types are kept."""
        table = np.array(log.truth, object)
        asked = log.asked() - self.tied[name]
        for place in asked:
            table[place] = Fraction(values[place, name] or 0)  # type: ignore[arg-type]  # a number
        for place, node in log.extras.items():
            table[place] = node.unknown.of(values[self.owner(node)])  # type: ignore[arg-type]  # a fraction is a number
        people = self.case.equations.people
        for place in self.tied[name]:
            table[place] = table[int(people.first[place])]
        domain = log.domain
        bounded = all(within(table[p], domain.low[p], domain.high[p]) for p in asked)  # type: ignore[arg-type]  # integers are fractions
        whole = not domain.integer or all(table[p].denominator == 1 for p in asked)
        return bounded and whole and all(question.holds(table) for question in log.questions)


def _inside(total: Fraction, low: Bound, high: Bound, open_ends: tuple[bool, bool]) -> bool:
    return not (open_ends[0] and total == low) and not (open_ends[1] and total == high)


def value_of(
    unknowns: Sequence[tuple[Unknown, Fraction]], candidates: Iterable[Value]
) -> tuple[bool, Value]:
    """The first candidate that has these unknowns, and whether there is one."""
    for value in candidates:
        if all(unknown.of(value) == amount for unknown, amount in unknowns):  # type: ignore[arg-type]  # a fraction is a number
            return True, value
    return False, None


def candidates(
    unknowns: Sequence[tuple[Unknown, Fraction]], true: Value, declared: Sequence[Scalar]
) -> Iterable[Value]:
    """Values that a secret could have, given its unknowns: its own first."""
    yield true
    yield from declared
    if not declared:
        yield from (amount for unknown, amount in unknowns if unknown.category is None)
        yield None
