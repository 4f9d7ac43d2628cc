"""Second tables: the proof, for everybody who is not exposed, that another value is possible.

`Possible` judges a table, `SecondSearch` looks for tables, and `second_tables` runs the search for
everybody.

Guarantee  Each table keeps the types, the bounds and every published number, checked in exact
           arithmetic on its values alone. Somebody is covered when a table differs in each of
           their secrets from the first one, which is the custodian's own wherever the published
           numbers are; `narrow` are those whom no table moves by the protection width.
Secrecy    A second table is not the true one, and yet equal to it in many places: whoever is
           exposed has the true value in it. It is for the custodian alone.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from casemate.audit.case import Case
from casemate.audit.checks.ranges import decidable, decide_part, kinds, whole_solution
from casemate.audit.order.audit import Node, Ordered, OrderLog
from casemate.audit.order.case import Witness
from casemate.audit.order.decide import audit_order
from casemate.audit.region.second import Change, hold
from casemate.audit.result import Exposed
from casemate.audit.time_limit import Clock
from casemate.exact import LinearProgram, Region, Scaled, Status, within
from casemate.published import column_values, exact
from casemate.query.language import Scalar
from casemate.query.records import Cut, Unknown

MAX_ORDER_NODES = 1_000
"""Secrets of one number up to which tables that move them far are looked for one by one."""

Secret = tuple[int, str]
"""A record's position and a private column."""

Value = Scalar | Fraction
Values = Mapping[Secret, Value]
"""A table, as far as it is secret and anything was published about it."""


@dataclass(frozen=True, eq=False, repr=False)
class Possible:
    """Which tables are possible: the same types, bounds and answers to everything published.

    A table is judged by its values alone, record by record, so that one that was read from a file
    is judged like any other: each secret follows from the value, each equation from the secrets,
    and each extreme or median from the values of its records.
    """

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
            for place in log.asked_positions() - self.tied[name]
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
        return value if value is None or self.case.declared_values(name) else exact(value)

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
            and all(self._is_allowed(secret, value) for secret, value in values.items())
            and self._equations_hold(self.numbers(values))
            and all(self._order_holds(name, log, values) for name, log in self.logs.items())
        )

    def _is_allowed(self, secret: Secret, value: Value) -> bool:
        """Whether a category has a declared value, and a number is one, or may be missing."""
        declared = self.case.declared_values(secret[1])
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
            low_is_open, high_is_open = equations.open_ends[row]
            if low_is_open and total == equations.low[row]:
                return False
            if high_is_open and total == equations.high[row]:
                return False
        return True

    def _order_holds(self, name: str, log: OrderLog, values: Values) -> bool:
        """Whether extremes and medians are as published, and bounds and types are kept."""
        table = np.array(log.truth, object)
        asked = log.asked_positions() - self.tied[name]
        for place in asked:
            value = values[place, name]
            table[place] = None if value is None else Fraction(value)  # type: ignore[arg-type]  # a number
        for place, node in log.extras.items():
            table[place] = node.unknown.of(values[self.owner(node)])  # type: ignore[arg-type]  # a fraction is a number
        owners = self.case.equations.people.owners(name)
        if owners is not None:
            for place in self.tied[name]:
                table[place] = table[int(owners[place])]
        domain = log.domain
        there = [p for p in asked if table[p] is not None]
        bounded = all(within(table[p], domain.low[p], domain.high[p]) for p in there)  # type: ignore[arg-type]  # integers are fractions
        whole = not domain.integer or all(table[p].denominator == 1 for p in there)
        return bounded and whole and all(question.holds(table) for question in log.questions)


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


# Search: from changes of columns, and of values, to whole tables --------------------------------


Moved = dict[Secret, Value]
"""What a second table changes."""


def base_of(possible: Possible, clock: Clock) -> Values | None:
    """The custodian's own table, or where the published numbers are others, one that gives them."""
    if possible.holds(possible.truth):
        return possible.truth
    numbers = None if possible.logs else _some_solution(possible.case.region, clock)
    if numbers is None:
        return None
    moved = _changed_values(possible, possible.truth, dict(enumerate(numbers)))
    table = None if moved is None else {**possible.truth, **moved}
    return table if table is not None and possible.holds(table) else None


def _some_solution(region: Region, clock: Clock) -> list[Fraction] | None:
    seconds = max(0.0, clock.seconds_left)
    if decidable(region):
        try:
            found = whole_solution(region, seconds, stop=clock.limit.stop)
        except TimeoutError:
            return None
        return found
    scaled = Scaled.of(region.within(region.box.inward()))
    status, vertex = LinearProgram(scaled).minimise(np.zeros(scaled.columns))
    point = vertex.exact_point() if status is Status.OPTIMAL else None
    return None if point is None else [scaled.to_region_unit(value) for value in point]


def _changed_values(possible: Possible, base: Values, change: Change) -> Moved | None:
    """The values that a change of columns leads to; None if no value has such columns."""
    case, moved = possible.case, Moved()
    numbers = possible.numbers(base)
    owner = case.equations.record.tolist()
    for secret in dict.fromkeys((owner[c], case.secret(c)) for c in change):
        columns = possible.columns[secret]
        unknowns = [(case.unknown(c), change.get(c, numbers[c])) for c in columns]
        declared = case.declared_values(secret[1])
        fits, value = value_of(unknowns, candidates(unknowns, base[secret], declared))
        if not fits:
            return None
        if value != base[secret]:
            moved[secret] = value
    return moved


class SecondSearch:
    """The tables found so far, and which secrets are still equal in all of them."""

    def __init__(
        self,
        possible: Possible,
        base: Values,
        wanted: Sequence[Secret],
        width: Callable[[Secret], Fraction],
        frozen: Iterable[int] = (),
    ) -> None:
        self._possible, self._base, self._wanted, self._width = possible, base, wanted, width
        self._numbers = numbers = possible.numbers(base)
        self._decided_by_order = {c: numbers[c] for c in frozen if c < len(numbers)}
        self._wanted_set = set(wanted)
        self._changes: list[Moved] = []
        self._moved: set[Secret] = set()
        self._far: set[Secret] = set()

    def take_columns(self, changes: Iterable[Change]) -> None:
        """Take changes of columns that keep the equations, where they keep all else too."""
        for change in changes:
            self._take(_changed_values(self._possible, self._base, change) or {})

    def take_order(self, ordered: Ordered, clock: Clock) -> None:
        """Take the second tables by which extremes and medians were shown to leave room.

        They move records by anything; tables that move them by their widths are looked for.
        """
        log, number = ordered.log, Unknown(ordered.column)
        nodes = {place: Node(place, number, None) for place in log.asked_positions() - ordered.tied}
        nodes |= log.extras
        self._take_witnesses(nodes, ordered.witnesses)
        widths = [Fraction(0)] * len(log.truth)
        for place, node in nodes.items():
            secret = self._possible.owner(node)
            if node.unknown.category is None and secret in self._wanted_set - self._far:
                widths[place] = self._width(secret)
        short = None not in log.truth and len(nodes) < MAX_ORDER_NODES
        if any(widths) and short and not clock.over:
            found = audit_order(log.questions, log.domain, log.numbers, widths, clock.left)
            self._take_witnesses(nodes, found.witnesses)

    def _take_witnesses(self, nodes: Mapping[int, Node], witnesses: Iterable[Witness]) -> None:
        """Take second tables of positions that stand for nodes."""
        for witness in witnesses:
            parts: dict[Secret, dict[Unknown, Fraction]] = {}
            for place, value in zip(witness.positions.tolist(), witness.values, strict=True):
                node = nodes.get(place)
                if node is not None:
                    secret = self._possible.owner(node)
                    parts.setdefault(secret, {})[node.unknown] = Fraction(value or 0)
                    if value is None:
                        parts[secret][Unknown(node.unknown.column, Cut(None))] = Fraction(0)
            moved = {secret: self._value(secret, amounts) for secret, amounts in parts.items()}
            if all(fits for fits, _ in moved.values()):
                self._take({s: v for s, (_, v) in moved.items() if v != self._base[s]})

    def _value(self, secret: Secret, amounts: dict[Unknown, Fraction]) -> tuple[bool, Value]:
        """The value of a secret some of whose unknowns have changed, and whether there is one."""
        case, base = self._possible.case, self._base[secret]
        for column in self._possible.columns.get(secret, []):
            unknown = case.unknown(column)
            amounts.setdefault(unknown, self._numbers[column])
        listed = list(amounts.items())
        return value_of(listed, candidates(listed, base, case.declared_values(secret[1])))

    def _take(self, moved: Moved) -> None:
        """Keep a change that shows something new and leads to a possible table."""
        if not moved:
            return
        far = {s for s, v in moved.items() if distance(v, self._base[s]) >= self._width(s)}
        news = (moved.keys() - self._moved) | (far - self._far)
        if news & self._wanted_set and self._possible.holds({**self._base, **moved}):
            self._changes.append(moved)
            self._moved |= moved.keys()
            self._far |= far

    def take_unseen(self) -> None:
        """Change categories to values that nothing published tells from their own, all at once."""
        case, moved = self._possible.case, Moved()
        for secret in self._wanted:
            columns = self._possible.columns.get(secret, [])
            unknowns = [(case.unknown(column), self._numbers[column]) for column in columns]
            others = [v for v in case.declared_values(secret[1]) if v != self._base[secret]]
            fits, value = value_of(unknowns, others)
            moved |= {secret: value} if fits else {}
        self._take(moved)

    def look(self, clock: Clock) -> None:
        """Look for changes of columns: by the protection width first, then by anything."""
        for least, share in ((False, 0.5), (True, 1.0)):
            done = self._moved if least else self._far
            open_secrets = {
                s for s in self._wanted if s not in done and s in self._possible.columns
            }
            if open_secrets and not clock.over:
                self._look(open_secrets, least, clock.within(clock.seconds_left * share))

    def _look(self, open_secrets: set[Secret], least: bool, clock: Clock) -> None:
        region = self._possible.case.region
        region = region.within(hold(region.box, self._decided_by_order))
        asked = np.zeros(len(region.box), np.bool_)
        asked[[column for secret in open_secrets for column in self._columns_to_move(secret)]] = (
            True
        )
        shares = kinds(region, [asked])
        for columns in shares:
            width = {column: self._column_width(column, least) for column in columns.tolist()}
            share = clock.within(clock.limit.seconds / len(shares))
            found = decide_part(region, columns, self._numbers, asked, width, clock=share)
            self.take_columns(found.changes)

    def _columns_to_move(self, secret: Secret) -> list[int]:
        """The columns of which one must move: those of a category, or the number itself."""
        case = self._possible.case
        columns = self._possible.columns[secret]
        return (
            columns
            if case.declared_values(secret[1])
            else [c for c in columns if case.is_number(c)]
        )

    def _column_width(self, column: int, least: bool) -> Fraction:
        case = self._possible.case
        if case.region.box.integer[column] or not case.is_number(column):
            grain = Fraction(1)
        else:
            grain = Fraction(1, self._numbers[column].denominator)
        secret = int(case.equations.record[column]), case.secret(column)
        if least or not case.is_number(column):
            return grain
        wide = self._width(secret)
        return max(grain, Fraction(math.ceil(wide)) if grain == 1 else wide)

    def tables(self) -> tuple[Values, ...]:
        """Changes that meet in no equation and no question share a table."""
        merged: list[tuple[Moved, set[object]]] = []
        touching = _Touching(self._possible)
        for moved in self._changes:
            about = touching.all(moved)
            for together, seen in merged:
                if seen.isdisjoint(about):
                    together.update(moved)
                    seen.update(about)
                    break
            else:
                merged.append((dict(moved), about))
        tables = [{**self._base, **moved} for moved, _ in merged]
        return tuple(table for table in tables if self._possible.holds(table))


class _Touching:
    """The equations and questions that a secret is about."""

    def __init__(self, possible: Possible) -> None:
        self._possible = possible
        self._asked: dict[Secret, list[tuple[str, int]]] = {}
        for name, log in possible.logs.items():
            for number, question in enumerate(log.questions):
                for place in question.members.tolist():
                    node = log.extras.get(place)
                    secret = (place, name) if node is None else possible.owner(node)
                    self._asked.setdefault(secret, []).append((name, number))
        system = possible.case.region.system
        order = np.argsort(system.column, kind="stable")
        self._row = system.row[order]
        self._start = np.searchsorted(system.column[order], np.arange(system.columns + 1))

    def all(self, moved: Moved) -> set[object]:
        """What is about any of these secrets."""
        found: set[object] = set()
        for secret in moved:
            found.update(self._asked.get(secret, ()))
            for c in self._possible.columns.get(secret, []):
                found.update(self._row[self._start[c] : self._start[c + 1]].tolist())
        return found


# Second tables, and whom they cover -------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SecondTables:
    """Possible tables that together differ in everybody covered.

    `uncovered` are records for which no second table was found within the limit, or none exists.
    """

    tables: tuple[Values, ...]
    covered: int
    narrow: tuple[Scalar, ...]
    uncovered: tuple[Scalar, ...]
    possible: Possible
    wanted: tuple[Secret, ...]
    width: Callable[[Secret], Fraction]
    file: Path | None = None

    def __repr__(self) -> str:
        """How many there are; never what is in them."""
        return f"<SecondTables: {len(self.tables)} tables that cover {self.covered} records>"

    @property
    def shown(self) -> set[Scalar]:
        """The records that the tables cover."""
        record = self.possible.case.equations.people.record
        return {record(place) for place, _ in self.wanted} - set(self.uncovered)

    def check(self) -> bool:
        """Whether every table is possible, and they cover whom they are said to cover."""
        if not all(self.possible.holds(table) for table in self.tables):
            return False
        found = coverage(self.possible, self.tables, self.wanted, self.width)
        return (self.covered, self.narrow, self.uncovered) == found


def second_tables(
    possible: Possible,
    exposed: Iterable[Exposed],
    ordered: Sequence[Ordered],
    changes: Iterable[Change],
    *,
    protect: Fraction,
    clock: Clock,
) -> SecondTables:
    """Find second tables for everybody who is not exposed; `changes` are known to lead to some."""
    wanted = tuple(wanted_secrets(possible, exposed))
    width = _widths(possible, protect)
    base = base_of(possible, clock)
    tables: tuple[Values, ...] = ()
    if base is not None and wanted:
        decided = {column for each in ordered for column in each.covered}
        search = SecondSearch(possible, base, wanted, width, decided)
        search.take_unseen()
        search.take_columns(changes)
        for each in ordered:
            search.take_order(each, clock)
        search.look(clock)
        tables = search.tables()
        if base != possible.truth:
            tables = (base, *tables)
    found = coverage(possible, tables, wanted, width)
    return SecondTables(tables, *found, possible, wanted, width)


def wanted_secrets(possible: Possible, exposed: Iterable[Exposed]) -> Iterable[Secret]:
    """Everything that was asked about, is not exposed and was not known before."""
    record = possible.case.equations.people.record
    exposed_values = {(each.record, each.column) for each in exposed}
    for place, name in possible.secrets:
        if (record(place), name) not in exposed_values and not _was_known(possible, (place, name)):
            yield place, name


def _was_known(possible: Possible, secret: Secret) -> bool:
    columns, (place, name) = possible.columns.get(secret, []), secret
    if any(possible.case.is_number(c) and possible.case.is_known_beforehand(c) for c in columns):
        return True
    log = possible.logs.get(name)
    low = None if log is None or columns else log.domain.low[place]
    return log is not None and low is not None and low == log.domain.high[place]


def _widths(possible: Possible, protect: Fraction) -> Callable[[Secret], Fraction]:
    """By how much a secret must differ: a share of the true number; a category by being another."""

    def width(secret: Secret) -> Fraction:
        true = possible.truth[secret]
        if possible.case.declared_values(secret[1]) or isinstance(true, str | None):
            return Fraction(1)
        return protect * abs(Fraction(true))  # type: ignore[arg-type]  # a number

    return width


def distance(one: Value, other: Value) -> Fraction:
    """How far two values are apart; 1 where they are not numbers and differ."""
    numbers = [each for each in (one, other) if isinstance(each, int | Fraction)]
    if len(numbers) == 2 and not any(isinstance(each, bool) for each in (one, other)):
        return abs(Fraction(numbers[0]) - Fraction(numbers[1]))
    return Fraction(one != other)


def coverage(
    possible: Possible,
    tables: Sequence[Values],
    wanted: Sequence[Secret],
    width: Callable[[Secret], Fraction],
) -> tuple[int, tuple[Scalar, ...], tuple[Scalar, ...]]:
    """How many records some table differs in, those only by less than their width, the others."""
    record = possible.case.equations.people.record
    first = tables[0] if tables and not possible.holds(possible.truth) else possible.truth
    open_, narrow, places = set[int](), set[int](), {place for place, _ in wanted}
    for secret in wanted:
        apart = max(
            (distance(table[secret], first[secret]) for table in tables), default=Fraction(0)
        )
        if not apart:
            open_.add(secret[0])
        elif apart < width(secret):
            narrow.add(secret[0])
    return (
        len(places - open_),
        tuple(record(place) for place in sorted(narrow - open_)),
        tuple(record(place) for place in sorted(open_)),
    )
