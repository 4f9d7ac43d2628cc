"""What was published about one private number, unit by unit.

A unit is a row, or a person where the number is the same in all of their rows. What a statement
says of units is linear in their values, in whether they are there and in whether they are past cuts
(`LinearFact`), or an extreme or a median of the values that are there (`OrderFact`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import KINDS, Case, OrderKind, aggregate_of, name_of
from casemate.exact import Bound
from casemate.published import (
    People,
    Place,
    Range,
    ShownColumn,
    about_people,
    check_constant,
    column_values,
    exact,
    numerators,
    place_of,
    prior_of,
    shown_cells,
)
from casemate.query import Aggregate, Function
from casemate.query.records import Cell, Cut, Lineage, Unknown, lineage
from casemate.table import Missing


@dataclass(frozen=True, eq=False, repr=False)
class LinearFact:
    """low <= sum of alpha * value + beta * presence <= high; a value that is missing counts as 0.

    `open_ends` says which end is not itself possible, and `row` which of the equations it is. Where
    values are compared, `cuts` has what each unit adds if it is past a cut.
    """

    place: Place
    unit: NDArray[np.int64]
    alpha: NDArray[Any]
    beta: NDArray[Any]
    low: Bound
    high: Bound
    open_ends: tuple[bool, bool] = (False, False)
    row: int | None = None
    cuts: tuple[tuple[Cut, NDArray[Any]], ...] = ()

    def allows(self, total: Fraction) -> bool:
        """Whether the sum may be this."""
        above = self.low is None or (self.low < total if self.open_ends[0] else self.low <= total)
        below = self.high is None or (
            total < self.high if self.open_ends[1] else total <= self.high
        )
        return above and below


@dataclass(frozen=True, eq=False, repr=False)
class OrderFact:
    """An extreme or a median of the values that are there lies between two numbers.

    `times` is how often each unit counts, which matters for a median.
    """

    place: Place
    kind: OrderKind
    unit: NDArray[np.int64]
    times: NDArray[np.int64]
    low: Fraction
    high: Fraction

    @property
    def exact(self) -> bool:
        """Whether the answer was published without rounding."""
        return self.low == self.high


@dataclass(frozen=True, eq=False, repr=False)
class NumberFacts:
    """Everything published about one private number, and what was known of it beforehand.

    The value of a unit is `number / scale` where it is `present`. `prior` is its place among
    `priors`; `may_miss` whether it may be missing for all that was known. `compared` are the linear
    facts with cuts: second tables keep them, and proofs do without. Where facts are not `complete`,
    other secrets say more: what follows does, and nobody is free.
    """

    name: str
    people: People
    number: NDArray[Any]
    scale: int
    present: NDArray[np.bool_]
    prior: NDArray[np.int64]
    priors: tuple[Range, ...]
    may_miss: NDArray[np.bool_]
    linear: tuple[LinearFact, ...]
    order: tuple[OrderFact, ...]
    complete: bool = True
    compared: tuple[LinearFact, ...] = ()

    @cached_property
    def asked(self) -> NDArray[np.int64]:
        """The units that anything was published about."""
        every = [fact.unit for fact in self.equations] + [fact.unit for fact in self.order]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *every]))

    @cached_property
    def equations(self) -> tuple[LinearFact, ...]:
        """The linear facts, those with cuts last."""
        return (*self.linear, *self.compared)

    def value(self, unit: int) -> Fraction | None:
        """The custodian's own value."""
        return Fraction(int(self.number[unit]), self.scale) if self.present[unit] else None

    def is_known(self, unit: int) -> bool:
        """Whether a value was known before anything was published."""
        prior = self.priors[int(self.prior[unit])]
        return not self.may_miss[unit] and prior.low is not None and prior.low == prior.high

    @property
    def possible(self) -> bool:
        """Whether the table's own values have the right type and lie within their bounds."""
        asked = self.asked[self.present[self.asked]]
        for which in np.unique(self.prior[asked]).tolist():
            prior, mine = self.priors[which], asked[self.prior[asked] == which]
            numbers = self.number[mine]
            low, high = (Fraction(int(end), self.scale) for end in (numbers.min(), numbers.max()))
            inside = (prior.low is None or prior.low <= low) and (
                prior.high is None or high <= prior.high
            )
            if not inside or (prior.whole and bool((numbers % self.scale != 0).any())):
                return False
        return bool(self.may_miss[self.asked[~self.present[self.asked]]].all())


def _summed(column: ShownColumn) -> Aggregate:
    """The sum of what an extreme or a median is of: it is about the same records."""
    return replace(aggregate_of(column), function=Function.SUM)


@dataclass(frozen=True, eq=False, repr=False)
class _Truth:
    """The table's own values: `number / scale` where one is `present`."""

    number: NDArray[Any]
    scale: int
    present: NDArray[np.bool_]


def facts_of(case: Case, name: str) -> NumberFacts | None:
    """What was published about a private number; None where that is decided elsewhere.

    That is where other secrets share its equations, unless values may be missing in secret: then
    nobody else reads its extremes and medians.
    """
    hidden = is_hidden(case, name)
    equations, complete = _linear_facts(case, name)
    if not complete and not (hidden and name in map(name_of, case.publication.ordered)):
        return None
    people = case.equations.people
    known = column_values(name, case.source)
    values = [known[people.record(place)] for place in range(len(people.records))]
    truth = _Truth(*numerators(values), np.array([each is not None for each in values], np.bool_))
    prior, priors, said = _priors(case, name, len(values))
    may_miss = ~said if hidden else np.zeros(len(values), np.bool_)
    shown = list(_order_facts(case, name, truth, hidden=hidden))
    linear = [fact for fact in equations if not fact.cuts]
    linear += [fact for fact in shown if isinstance(fact, LinearFact)]
    order = tuple(fact for fact in shown if isinstance(fact, OrderFact))
    compared = tuple(fact for fact in equations if fact.cuts)
    own = truth.number, truth.scale, truth.present, prior, priors, may_miss
    return NumberFacts(name, people, *own, tuple(linear), order, complete, compared)


def is_hidden(case: Case, name: str) -> bool:
    """Whether it is secret which values of a column are missing."""
    declared = case.policy.column(name)
    return declared is not None and declared.missing is Missing.SECRET


def _priors(
    case: Case, name: str, count: int
) -> tuple[NDArray[np.int64], tuple[Range, ...], NDArray[np.bool_]]:
    """The range of each unit before anything is published, and of whom something is known."""
    people = case.equations.people
    about = about_people(name, case.knowledge, people)
    place, said = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    priors = [Range(*prior_of(name, None, case.policy, about))]
    for record in about.known:
        unit = people.place(record)
        if unit is not None:
            place[unit], said[unit] = len(priors), True
            priors.append(Range(*prior_of(name, record, case.policy, about)))
    return place, tuple(priors), said


# Equations ----------------------------------------------------------------------------------------


def _linear_facts(case: Case, name: str) -> tuple[list[LinearFact], bool]:
    """The equations about this number alone, and whether there are no others about it."""
    equations = case.equations
    system, unknowns = equations.system, equations.unknowns
    cuts = cuts_of(case, name)
    roles = [Unknown(name), Unknown(name, Cut(None)), *(Unknown(name, cut) for cut in cuts)]
    role = np.array([roles.index(e) if e in roles else OTHER_SECRET for e in unknowns], np.int64)
    kind = role[equations.unknown][system.column] if len(unknowns) else system.column
    touched = np.unique(system.row[kind != OTHER_SECRET])
    mine = np.setdiff1d(touched, system.row[kind == OTHER_SECRET])
    complete = len(mine) == len(touched)
    if not len(mine):
        return [], complete
    entry = np.isin(system.row, mine)
    order = np.flatnonzero(entry)[np.argsort(system.row[entry], kind="stable")]
    rows, starts = np.unique(system.row[order], return_index=True)
    unit = equations.record[system.column[order]]
    found = []
    for row, part in zip(rows.tolist(), np.split(np.arange(len(order)), starts[1:]), strict=True):
        units, place = np.unique(unit[part], return_inverse=True)
        value, here = system.value[order[part]], kind[order[part]]
        alpha, beta, *past = np.zeros((len(roles), len(units)), value.dtype)
        for which, total in enumerate((alpha, beta, *past)):
            total[place[here == which]] = value[here == which]
        found.append(
            LinearFact(
                equations.places[row],
                units,
                alpha,
                beta,
                equations.low[row],
                equations.high[row],
                equations.open_ends[row],
                row,
                tuple((cut, each) for cut, each in zip(cuts, past, strict=True) if each.any()),
            )
        )
    return found, complete


OTHER_SECRET = -1
"""Stands for an unknown that is neither a number, nor its being there, nor past a cut."""


def cuts_of(case: Case, name: str) -> list[Cut]:
    """The cuts that a number is compared with."""
    own = (each.category for each in case.equations.unknowns if each.column == name)
    return [each for each in own if isinstance(each, Cut) and each.value is not None]


# Extremes and medians -----------------------------------------------------------------------------


def _order_facts(
    case: Case, name: str, truth: _Truth, *, hidden: bool
) -> Iterator[OrderFact | LinearFact]:
    """One fact for each shown cell, with the answer that was given, or the table's."""
    columns = [each for each in case.publication.ordered if name_of(each) == name]
    if not columns:
        return
    people = case.equations.people
    check_constant([name], people, case.policy, case.source)
    needed = list(dict.fromkeys(map(_summed, columns)))
    rows_of = _rows_by_cell(lineage(needed, case.source))
    owners = people.owners(name)
    for column in columns:
        index = needed.index(_summed(column))
        for shown in shown_cells(column.select, case.source):
            rows = rows_of.get(Cell(index, shown.key), np.zeros(0, np.int64))
            units, times = np.unique(rows if owners is None else owners[rows], return_counts=True)
            if not hidden:  # everybody knows who has no value
                units, times = units[truth.present[units]], times[truth.present[units]]
            if len(units):
                asked = OrderFact(
                    place_of(column.query, column.select, column.output.name, shown.key),
                    # of a single unit each of these is its value
                    KINDS[aggregate_of(column).function] if len(units) > 1 else "max",
                    units,
                    times // np.gcd.reduce(times),  # a median is that of any share of all rows
                    Fraction(0),
                    Fraction(0),
                )
                yield _answered(asked, column, column.answer(shown.key), truth, hidden=hidden)


def _rows_by_cell(found: Lineage) -> dict[Cell, NDArray[np.int64]]:
    order = np.argsort(found.cell, kind="stable")
    starts = np.searchsorted(found.cell[order], np.arange(len(found.cells) + 1))
    return {
        cell: found.record[order[starts[i] : starts[i + 1]]] for i, cell in enumerate(found.cells)
    }


def _answered(
    asked: OrderFact, column: ShownColumn, given: Decimal | None, truth: _Truth, *, hidden: bool
) -> OrderFact | LinearFact:
    """A fact with its answer; nobody's having a value is linear, and so is a median of two."""
    ones = np.ones(len(asked.unit), np.int64)
    if given is None and not truth.present[asked.unit].any():
        return LinearFact(asked.place, asked.unit, 0 * ones, ones, Fraction(0), Fraction(0))
    shown = exact(given) if given is not None else _answer(asked, truth)
    low, high = shown - column.within, shown + column.within
    of_two = asked.kind == "median" and len(ones) == 2 and len(set(asked.times.tolist())) == 1
    if of_two and not hidden:
        return LinearFact(asked.place, asked.unit, ones, 0 * ones, 2 * low, 2 * high)
    return replace(asked, low=low, high=high)


def _answer(asked: OrderFact, truth: _Truth) -> Fraction:
    """What the table gives, exactly."""
    there = truth.present[asked.unit]
    values = truth.number[asked.unit[there]]
    if asked.kind != "median":
        return Fraction(int(values.max() if asked.kind == "max" else values.min()), truth.scale)
    return Fraction(sum(middle_pair(values, asked.times[there])), 2 * truth.scale)


def middle_pair(values: NDArray[Any], times: NDArray[np.int64]) -> tuple[int, int]:
    """The two values in the middle, each counted so often; one and the same for an odd number."""
    order = np.argsort(values, kind="stable")
    reach = np.cumsum(times[order])
    total = int(reach[-1])
    first, second = (
        int(np.searchsorted(reach, rank)) for rank in ((total + 1) // 2, total // 2 + 1)
    )
    return int(values[order[first]]), int(values[order[second]])
