"""What was published about one private number, unit by unit.

A unit is a row, or a person where the number is the same in all of their rows. What a statement
says of units is linear in their values and in whether they are there (`LinearFact`), or an extreme
or a median of the values that are there (`OrderFact`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
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
from casemate.query.engines import Key
from casemate.query.records import Cell, Cut, Unknown, lineage
from casemate.table import Missing

OrderKind = Literal["max", "min", "median"]
KINDS: dict[Function, OrderKind] = {
    Function.MIN: "min",
    Function.MAX: "max",
    Function.MEDIAN: "median",
}


@dataclass(frozen=True, eq=False, repr=False)
class LinearFact:
    """low <= sum of alpha * value + beta * presence <= high; a value that is missing counts as 0.

    `open_ends` says which end is not itself possible, and `row` which of the equations it is.
    """

    place: Place
    unit: NDArray[np.int64]
    alpha: NDArray[Any]
    beta: NDArray[Any]
    low: Bound
    high: Bound
    open_ends: tuple[bool, bool] = (False, False)
    row: int | None = None

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
class Facts:
    """Everything published about one private number, and what was known of it beforehand.

    The value of a unit is `number / scale` where it is `present`. `prior` is its place among
    `priors`; `may_miss` whether it may be missing for all that was known.
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

    @cached_property
    def asked(self) -> NDArray[np.int64]:
        """The units that anything was published about."""
        every = [fact.unit for fact in (*self.linear, *self.order)]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *every]))

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


def name_of(column: ShownColumn) -> str:
    """The private number of which a column shows an extreme or a median."""
    (name,) = aggregate_of(column).private_argument
    return name


def aggregate_of(column: ShownColumn) -> Aggregate:
    """The extreme or median that a column shows."""
    return column.select.aggregates[column.form.weights[0][0]]


def _summed(column: ShownColumn) -> Aggregate:
    """The sum of what an extreme or a median is of: it is about the same records."""
    return replace(aggregate_of(column), function=Function.SUM)


def facts_of(case: Case, name: str) -> Facts | None:
    """What was published about a private number; None where other secrets share its equations."""
    linear = _linear_facts(case, name)
    if linear is None:
        return None
    people = case.equations.people
    known = column_values(name, case.source)
    values = [known[record] for record in map(people.record, range(len(people.records)))]
    present = np.array([each is not None for each in values], np.bool_)
    number, scale = numerators(values)
    declared = case.policy.column(name)
    missing = Missing.NONE if declared is None else declared.missing
    prior, priors, said = _priors(case, name, len(values))
    may_miss = ~said if missing is Missing.SECRET else np.zeros(len(values), np.bool_)
    order = tuple(_order_facts(case, name, number, scale, present))
    empty = [fact for fact in order if isinstance(fact, LinearFact)]
    asked = tuple(fact for fact in order if isinstance(fact, OrderFact))
    return Facts(
        name, people, number, scale, present, prior, priors, may_miss, (*linear, *empty), asked
    )


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


def _linear_facts(case: Case, name: str) -> list[LinearFact] | None:
    equations = case.equations
    system, unknowns = equations.system, equations.unknowns
    role = np.array([_role(each, name) for each in unknowns], np.int64)
    kind = role[equations.unknown][system.column] if len(unknowns) else system.column
    mine = np.unique(system.row[kind < 2])
    entry = np.isin(system.row, mine)
    if bool((kind[entry] >= 2).any()):
        return None
    if not len(mine):
        return []
    order = np.flatnonzero(entry)[np.argsort(system.row[entry], kind="stable")]
    rows, starts = np.unique(system.row[order], return_index=True)
    unit = equations.record[system.column[order]]
    found = []
    for row, part in zip(rows.tolist(), np.split(np.arange(len(order)), starts[1:]), strict=True):
        units, place = np.unique(unit[part], return_inverse=True)
        value, here = system.value[order[part]], kind[order[part]]
        coefficients = []
        for which in (0, 1):
            total = np.zeros(len(units), value.dtype)
            total[place[here == which]] = value[here == which]
            coefficients.append(total)
        found.append(
            LinearFact(
                equations.places[row],
                units,
                *coefficients,
                equations.low[row],
                equations.high[row],
                equations.open_ends[row],
                row,
            )
        )
    return found


def _role(unknown: Unknown, name: str) -> int:
    """0 for the number itself, 1 for its being there, 2 for another secret."""
    if unknown.column != name:
        return 2
    return {None: 0, Cut(None): 1}.get(unknown.category, 2)  # type: ignore[arg-type]  # or another cut


# Extremes and medians -----------------------------------------------------------------------------


def _order_facts(
    case: Case, name: str, number: NDArray[Any], scale: int, present: NDArray[np.bool_]
) -> Iterator[OrderFact | LinearFact]:
    """One fact for each shown cell, with the answer that was given, or the table's."""
    columns = [each for each in case.publication.ordered if name_of(each) == name]
    if not columns:
        return
    people, declared = case.equations.people, case.policy.column(name)
    check_constant([name], people, case.policy, case.source)
    needed = list(dict.fromkeys(map(_summed, columns)))
    found = lineage(needed, case.source)
    ends = np.argsort(found.cell, kind="stable")
    starts = np.searchsorted(found.cell[ends], np.arange(len(found.cells) + 1))
    rows_of = {
        cell: found.record[ends[starts[i] : starts[i + 1]]] for i, cell in enumerate(found.cells)
    }
    owners = people.owners(name)
    public = declared is not None and declared.missing is not Missing.SECRET
    for column in columns:
        index = needed.index(_summed(column))
        for shown in shown_cells(column.select, case.source):
            rows = rows_of.get(Cell(index, shown.key), found.record[:0])
            owned = rows if owners is None else owners[rows]
            units, times = np.unique(owned, return_counts=True)
            if public:
                units, times = units[present[units]], times[present[units]]
            if not len(units):
                continue
            place = place_of(column.query, column.select, column.output.name, shown.key)
            yield _order_fact(
                column, place, shown.key, units, times, number, scale, present, public=public
            )


def _order_fact(
    column: ShownColumn,
    place: Place,
    key: Key,
    units: NDArray[np.int64],
    times: NDArray[np.int64],
    number: NDArray[Any],
    scale: int,
    present: NDArray[np.bool_],
    *,
    public: bool,
) -> OrderFact | LinearFact:
    # of a single unit each of these is its value
    kind = KINDS[aggregate_of(column).function] if len(units) > 1 else "max"
    there = present[units]
    given = column.answer(key)
    if given is None and not there.any():  # NULL: nobody has a value
        ones = np.ones(len(units), np.int64)
        return LinearFact(place, units, 0 * ones, ones, Fraction(0), Fraction(0))
    shown = exact(given) if given is not None else _answer(kind, number[units], times, there, scale)
    low, high = shown - column.within, shown + column.within
    if kind == "median" and len(units) == 2 and times[0] == times[1] and public:
        ones = np.ones(2, np.int64)  # the median of two is their average
        return LinearFact(place, units, ones, 0 * ones, 2 * low, 2 * high)
    return OrderFact(place, kind, units, times, low, high)


def _answer(
    kind: OrderKind, numbers: NDArray[Any], times: NDArray[np.int64], there: Any, scale: int
) -> Fraction:
    """What the table gives, exactly."""
    values = numbers[there]
    if kind != "median":
        return Fraction(int(values.max() if kind == "max" else values.min()), scale)
    lower, upper = middle_pair(values, times[there])
    return Fraction(lower + upper, 2 * scale)


def middle_pair(values: NDArray[Any], times: NDArray[np.int64]) -> tuple[int, int]:
    """The two values in the middle, each counted so often; one and the same for an odd number."""
    order = np.argsort(values, kind="stable")
    reach = np.cumsum(times[order])
    total = int(reach[-1])
    first, second = (
        int(np.searchsorted(reach, rank)) for rank in ((total + 1) // 2, total // 2 + 1)
    )
    return int(values[order[first]]), int(values[order[second]])
