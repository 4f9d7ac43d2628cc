"""Which people could live in a small block, given the statistics published about it.

Source     Garfinkel, Abowd and Martindale, "Understanding Database Reconstruction Attacks on
           Public Data" (2018), whose block of seven people the tests solve.
Guarantee  Every multiset of people that gives the published statistics, each exactly once, when
           the enumeration is complete. People are in order, so no two solutions are the same
           people in another order, and every variable of the model follows from the people.
Cost       Hard in general; a second for ten people, minutes for thirty, hence the limit.

The people of a small block as variables, in order, and published statistics about them.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

from ortools.sat.python import cp_model

from casemate.audit.time_limit import Clock, SearchLimit
from casemate.exact import Exact

Person = tuple[int | str, ...]  # the number first, then one value for each attribute
Literal = Any  # a literal of the solver, or 1 for a condition that everybody meets


@dataclass(frozen=True)
class PeopleCell:
    """People with a number in a range and with certain values; everybody, by default."""

    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    at_least: int | None = None
    at_most: int | None = None


@dataclass(frozen=True)
class Statistic:
    """What was published about a cell: how many, and the median and mean of their numbers.

    The count may be a range, when the cell was withheld for being small; then nothing else is
    known of it. The published mean is within `mean_within` of the true one: half a unit of the
    last digit that the table prints.
    """

    cell: PeopleCell
    count: int | tuple[int, int]
    median: Exact | None = None
    mean: Exact | None = None
    mean_within: Exact = 0

    def __post_init__(self) -> None:
        if (isinstance(self.count, tuple) or self.count < 1) and (self.median, self.mean) != (
            None,
            None,
        ):
            raise ValueError("a median or a mean needs an exact and positive count")


@dataclass(frozen=True)
class Block:
    """Some people with a number (an age) in bounds and attributes with declared values.

    Each of `implications` says that whoever is in its first cell is in its second.
    """

    size: int
    low: int
    high: int
    attributes: Mapping[str, tuple[str, ...]]
    statistics: tuple[Statistic, ...]
    implications: tuple[tuple[PeopleCell, PeopleCell], ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1 or self.low > self.high:
            raise ValueError("a block needs at least one person and low <= high")
        cells = [each.cell for each in self.statistics]
        for cell in [*cells, *(cell for pair in self.implications for cell in pair)]:
            for name, values in cell.where.items():
                if not set(values) <= set(self.attributes.get(name, ())):
                    raise ValueError(f"a cell asks for values that {name} was not declared with")


class PersonModel:
    """The variables of every person; none is free to vary once the people are given."""

    def __init__(self, block: Block) -> None:
        self.model = cp_model.CpModel()
        self._block = block
        self._cache: dict[tuple[object, ...], Literal] = {}
        people = range(block.size)
        self._number = [self.model.new_int_var(block.low, block.high, "") for _ in people]
        self._has = [
            {
                (name, value): self.model.new_bool_var("")
                for name, values in block.attributes.items()
                for value in values
            }
            for _ in people
        ]
        for person in people:
            for name, values in block.attributes.items():
                self.model.add_exactly_one(self._has[person][name, value] for value in values)
        self._in_order()
        for first, second in block.implications:
            for person in people:
                self._implies(self._inside(person, first), self._inside(person, second))
        for statistic in block.statistics:
            self._publish(statistic)

    def people(self, value: Callable[[Any], int]) -> tuple[Person, ...]:
        """The people of a solution."""
        return tuple(
            (
                value(self._number[person]),
                *(
                    next(each for each in values if value(self._has[person][name, each]))
                    for name, values in self._block.attributes.items()
                ),
            )
            for person in range(self._block.size)
        )

    def lacks_one_of(self, people: Sequence[Person]) -> None:
        """Require that somebody of these is there less often than here."""
        lacks = []
        for person, times in Counter(people).items():
            number = int(person[0])
            values = dict(zip(self._block.attributes, person[1:], strict=True))
            cell = PeopleCell(
                {name: (str(value),) for name, value in values.items()}, number, number
            )
            fewer = self.model.new_bool_var("")
            self.model.add(sum(self._members(cell)) <= times - 1).only_enforce_if(fewer)
            lacks.append(fewer)
        self.model.add_bool_or(lacks)

    def _in_order(self) -> None:
        """Sort the people by number and then by values, so that each multiset comes once."""
        codes, kinds = [], math.prod(map(len, self._block.attributes.values()))
        for person in range(self._block.size):
            code: Any = self._number[person]
            for name, values in self._block.attributes.items():
                place = sum(k * self._has[person][name, each] for k, each in enumerate(values))
                code = code * len(values) + place
            codes.append(code)
        low, high = self._block.low * kinds, (self._block.high + 1) * kinds
        for code, after in pairwise(codes):
            self.model.add_linear_constraint(after - code, 0, high - low)

    def _members(self, cell: PeopleCell) -> list[Literal]:
        return [self._inside(person, cell) for person in range(self._block.size)]

    def _inside(self, person: int, cell: PeopleCell) -> Literal:
        """The literal "this person is in the cell"."""
        wanted = [
            self._any_value(person, name, tuple(sorted(values)))
            for name, values in cell.where.items()
        ]
        if cell.at_least is not None:
            wanted.append(self._at_least(person, cell.at_least))
        if cell.at_most is not None:
            wanted.append(_not(self._at_least(person, cell.at_most + 1)))
        return self._all(wanted)

    def _any_value(self, person: int, name: str, values: tuple[str, ...]) -> Literal:
        others = set(self._block.attributes[name]) - set(values)
        return self._all([~self._has[person][name, each] for each in sorted(others)])

    def _at_least(self, person: int, bound: int) -> Literal:
        """The literal "this person's number is at least that", made once."""
        if not self._block.low < bound <= self._block.high:
            return int(bound <= self._block.low)
        key = ("at least", person, bound)
        if key not in self._cache:
            literal = self._cache[key] = self.model.new_bool_var("")
            self.model.add(self._number[person] >= bound).only_enforce_if(literal)
            self.model.add(self._number[person] < bound).only_enforce_if(~literal)
        return self._cache[key]

    def _all(self, literals: Sequence[Literal]) -> Literal:
        """The literal that is true exactly when all of some are."""
        if any(isinstance(each, int) and not each for each in literals):
            return 0
        real = [each for each in literals if not isinstance(each, int)]
        if len(real) < 2:
            return real[0] if real else 1
        key = ("all", *sorted(each.index for each in real))
        if key not in self._cache:
            literal = self._cache[key] = self.model.new_bool_var("")
            self.model.add_bool_and(real).only_enforce_if(literal)
            self.model.add_bool_or([*(~each for each in real), literal])
        return self._cache[key]

    def _implies(self, first: Literal, second: Literal) -> None:
        clause = [_not(first), second]
        if not any(isinstance(each, int) and each for each in clause):
            self.model.add_bool_or([each for each in clause if not isinstance(each, int)])

    def _publish(self, statistic: Statistic) -> None:
        members, count = self._members(statistic.cell), statistic.count
        least, most = count if isinstance(count, tuple) else (count, count)
        total: Any = sum(members)
        if isinstance(total, int):
            self._require(least <= total <= most)
        else:
            self.model.add_linear_constraint(total, least, most)
        if isinstance(count, int) and statistic.median is not None:
            self._publish_median(members, count, statistic.median)
        if isinstance(count, int) and statistic.mean is not None:
            least = math.ceil((statistic.mean - statistic.mean_within) * count)
            most = math.floor((statistic.mean + statistic.mean_within) * count)
            terms = [self._counted(person, each) for person, each in enumerate(members)]
            self.model.add_linear_constraint(sum(terms), least, most)

    def _require(self, holds: bool) -> None:
        if not holds:
            self.model.add_bool_or([])

    def _counted(self, person: int, member: Literal) -> Any:
        """The person's number if a member, and 0 otherwise."""
        if isinstance(member, int):
            return member * self._number[person]
        low, high = min(0, self._block.low), max(0, self._block.high)
        counted = self.model.new_int_var(low, high, "")
        self.model.add(counted == self._number[person]).only_enforce_if(member)
        self.model.add(counted == 0).only_enforce_if(~member)
        return counted

    def _publish_median(self, members: list[Literal], count: int, median: Exact) -> None:
        """People are in order, so the median belongs to the members at the middle ranks."""
        lower, upper = ((count + 1) // 2, count // 2 + 1)
        double = 2 * median
        if double.denominator != 1:
            self._require(False)
            return
        middle = self._number_at(members, lower) + self._number_at(members, upper)
        self.model.add(middle == int(double))

    def _number_at(self, members: list[Literal], rank: int) -> cp_model.IntVar:
        """The number of the member at this rank of the cell."""
        number = self.model.new_int_var(self._block.low, self._block.high, "")
        chosen = []
        for person, member in enumerate(members):
            here = self.model.new_bool_var("")
            self.model.add(sum(members[: person + 1]) == rank).only_enforce_if(here)
            self._implies(here, member)
            self.model.add(number == self._number[person]).only_enforce_if(here)
            chosen.append(here)
        self.model.add_exactly_one(chosen)
        return number


def _not(literal: Literal) -> Literal:
    return 1 - literal if isinstance(literal, int) else ~literal


# Block ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solutions:
    """The people that could live in the block; all there are, if `complete`."""

    tables: tuple[tuple[Person, ...], ...]
    complete: bool

    @property
    def common(self) -> tuple[Person, ...]:
        """The people that are in every table found; certain when the tables are all there are."""
        return shared(self.tables)


@dataclass(frozen=True)
class Certain:
    """The people in every solution; what was not settled within the limit is `undecided`."""

    people: tuple[Person, ...]
    undecided: tuple[Person, ...]


def shared(tables: Sequence[tuple[Person, ...]]) -> tuple[Person, ...]:
    """The people that all of some tables have, as often as they all have them.

    >>> shared([((8, "F"), (8, "F")), ((8, "F"), (9, "M"))])
    ((8, 'F'),)
    """
    counted = [Counter(table) for table in tables]
    both = reduce(lambda a, b: a & b, counted) if counted else Counter[Person]()
    return tuple(sorted(both.elements()))


def solve_block(
    block: Block, limit: SearchLimit | None = None, most: int | None = None
) -> Solutions:
    """Enumerate the solutions of a block, up to `most` of them."""
    model, clock = PersonModel(block), Clock(limit or SearchLimit())
    solver = clock.solver(math.inf)
    solver.parameters.num_workers = 1
    solver.parameters.enumerate_all_solutions = True
    collect = _Collect(model, most)
    status = solver.solve(model.model, collect)
    finished = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) and not collect.stopped
    return Solutions(tuple(sorted(collect.found)), finished)


def certain(
    block: Block, limit: SearchLimit | None = None, among: tuple[Person, ...] | None = None
) -> Certain:
    """The people in every solution, without enumerating: look for one that lacks somebody.

    `among` are those that the solutions seen so far have in common, where some were seen.
    """
    clock = Clock(limit or SearchLimit())
    candidates = among
    while candidates is None or candidates:
        model = PersonModel(block)
        if candidates is not None:
            model.lacks_one_of(candidates)
        solver = clock.solver(math.inf)
        status = solver.solve(model.model)
        clock.spent(solver)
        if status == cp_model.INFEASIBLE:
            return Certain(candidates or (), ())
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Certain((), candidates or ())
        table = model.people(solver.value)
        candidates = shared([table, table if candidates is None else candidates])
    return Certain((), ())


class _Collect(cp_model.CpSolverSolutionCallback):
    """Keeps every solution, and stops when there are enough."""

    def __init__(self, model: PersonModel, most: int | None) -> None:
        super().__init__()
        self._model, self._most = model, most
        self.found: set[tuple[Person, ...]] = set()
        self.stopped = False

    def on_solution_callback(self) -> None:
        """Called by the solver for each solution."""
        if len(self.found) == self._most:
            self.stopped = True
            self.stop_search()
        else:
            self.found.add(self._model.people(self.value))
