"""Extremes, medians and comparisons beside sums: whose values they give away together.

`Extremes` reads what was published as questions, `Nodes` are the secrets that these are about, and
`by_order` runs the engines (`decide`) over each private number with all that it meets.

Source     Source document 002, "Beyond linear queries".
Guarantee  An exposed value is proved; whoever is neither exposed nor shown to be free by a second
           table within the limit is undecided, and counts as not safe.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import KINDS, Case, aggregate_of, name_of
from casemate.audit.least import least
from casemate.audit.order.case import ExposedValue, Free, Undecided, Verdicts, Witness
from casemate.audit.order.decide import audit_order
from casemate.audit.region.second import components
from casemate.audit.result import CellName, DerivationStep
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.exact import Bound, Domain, Exact, Kind, OrderQuestion, System
from casemate.published import (
    Knowledge,
    People,
    Place,
    Range,
    ShownColumn,
    about_people,
    check_constant,
    column_values,
    exact,
    place_of,
    prior_of,
    shown_cells,
    true_values,
    whole_answer,
)
from casemate.query import Aggregate
from casemate.query.engines import Key
from casemate.query.records import Cell, Cut, Lineage, Unknown, lineage


@dataclass(frozen=True)
class Node:
    """A secret of the record at a position, and its column in the equations, if it has one."""

    place: int
    unknown: Unknown
    column: int | None


@dataclass(frozen=True)
class NodeQuestion:
    """A question whose members are nodes, and where its answer was published."""

    question: OrderQuestion
    place: Place | None = None

    @property
    def cell(self) -> CellName | None:
        """The cell that shows the answer."""
        return None if self.place is None else (self.place.query, self.place.key)


@dataclass(frozen=True)
class OpenRow:
    """Columns with their coefficients, and totals that they cannot have."""

    terms: tuple[tuple[int, int], ...]
    excluded: frozenset[Bound]


class Nodes:
    """The nodes of a case: its columns, and behind them the numbers that are added.

    A node is a secret of one record: a column of the equations, or a number that only extremes and
    medians are about. Two nodes belong together when a sum, an extreme, a median or a comparison
    links them; what is in no part with an extreme, a median or a comparison is decided without
    them.
    """

    def __init__(self, case: Case) -> None:
        self.case, equations = case, case.equations
        self._count = equations.system.columns
        self._added: list[tuple[str, int]] = []
        self._about: dict[str, Knowledge] = {}
        names = [u.column if u.category is None else None for u in equations.unknowns]
        pairs = zip(equations.unknown.tolist(), equations.record.tolist(), strict=True)
        self._numbers = {
            (name, record): column
            for column, (which, record) in enumerate(pairs)
            if (name := names[which]) is not None
        }

    def __len__(self) -> int:
        return self._count + len(self._added)

    def number(self, name: str, place: int) -> int:
        """The node of a private number of the record at a position."""
        node = self._numbers.setdefault((name, place), len(self))
        if node == len(self):
            self._added.append((name, place))
        return node

    def node(self, which: int) -> Node:
        """What a node stands for."""
        if which >= self._count:
            name, place = self._added[which - self._count]
            return Node(place, Unknown(name), None)
        return Node(int(self.case.equations.record[which]), self.case.unknown(which), which)

    def of(self, name: str) -> list[int]:
        """The nodes that are this private number of some record."""
        return [node for (column, _), node in self._numbers.items() if column == name]

    def prior(self, which: int) -> Range:
        """What is known of a node before anything is published."""
        box, node = self.case.box, self.node(which)
        if node.column is not None:
            column = node.column
            return Range(box.low[column], box.high[column], box.integer[column])
        name = node.unknown.column
        if name not in self._about:
            people = self.case.equations.people
            self._about[name] = about_people(name, self.case.knowledge, people)
        record = self.case.equations.people.record(node.place)
        return Range(*prior_of(name, record, self.case.policy, self._about[name]))

    def true(self, column: int) -> Fraction:
        """The table's own value of a column."""
        return self._truth[column]

    @cached_property
    def _truth(self) -> dict[int, Fraction]:
        equations = self.case.equations
        return true_values(equations, range(equations.system.columns), self.case.source)

    # Comparisons ------------------------------------------------------------------------------

    @cached_property
    def cuts(self) -> list[int]:
        """The columns that say whether a number is past a cut, where bounds do not say it all.

        Whole numbers between bounds are tied to their cuts by linear equations. Of other numbers
        those leave open whether the cut itself is past.
        """
        box = self.case.box
        cut = np.array([_is_cut(each) for each in self.case.equations.unknowns], np.bool_)
        if not cut.any():
            return []
        found = []
        for column in np.flatnonzero(cut[self.case.equations.unknown]).tolist():
            number = self._number_of(column)
            bounded = box.low[number] is not None and box.high[number] is not None
            if not (box.integer[number] and bounded):
                found.append(column)
        return found

    def steps(self) -> Iterator[NodeQuestion]:
        """What the cuts say of their numbers; of a number that may be missing, nothing simple."""
        for column in self.cuts:
            number, cut = self._number_of(column), self.case.unknown(column).category
            if isinstance(cut, Cut) and cut.value is not None and not self.may_be_missing(number):
                yield NodeQuestion(OrderQuestion.step(number, column, cut.value, cut.strict))

    @cached_property
    def _stepped(self) -> frozenset[int]:
        """The numbers that steps are about."""
        return frozenset(int(each.question.members[0]) for each in self.steps())

    def _number_of(self, column: int) -> int:
        place = int(self.case.equations.record[column])
        return self.number(self.case.secret(column), place)

    def may_be_missing(self, node: int) -> bool:
        """Whether a node is a number that counts as 0 where it is missing."""
        found = self.node(node)
        return found.unknown.category is None and self.is_hidden(found.unknown.column)

    def is_hidden(self, name: str) -> bool:
        """Whether it is secret which values of a column are missing."""
        declared = self.case.policy.column(name)
        return declared is not None and declared.nullable

    # Parts ------------------------------------------------------------------------------------

    def parts(self, asked: Sequence[NodeQuestion]) -> NDArray[np.int64]:
        """The part of each node, or -1 where extremes, medians and comparisons do not reach."""
        system = self.case.region.system
        sizes = [len(each.question.members) for each in asked]
        rows = np.repeat(np.arange(system.rows, system.rows + len(asked)), sizes)
        members = [each.question.members for each in asked]
        column = np.concatenate([system.column, *members]).astype(np.int64)
        linked = System(
            system.rows + len(asked),
            len(self),
            np.concatenate([system.row, rows]).astype(np.int64),
            column,
            np.ones(len(column), np.int64),
        )
        label = components(linked, np.ones(len(self), np.bool_))
        touched = np.unique(np.concatenate([label[:0], *(label[each] for each in members)]))
        touched = np.union1d(touched, label[self.cuts])
        return np.where(np.isin(label, touched), label, -1)

    def sums(self, wanted: NDArray[np.bool_]) -> tuple[list[NodeQuestion], bool]:
        """The equations about wanted columns as questions, and whether one of them is none."""
        found, unsure = [], False
        region, published = self.case.region, self.case.equations.system.rows
        for row, columns, factors in self._rows(wanted):
            if row >= published and self._stepped.intersection(columns.tolist()):
                continue  # steps say the same, and more exactly
            low, high = region.low[row], region.high[row]
            if low is None:
                low = self._furthest(columns, factors, up=False)
            if high is None:
                high = self._furthest(columns, factors, up=True)
            if low is not None and high is not None:
                asked = OrderQuestion("sum", columns, low, high, coefficients=factors)
                place = self.case.equations.places[row] if row < published else None
                found.append(NodeQuestion(asked, place))
            elif row < published:
                unsure = True
        return found, unsure

    def open_rows(self, wanted: NDArray[np.bool_]) -> list[OpenRow]:
        """The equations with an end that would have been shown as another number."""
        equations = self.case.equations
        found = []
        for row, columns, factors in self._rows(wanted):
            ends = (False, False)
            if row < equations.system.rows:
                ends = equations.open_ends[row]
            pair = zip((equations.low, equations.high), ends, strict=True)
            excluded = frozenset(side[row] for side, is_open in pair if is_open)
            if excluded:
                terms = tuple(zip(columns.tolist(), factors.tolist(), strict=True))
                found.append(OpenRow(terms, excluded))
        return found

    def _rows(
        self, wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[Any]]]:
        system = self.case.region.system
        order = np.argsort(system.row, kind="stable")
        ends = np.searchsorted(system.row[order], np.arange(system.rows + 1))
        for row in np.unique(system.row[wanted[system.column]]).tolist():
            entries = order[ends[row] : ends[row + 1]]
            yield row, system.column[entries], system.value[entries].astype(object)

    def _furthest(self, columns: NDArray[np.int64], factors: NDArray[Any], up: bool) -> Bound:
        """How far the bounds let an equation go."""
        box, total = self.case.box, Fraction(0)
        for column, factor in zip(columns.tolist(), factors.tolist(), strict=True):
            end = (box.high if (factor > 0) == up else box.low)[column]
            if end is None:
                return None
            total += factor * end
        return total


def _is_cut(unknown: Unknown) -> bool:
    return isinstance(unknown.category, Cut)


# People with several rows: one value for many rows, or one total --------------------------------
# A column that is constant for each person has one unknown for all rows of a person. The extremes
# of some rows are those of their people; in a median, somebody with two rows counts twice, which is
# written as a second unknown that is known to be equal. In a column that varies, the total of a
# person's rows is an unknown of its own, and audited like any other.


@dataclass(frozen=True, eq=False, repr=False)
class OrderLog:
    """What was published about one private number of every record, and the custodian's values."""

    questions: Sequence[OrderQuestion]
    domain: Domain
    truth: Sequence[Exact | None]  # None where a value is missing
    extras: Mapping[int, Node] = field(default_factory=dict)  # other secrets, behind the records

    def asked_positions(self) -> set[int]:
        """The positions of records that any question is about."""
        asked = {int(each) for question in self.questions for each in question.members}
        return asked - self.extras.keys()

    def is_known_beforehand(self, place: int) -> bool:
        """Whether a value was known before anything was published."""
        low = self.domain.low[place]
        return low is not None and low == self.domain.high[place]

    def possible(self) -> bool:
        """Whether the table's own values have the right type and lie within their bounds."""
        ends = zip(self.numbers, self.domain.low, self.domain.high, strict=True)
        return all(
            (low is None or low <= value)
            and (high is None or value <= high)
            and not (self.domain.integer and value.denominator != 1)
            for value, low, high in ends
        )

    @cached_property
    def numbers(self) -> list[Exact]:
        """The custodian's values, where none of them is missing."""
        return [Fraction(0) if each is None else each for each in self.truth]


class Copies:
    """Which unknowns stand for some rows; those that repeat another are remembered in `tied`."""

    def __init__(self, name: str, people: People) -> None:
        self._name, self._owners, self._people = name, people.owners(name), people
        self.tied: dict[int, int] = {}

    def members(self, kind: Kind, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The unknowns of which an aggregate of these rows is the same aggregate."""
        if self._owners is None or not len(rows):
            return rows
        owners, counts = np.unique(self._owners[rows], return_counts=True)
        # a median stays the same when everything is there equally many times more
        times = counts // np.gcd.reduce(counts) if kind == "median" else np.ones_like(counts)
        return self.repeated(owners, times)

    def repeated(self, owners: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Some unknowns, each so many times: as itself, and as copies of it."""
        if self._owners is None:
            return np.sort(owners)
        found = list(owners.tolist())
        for owner, number in zip(owners.tolist(), times.tolist(), strict=True):
            more = self._people.copies(self._name, owner)[1:number].tolist()
            self.tied.update(dict.fromkeys(more, owner))
            found += more
        return np.array(sorted(found), np.int64)

    def ties(self) -> Iterator[OrderQuestion]:
        """That each copy is equal to what it repeats."""
        for copy, owner in self.tied.items():
            yield OrderQuestion.of("sum", [owner, copy], 0, coefficients=[1, -1])


def audit_totals(
    name: str, log: OrderLog, verdicts: Verdicts, people: People, limit: SearchLimit | None
) -> tuple[Mapping[int, tuple[Fraction, str]], set[int]]:
    """The totals that follow, by the person's first row, and whose total was not decided."""
    left = [] if name in people.constant else _open_totals(log, verdicts, people)
    if not left:
        return {}, set()
    longer = _with_totals(log, [people.rows(first) for first in left])
    found = audit_order(longer.questions, longer.domain, longer.numbers, limit=limit)
    about = zip(left, found.records[len(log.truth) :], strict=True)
    exposed, undecided = {}, set()
    for first, verdict in about:
        if isinstance(verdict, ExposedValue):
            exposed[first] = Fraction(verdict.value), verdict.proof
        elif isinstance(verdict, Undecided):
            undecided.add(first)
    return exposed, undecided


def _open_totals(log: OrderLog, verdicts: Verdicts, people: People) -> list[int]:
    """People with several rows, all asked about and not all exposed, whose total may be fixed.

    A second table in which a total differs shows it to be free.
    """
    asked, free = log.asked_positions(), set[int]()
    for witness in verdicts.witnesses:
        changes: dict[int, Exact] = {}
        for place, value in zip(witness.positions.tolist(), witness.values, strict=True):
            if place in log.extras:
                continue
            first = int(people.first[place])
            changes[first] = changes.get(first, 0) + (value or 0) - log.numbers[place]
        free.update(first for first, change in changes.items() if change)
    known = set(verdicts.positions(ExposedValue))
    several = set(np.flatnonzero(people.sizes > 1).tolist()) - free
    rows = {first: set(people.rows(first).tolist()) for first in sorted(several)}
    return [first for first, own in rows.items() if own <= asked and not own <= known]


def _with_totals(log: OrderLog, people: Sequence[NDArray[np.int64]]) -> OrderLog:
    """The log with one more unknown for each person: the total of these rows."""
    size, domain = len(log.truth), log.domain
    questions = [
        OrderQuestion.of("sum", [*rows.tolist(), size + k], 0, coefficients=[*[1] * len(rows), -1])
        for k, rows in enumerate(people)
    ]
    low = tuple(_sum_of_bounds([domain.low[row] for row in rows]) for rows in people)
    high = tuple(_sum_of_bounds([domain.high[row] for row in rows]) for rows in people)
    totals = [sum((log.numbers[row] for row in rows), Fraction(0)) for rows in people]
    wider = Domain((*domain.low, *low), (*domain.high, *high), domain.integer)
    return OrderLog([*log.questions, *questions], wider, [*log.truth, *totals], log.extras)


def _sum_of_bounds(ends: Sequence[Exact | None]) -> Exact | None:
    """The sum of bounds; None where one is absent."""
    known = [end for end in ends if end is not None]
    return sum(known, Fraction(0)) if len(known) == len(ends) else None


# Published extremes and medians as questions about nodes ----------------------------------------


class Extremes:
    """The extremes and medians of one private number."""

    def __init__(self, name: str, nodes: Nodes) -> None:
        self.name, self._nodes, case = name, nodes, nodes.case
        people, known = case.equations.people, column_values(name, case.source)
        check_constant([name], people, case.policy, case.source)
        values = [known[people.record(place)] for place in range(len(people.records))]
        self.truth = [exact(value or 0) for value in values]
        self._present = np.array([value is not None for value in values], np.bool_)
        self._copies = Copies(name, people)

    @property
    def tied(self) -> Mapping[int, int]:
        """The rows that repeat another row of the same person, in medians."""
        return self._copies.tied

    def questions(self) -> Iterator[NodeQuestion]:
        """What was published, and that a value that counts twice is the same twice."""
        case = self._nodes.case
        columns = [each for each in case.publication.ordered if name_of(each) == self.name]
        needed = list(dict.fromkeys(map(aggregate_of, columns)))
        members = _Members(needed, lineage(needed, case.source), self._copies)
        for column in columns:
            for question, place in self._of(column, members):
                yield NodeQuestion(self._about_nodes(question), place)
        for tie in self._copies.ties():
            yield NodeQuestion(self._about_nodes(tie))

    def _of(
        self, column: ShownColumn, members: "_Members"
    ) -> Iterator[tuple[OrderQuestion, Place]]:
        """One question for each shown cell, with the answer that was given, or the table's."""
        aggregate, table = aggregate_of(column), np.array(self.truth, object)
        for cell in shown_cells(column.select, self._nodes.case.source):
            inside = members.of(aggregate, cell.key)
            inside = inside[self._present[inside]]  # everybody knows who has no value
            if len(inside):
                # of a single record every one of these is its value
                kind = KINDS[aggregate.function] if len(inside) > 1 else "max"
                asked = OrderQuestion(kind, inside, 0, 0)
                given = column.answer(cell.key)
                shown = exact(asked.answer(table) if given is None else given)
                place = place_of(column.query, column.select, column.output.name, cell.key)
                within = replace(asked, low=shown - column.within, high=shown + column.within)
                yield within, place

    def _about_nodes(self, question: OrderQuestion) -> OrderQuestion:
        nodes = [self._nodes.number(self.name, place) for place in question.members.tolist()]
        return replace(question, members=np.array(nodes, np.int64))


class _Members:
    """The records behind each cell of some aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate], found: Lineage, copies: Copies) -> None:
        self._index = {aggregate: i for i, aggregate in enumerate(aggregates)}
        self._found, self._copies = found, copies
        order = np.argsort(found.cell, kind="stable")
        ends = np.searchsorted(found.cell[order], np.arange(len(found.cells) + 1))
        self._entries = {c: order[ends[i] : ends[i + 1]] for i, c in enumerate(found.cells)}

    def of(self, aggregate: Aggregate, key: Key) -> NDArray[np.int64]:
        """The positions of the records in one cell, or of the people where one value is theirs."""
        entries = self._entries.get(Cell(self._index[aggregate], key), self._found.cell[:0])
        return self._copies.members(KINDS[aggregate.function], self._found.record[entries])


# Each private number with all that it meets -----------------------------------------------------


Values = Mapping[int, tuple[Fraction, str]]
"""Values by position, each with the kind of its proof."""


NOT_FOUND = (
    "neither a proof nor a second table was found for extremes, medians or comparisons beside sums "
    "of numbers that need not be whole"
)


@dataclass(frozen=True)
class Derived:
    """The statement that tipped a finding, and its proof in words."""

    by: int
    steps: tuple[DerivationStep, ...]


@dataclass(frozen=True, eq=False)
class CellsBehind:
    """Finds the cells without any of which a value that the engines exposed would not follow.

    `shown` are the cells of the first questions of the log; the others are no answers.
    """

    name: str
    log: OrderLog
    shown: Sequence[CellName | None]
    verdicts: Verdicts

    def cells(self, place: int, column: str, clock: Clock) -> Sequence[CellName]:
        """The cells behind a value; all statements as wholes where the time is up."""
        wanted = [place] if column == self.name else []
        wanted += [
            position
            for position, node in self.log.extras.items()
            if (node.place, node.unknown.column) == (place, column)
        ]
        known = [p for p in wanted if isinstance(self.verdicts.records[p], ExposedValue)]
        if not known:
            return ()
        if clock.over:
            return [(query, None) for query in sorted({each[0] for each in self._named})]
        return least(self._named, lambda some: self._exposes(known, some, clock), clock)

    @cached_property
    def _named(self) -> list[CellName]:
        return list(dict.fromkeys(each for each in self.shown if each is not None))

    def _exposes(self, known: Sequence[int], cells: Collection[CellName], clock: Clock) -> bool:
        shown = zip_longest(self.log.questions, self.shown)
        questions = [question for question, cell in shown if cell is None or cell in cells]
        limit = clock.within(SECONDS_FOR_FEWER_CELLS).left
        found = audit_order(questions, self.log.domain, self.log.numbers, 0, limit)
        return all(isinstance(found.records[p], ExposedValue) for p in known)


SECONDS_FOR_FEWER_CELLS = 1.0
"""The longest that one set of cells may take to be decided."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """What extremes, medians and comparisons of one private number add, with their proofs.

    `exposed` has its values by record. Other secrets that it meets in sums are in `others`, by
    their columns in the equations; `covered` has all columns that were decided here.
    """

    column: str
    exposed: Values
    undecided: tuple[tuple[int, str], ...]  # by record and private column
    totals: Values  # of all rows of a person, by the first of them
    log: OrderLog
    tied: frozenset[int] = frozenset()  # positions that repeat another row of the same person
    witnesses: tuple[Witness, ...] = ()
    contradicted: tuple[int, ...] = ()  # statements whose given answers the table does not give
    others: Values = field(default_factory=dict)
    covered: frozenset[int] = frozenset()
    queries: frozenset[int] = frozenset()  # statements of which something was asked here
    missing: Mapping[int, Derived] = field(default_factory=dict)  # known to have no value
    derived: Mapping[int, Derived] = field(default_factory=dict)  # proofs of exposed values
    reason: str = NOT_FOUND  # why some are undecided
    elsewhere: Mapping[tuple[int, str], tuple[Fraction, str]] = field(default_factory=dict)
    """Values of other numbers that only extremes and medians are about, by record and column."""
    complete: bool = True  # whether everything published about the number was read
    behind: CellsBehind | None = None  # of what the engines decided


def by_order(case: Case, clock: Clock, decided: Collection[str] = ()) -> list[Ordered]:
    """What extremes, medians and comparisons say, each private number with all that it meets.

    Of numbers that are decided already nothing is said.
    """
    cut = any(isinstance(each.category, Cut) for each in case.equations.unknowns)
    if not case.publication.ordered and not cut:
        return []
    nodes = Nodes(case)
    compared = (case.secret(column) for column in nodes.cuts)
    found = dict.fromkeys([*map(name_of, case.publication.ordered), *compared])
    names = [name for name in found if name not in decided]
    if not names:
        return []
    extremes = {name: Extremes(name, nodes) for name in names}
    # of numbers that may be missing in secret, extremes are no question about these nodes
    plain = [name for name in names if not nodes.is_hidden(name)]
    asked = [each for name in plain for each in extremes[name].questions()]
    asked += nodes.steps()
    part = nodes.parts(asked)
    return [
        _Share(nodes, extremes, name, mine).audit(asked, clock)
        for name, mine in _shares(nodes, names, part)
    ]


def met_by_extremes(case: Case) -> NDArray[np.bool_]:
    """The columns of the equations that extremes and medians meet, directly or through others.

    Of a number of which it is secret who has none these are all.
    """
    nodes, asked = Nodes(case), list[NDArray[np.int64]]()
    questions: list[NodeQuestion] = []
    for name in dict.fromkeys(map(name_of, case.publication.ordered)):
        if nodes.is_hidden(name):
            asked.append(np.array(nodes.of(name), np.int64))
        else:
            questions += Extremes(name, nodes).questions()
    asked += [each.question.members for each in questions]
    part = nodes.parts([NodeQuestion(OrderQuestion("max", each, 0, 0)) for each in asked])
    met = np.isin(part, np.concatenate([part[:0], *(part[each] for each in asked)]))
    return met[: case.equations.system.columns]


def _shares(
    nodes: Nodes, names: Sequence[str], part: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """For each number the nodes of its parts, save of those that an earlier number is in."""
    left = part >= 0
    for name in names:
        own = part[nodes.of(name)]
        mine = left & np.isin(part, own[own >= 0])
        left &= ~mine
        if mine.any():
            yield name, mine


class _Share:
    """The parts of one private number: its records' values first, and other secrets behind them."""

    def __init__(
        self,
        nodes: Nodes,
        extremes: Mapping[str, Extremes],
        name: str,
        mine: NDArray[np.bool_],
    ) -> None:
        self._nodes, self._extremes, self._name, self._mine = nodes, extremes, name, mine
        size = len(extremes[name].truth)
        self._position = np.full(len(nodes), -1, np.int64)
        self._own, self._extras = dict[int, int](), dict[int, int]()  # positions to nodes
        for which in np.flatnonzero(mine).tolist():
            node = nodes.node(which)
            if (node.unknown.column, node.unknown.category) == (name, None):
                self._own[node.place] = which
            else:
                self._extras[size + len(self._extras)] = which
        for place, which in (*self._own.items(), *self._extras.items()):
            self._position[which] = place

    def audit(self, asked: Sequence[NodeQuestion], clock: Clock) -> Ordered:
        """Audit everything in these parts together."""
        inside = [each for each in asked if self._mine[each.question.members[0]]]
        sums, unsure = self._nodes.sums(self._mine)
        log = self._log([*inside, *sums])
        verdicts = self._verdicts(log, clock)
        shown = [None if each.place is None else each.place.query for each in inside]
        wrong = {shown[p] if p < len(inside) else None for p in verdicts.contradicted}
        # of a sum that the table does not give, or that is no question, not all is known
        doubted = unsure or None in wrong or self._misses(log)
        people = self._nodes.case.equations.people
        totals, open_ = audit_totals(self._name, log, verdicts, people, clock.left)
        exposed, others = self._exposed_values(log, verdicts)
        elsewhere = {
            (node.place, node.unknown.column): (Fraction(verdict.value), str(verdict.proof))
            for place, node in log.extras.items()
            if node.column is None
            and isinstance(verdict := verdicts.records[place], ExposedValue)
            and not log.is_known_beforehand(place)
        }
        undecided = self._undecided_secrets(log, verdicts, doubted) | {
            (p, self._name) for p in open_
        }
        return Ordered(
            self._name,
            exposed,
            tuple(sorted(undecided)),
            totals,
            log,
            frozenset(self._extremes[self._name].tied),
            verdicts.witnesses,
            tuple(sorted(query for query in wrong if query is not None)),
            others,
            frozenset(np.flatnonzero(self._mine).tolist()),
            frozenset(query for query in shown if query is not None),
            elsewhere=elsewhere,
            behind=CellsBehind(self._name, log, [each.cell for each in (*inside, *sums)], verdicts),
        )

    def _exposed_values(self, log: OrderLog, verdicts: Verdicts) -> tuple[Values, Values]:
        """The values that are proved: of records, and of other columns of the equations."""
        found = {
            place: (Fraction(verdict.value), str(verdict.proof))
            for place, verdict in enumerate(verdicts.records)
            if isinstance(verdict, ExposedValue)
        }
        tied = self._extremes[self._name].tied
        own = [
            p
            for p in self._own
            if p in found and p not in tied and not log.is_known_beforehand(p)
            if self._is_there(p, log, found)
        ]
        columns = {place: node.column for place, node in log.extras.items() if place in found}
        others = {c: found[place] for place, c in columns.items() if c is not None}
        return {place: found[place] for place in own}, others

    def _is_there(self, place: int, log: OrderLog, found: Values) -> bool:
        """Whether a number that is proved is one, and not 0 because it may be missing."""
        column = self._nodes.node(self._own[place]).column
        if found[place][0] or column is None or not self._nodes.case.may_be_missing(column):
            return True
        presence = place, Unknown(self._name, Cut(None))
        return any(
            (node.place, node.unknown) == presence and position in found and found[position][0] == 1
            for position, node in log.extras.items()
        )

    def _log(self, asked: Sequence[NodeQuestion]) -> OrderLog:
        """The questions about positions, and what is known of each position."""
        nodes, places = self._nodes, {**self._own, **self._extras}
        truth: list[Exact] = [*self._extremes[self._name].truth, *[Fraction(0)] * len(self._extras)]
        low: list[Exact | None] = [None] * len(truth)
        high, whole = low.copy(), []
        for place, which in places.items():
            prior, truth[place] = nodes.prior(which), self._true(which)
            low[place], high[place] = prior.low, prior.high
            whole += [place] if prior.whole else []
        questions = [self._at_positions(each.question) for each in asked]
        integer = len(whole) == len(places)
        if integer:
            questions = list(map(whole_answer, questions))
        elif whole:
            questions.append(OrderQuestion.whole(whole))
        extras = {place: nodes.node(which) for place, which in self._extras.items()}
        return OrderLog(questions, Domain(tuple(low), tuple(high), integer), truth, extras)

    def _true(self, which: int) -> Fraction:
        node = self._nodes.node(which)
        if node.column is None:
            return self._extremes[node.unknown.column].truth[node.place]
        return self._nodes.true(node.column)

    def _at_positions(self, question: OrderQuestion) -> OrderQuestion:
        return replace(question, members=self._position[question.members])

    def _verdicts(self, log: OrderLog, clock: Clock) -> Verdicts:
        """What the engines say; nothing, where the table itself is not possible."""
        if not log.possible():
            return Verdicts((Undecided(),) * len(log.truth), (), (), 0)
        return audit_order(log.questions, log.domain, log.numbers, 0, clock.left)

    def _misses(self, log: OrderLog) -> bool:
        """Whether not all is known of numbers that may be missing.

        The sums of such numbers do not say it all unless they are whole, and their extremes and
        medians were not asked.
        """
        numbers = (*self._own.values(), *self._extras.values())
        hidden = {
            self._nodes.node(n).unknown.column for n in numbers if self._nodes.may_be_missing(n)
        }
        ordered = {name_of(each) for each in self._nodes.case.publication.ordered}
        return bool(hidden) and (not log.domain.integer or bool(hidden & ordered))

    def _undecided_secrets(
        self, log: OrderLog, verdicts: Verdicts, doubted: bool
    ) -> set[tuple[int, str]]:
        """The secrets that are neither exposed nor shown to be free."""
        wrong = set() if log.domain.integer else self._at_open_ends(log, verdicts)
        open_, free = set[tuple[int, str]](), set[tuple[int, str]]()
        for place, which in (*self._own.items(), *self._extras.items()):
            node, verdict = self._nodes.node(which), verdicts.records[place]
            secret = node.place, node.unknown.column
            if isinstance(verdict, Free) and not doubted and verdict.witness not in wrong:
                free.add(secret)
            elif not isinstance(verdict, ExposedValue):
                open_.add(secret)
        return open_ - free

    def _at_open_ends(self, log: OrderLog, verdicts: Verdicts) -> set[int]:
        """The second tables with a sum at an end that would have been shown as another number."""
        found, rows = set[int](), self._nodes.open_rows(self._mine)
        for number, witness in enumerate(verdicts.witnesses if rows else ()):
            table = witness.applied_to(log.numbers)
            for row in rows:
                total = sum(a * table[self._position[c]] for c, a in row.terms)
                if total in row.excluded:
                    found.add(number)
        return found
