"""What all rows of a person come to, where a private column varies from row to row.

No single row of somebody with several may be exposed while their total is, and with it the mean,
since everybody knows how many rows there are. A category counts: how often each value occurs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.published.cells import exact
from casemate.published.knowledge import about_people
from casemate.query.expression import Scalar
from casemate.query.linear import Category
from casemate.solve.certificate import Target


@dataclass(frozen=True, eq=False)
class Total:
    """(a combination of columns) / scale + offset: a sum over a person's rows, or a count.

    `counted` is the value whose occurrences are counted; None for a sum.
    """

    first: int
    column: str
    counted: Category | None
    target: Target
    scale: int = 1
    offset: Fraction = Fraction(0)

    def value(self, amount: Fraction) -> Fraction:
        """The total itself, where the combination comes to this."""
        return amount / self.scale + self.offset


def totals(case: Case) -> Iterator[Total]:
    """The totals of everybody with several rows that the published numbers could determine."""
    people = case.equations.people
    if people.alone:
        return
    for name in dict.fromkeys(unknown.column for unknown in case.equations.unknowns):
        if name not in people.constant:
            yield from (_counts if case.declared(name) else _sums)(case, name)


def _sums(case: Case, name: str) -> Iterator[Total]:
    """The sum of a number over each person's rows, rows known beforehand among them."""
    people = case.equations.people
    settled = _settled_elsewhere(case, name)
    for first, columns in _columns(case, name, None).items():
        rows = people.rows(first).tolist()
        asked = set(case.equations.record[columns].tolist())
        others = [row for row in rows if row not in asked]
        prior = all(case.settled(column) for column in columns.tolist())
        if all(row in settled for row in others) and not prior:
            offset = sum((settled[row] for row in others), Fraction(0))
            yield Total(first, name, None, dict.fromkeys(columns.tolist(), 1), 1, offset)


def _settled_elsewhere(case: Case, name: str) -> Mapping[int, Fraction]:
    """The rows whose number was known before anything was published."""
    people = case.equations.people
    known = about_people(name, case.knowledge, people).known if case.knowledge.known else {}
    places = {people.place(record): ends for record, ends in known.items()}
    return {
        place: low
        for place, (low, high) in places.items()
        if place is not None and low is not None and low == high
    }


def _columns(case: Case, name: str, category: Category | None) -> dict[int, NDArray[np.int64]]:
    """The columns of one secret, for each person with several rows, in the order of people."""
    equations, people = case.equations, case.equations.people
    which = [
        i for i, u in enumerate(equations.unknowns) if (u.column, u.category) == (name, category)
    ]
    columns = np.flatnonzero(np.isin(equations.unknown, which))
    owner = people.first[equations.record[columns]]
    several = people.sizes[owner] > 1
    columns, owner = columns[several], owner[several]
    order = np.argsort(owner, kind="stable")
    firsts, starts = np.unique(owner[order], return_index=True)
    parts = np.split(columns[order], starts[1:]) if len(firsts) else []
    return dict(zip(firsts.tolist(), parts, strict=True))


def _counts(case: Case, name: str) -> Iterator[Total]:
    """How often each value of a category occurs in each person's rows, and their sum."""
    *values, last = case.declared(name)
    columns = [_columns(case, name, Category(value)) for value in values]
    people = case.equations.people
    for first in sorted(set().union(*columns)):
        rows = int(people.sizes[first])
        own = [each.get(first, np.zeros(0, np.int64)) for each in columns]
        whole = [len(each) == rows for each in own]
        for value, mine, complete in zip(values, own, whole, strict=True):
            if complete:
                yield Total(first, name, Category(value), dict.fromkeys(mine.tolist(), 1))
        if all(whole) and len(values) > 1:
            others = dict.fromkeys(np.concatenate(own).tolist(), 1)
            yield Total(first, name, Category(last), others, -1, Fraction(rows))
            if all(_is_number(value) for value in (*values, last)):
                yield _weighted(first, name, own, [*values, last])


def _is_number(value: Scalar) -> bool:
    return not isinstance(value, bool | str | None) and not hasattr(value, "isoformat")


def _weighted(
    first: int, name: str, own: Sequence[NDArray[np.int64]], values: Sequence[Scalar]
) -> Total:
    """The sum of a category of numbers: the last value for each row, and what the others add."""
    *more, last = (exact(value) for value in values)
    scale = lcm(*((value - last).denominator for value in more))
    target = {
        column: int((value - last) * scale)
        for value, columns in zip(more, own, strict=True)
        for column in columns.tolist()
    }
    return Total(first, name, None, target, scale, last * len(own[0]))
