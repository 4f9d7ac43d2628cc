"""Which people could live in a small block: its published statistics, a model, its solutions.

Source     Garfinkel, Abowd and Martindale, "Understanding Database Reconstruction Attacks on
           Public Data" (2018), whose block of seven people the tests solve.
Guarantee  Every multiset of people that gives the published statistics, each exactly once, when
           the enumeration is complete. People are in order, so no two solutions are the same
           people in another order, and every variable of the model follows from the people.
           `certain` lists people who are in every solution, each proved; nobody else is certain
           unless listed as undecided.
Cost       Hard in general; a second for ten people, minutes for thirty, hence the limit.

The statistics are read from a CSV, one row for each line of a table. The columns before `count`
say whom a row is about (`age`, and any attribute such as sex; blank for everybody), `count`,
`median` and `mean` what was published; a row with a blank `count` was suppressed, and only
declares the values it names.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

from ortools.sat.python import cp_model

from casemate.audit.time_limit import Clock, SearchLimit
from casemate.errors import Misconfigured
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


@dataclass(frozen=True)
class Block:
    """Some people with a number (an age) in bounds and attributes with declared values."""

    size: int
    low: int
    high: int
    attributes: Mapping[str, tuple[str, ...]]
    statistics: tuple[Statistic, ...]


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

    def _publish(self, statistic: Statistic) -> None:
        members, count = self._members(statistic.cell), statistic.count
        least, most = count if isinstance(count, tuple) else (count, count)
        self.model.add_linear_constraint(cp_model.LinearExpr.sum(members), least, most)
        if isinstance(count, int) and statistic.median is not None:
            self._publish_median(members, count, statistic.median)
        if isinstance(count, int) and statistic.mean is not None:
            least = math.ceil((statistic.mean - statistic.mean_within) * count)
            most = math.floor((statistic.mean + statistic.mean_within) * count)
            terms = [self._number_if_member(person, each) for person, each in enumerate(members)]
            self.model.add_linear_constraint(sum(terms), least, most)

    def _number_if_member(self, person: int, member: Literal) -> Any:
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
        middle = self._number_at(members, lower) + self._number_at(members, upper)
        double = 2 * median
        self.model.add_linear_constraint(middle, math.ceil(double), math.floor(double))

    def _number_at(self, members: list[Literal], rank: int) -> cp_model.IntVar:
        """The number of the member at this rank of the cell."""
        number = self.model.new_int_var(self._block.low, self._block.high, "")
        chosen = []
        for person, member in enumerate(members):
            here = self.model.new_bool_var("")
            self.model.add(sum(members[: person + 1]) == rank).only_enforce_if(here)
            if not isinstance(member, int):
                self.model.add_implication(here, member)
            elif not member:
                self.model.add(here == 0)
            self.model.add(number == self._number[person]).only_enforce_if(here)
            chosen.append(here)
        self.model.add_exactly_one(chosen)
        return number


def _not(literal: Literal) -> Literal:
    return 1 - literal if isinstance(literal, int) else ~literal


# Solutions --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solutions:
    """The people that could live in the block; all there are, if `complete`."""

    tables: tuple[tuple[Person, ...], ...]
    complete: bool

    @property
    def common(self) -> tuple[Person, ...]:
        """The people that are in every table found; certain when the tables are all there are."""
        return common_people(self.tables)


@dataclass(frozen=True)
class Certain:
    """The people in every solution; what was not settled within the limit is `undecided`."""

    people: tuple[Person, ...]
    undecided: tuple[Person, ...]


def common_people(tables: Sequence[tuple[Person, ...]]) -> tuple[Person, ...]:
    """The people that all of some tables have, as often as they all have them.

    >>> common_people([((8, "F"), (8, "F")), ((8, "F"), (9, "M"))])
    ((8, 'F'),)
    """
    counted = [Counter(table) for table in tables]
    both = reduce(lambda a, b: a & b, counted) if counted else Counter[Person]()
    return tuple(sorted(both.elements()))


def solve_block(
    block: Block, limit: SearchLimit | None = None, max_tables: int | None = None
) -> Solutions:
    """Enumerate the solutions of a block, up to `most` of them."""
    model, clock = PersonModel(block), Clock(limit or SearchLimit())
    solver = clock.solver(math.inf)
    solver.parameters.num_workers = 1
    solver.parameters.enumerate_all_solutions = True
    collect = _Collect(model, max_tables)
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
        candidates = common_people([table, table if candidates is None else candidates])
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


# Statistics file --------------------------------------------------------------------------------


NAME, AGE, COUNT = "statistic", "age", "count"
PUBLISHED = ("median", "mean")
DEFAULT_AGES = (0, 125)
MAX_PEOPLE = 100
SPAN = re.compile(r"(?P<low>\d{1,9})(?:\s*(?:(?P<open>\+)|[-–]\s*(?P<high>\d{1,9})))?")
BELOW = re.compile(r"<\s*(?P<end>\d{1,9})")
NUMBER = re.compile(r"\d{1,9}(?:\.(?P<decimals>\d{1,9}))?")  # small enough for any solver
Ends = tuple[int | None, int | None]


@dataclass(frozen=True)
class PublishedBlock:
    """A block to solve, and what the values of its people are called."""

    block: Block
    aged: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a person's values; without an age where nothing is about ages."""
        return (AGE, *self.block.attributes) if self.aged else tuple(self.block.attributes)


@dataclass(frozen=True)
class _BlockRow:
    """One row of the file: where it is, whom it is about, and what was published."""

    where: str
    filters: dict[str, tuple[str, ...]]
    age: Ends
    count: Ends
    median: str
    mean: str

    @property
    def exactly(self) -> int | None:
        """The count, where one number was published."""
        return self.count[0] if self.count[0] == self.count[1] else None


def read_block(path: Path, ages: tuple[int, int] = DEFAULT_AGES) -> PublishedBlock:
    """The statistics in a file about people whose ages are in a range."""
    lines = _lines(path)
    header = _header(path, lines[0][1] if lines else [])
    rows = [_row(f"{path}, line {line}", header, cells) for line, cells in lines[1:]]
    aged = any(row.age != (None, None) or row.median or row.mean for row in rows)
    unit = Fraction(1, 10 ** max([0, *(_decimals(row.mean) for row in rows)]))
    low, high = ages if aged else (0, 0)
    statistics = tuple(_statistic(row, unit) for row in rows if row.count != (None, None))
    attributes = _attributes(path, header, rows)
    return PublishedBlock(Block(_size(path, rows), low, high, attributes, statistics), aged)


def read_ages(text: str) -> tuple[int, int]:
    """LO:HI, the least and the greatest age that is possible.

    >>> read_ages("0:125")
    (0, 125)
    """
    low, _, high = (part.strip() for part in text.partition(":"))
    if not (low.isdecimal() and high.isdecimal() and len(low + high) < 9):
        raise Misconfigured(f"--ages {text} is not LO:HI; write for example --ages 0:125")
    if int(low) > int(high):
        raise Misconfigured(f"--ages {text} is empty: the first age must not be above the second")
    return int(low), int(high)


# The file as cells ----------------------------------------------------------------------------


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """The lines that are not blank, each with its number."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            found = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise Misconfigured(f"{path} cannot be read; expected a CSV with a column count") from None
    return [(line, cells) for line, cells in found if any(cells)]


def _header(path: Path, names: Sequence[str]) -> list[str]:
    """The names of the columns, checked; those casemate knows in small letters."""
    known = (NAME, AGE, COUNT, *PUBLISHED)
    header = [name.lower() if name.lower() in known else name for name in names]
    if COUNT not in header:
        raise Misconfigured(f"{path} has no column count; its first line must name the columns")
    if len(set(header)) < len(header) or "" in header:
        raise Misconfigured(f"{path} must give each column a name of its own in its first line")
    place = header.index(COUNT)
    for name in header[place + 1 :]:
        if name not in PUBLISHED:
            raise Misconfigured(
                f"{path} has an unknown column {name} after count; expected median or mean there, "
                f"and whom a row is about before count"
            )
    early = next((name for name in PUBLISHED if name in header[:place]), None)
    if early is not None:
        raise Misconfigured(f"{path} has the column {early} before count; put it after count")
    return header


def _row(where: str, header: Sequence[str], cells: Sequence[str]) -> _BlockRow:
    if len(cells) != len(header):
        raise Misconfigured(f"{where} has {len(cells)} cells; expected {len(header)}")
    named = dict(zip(header, cells, strict=True))
    row = _BlockRow(
        where,
        {name: values for name in _filters(header) if (values := _alternatives(named[name]))},
        _span(named.get(AGE, ""), where, "age", "40, 18-64, 18+ or <18"),
        _span(named[COUNT], where, "count", "7, or 0-2 or <3 for one that was withheld"),
        named.get("median", ""),
        named.get("mean", ""),
    )
    if (row.median or row.mean) and not row.exactly:
        raise Misconfigured(f"{where} has a median or a mean without a count of at least 1")
    for name in PUBLISHED:
        if not NUMBER.fullmatch(named.get(name) or "0"):
            raise Misconfigured(f"{where}: the {name} is not a number; write for example 33.5")
    return row


def _filters(header: Sequence[str]) -> list[str]:
    """The columns that are attributes: any before `count` that has no other meaning."""
    return [name for name in header[: header.index(COUNT)] if name not in (NAME, AGE)]


def _alternatives(text: str) -> tuple[str, ...]:
    """The values a filter allows: `B`, or `B | W` for either."""
    return tuple(dict.fromkeys(part for each in text.split("|") if (part := each.strip())))


def _span(text: str, where: str, what: str, examples: str) -> Ends:
    """The ends of a range of whole numbers, both None where nothing is written."""
    if not text:
        return None, None
    below, span = BELOW.fullmatch(text), SPAN.fullmatch(text)
    if below is None and span is None:
        raise Misconfigured(f"{where}: the {what} is not a number; write for example {examples}")
    low = int(span["low"]) if span else 0
    high = int(below["end"]) - 1 if below else int(span["high"] or low) if span else low
    if high < low:
        raise Misconfigured(f"{where}: the {what} ends before it begins; write the lesser first")
    return low, None if span and span["open"] else high


def _decimals(text: str) -> int:
    found = NUMBER.fullmatch(text)
    return len(found["decimals"] or "") if found else 0


# The file as statistics -----------------------------------------------------------------------


def _statistic(row: _BlockRow, unit: Fraction) -> Statistic:
    """A row as a statistic; a mean is within half a unit of its column's last decimal."""
    low, high = row.count
    exactly = row.exactly
    return Statistic(
        PeopleCell(row.filters, *row.age),
        (low or 0, MAX_PEOPLE if high is None else high) if exactly is None else exactly,
        Fraction(row.median) if row.median else None,
        Fraction(row.mean) if row.mean else None,
        unit / 2,
    )


def _size(path: Path, rows: Sequence[_BlockRow]) -> int:
    """How many people there are: the count of a row that is about everybody."""
    everybody = [row for row in rows if not row.filters and row.age == (None, None)]
    sizes = [row.exactly for row in everybody if row.exactly is not None]
    if not sizes or not sizes[0]:
        raise Misconfigured(
            f"{path} does not say how many people there are; add a row with only a count"
        )
    if sizes[0] > MAX_PEOPLE:
        raise Misconfigured(
            f"{path} is about {sizes[0]} people; a block of at most {MAX_PEOPLE} can be solved"
        )
    return sizes[0]


def _attributes(
    path: Path, header: Sequence[str], rows: Sequence[_BlockRow]
) -> dict[str, tuple[str, ...]]:
    """The values of every attribute: all that the file names."""
    found = {}
    for name in _filters(header):
        values = dict.fromkeys(value for row in rows for value in row.filters.get(name, ()))
        if len(values) < 2:
            raise Misconfigured(
                f"{path}: the column {name} names fewer than two values; give each value that is "
                f"possible a row, with a blank count where nothing was published"
            )
        found[name] = tuple(values)
    return found
