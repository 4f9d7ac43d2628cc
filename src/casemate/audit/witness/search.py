"""The search for second tables: from changes of columns, and of values, to whole tables."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from casemate.audit.checks.ranges import kinds
from casemate.audit.checks.whole import decidable, decide, whole_solution
from casemate.audit.order.audit import Ordered
from casemate.audit.order.case import Witness
from casemate.audit.order.decide import audit_order
from casemate.audit.order.nodes import Node
from casemate.audit.region.second import Change, RegionSolution, part
from casemate.audit.time_limit import Clock
from casemate.audit.witness.possible import Possible, Secret, Value, Values, candidates, value_of
from casemate.exact import Box, LinearProgram, Region, Scaled, Status
from casemate.query.records import Unknown

Moved = dict[Secret, Value]
"""What a second table changes."""


def base_of(possible: Possible, clock: Clock) -> Values | None:
    """The custodian's own table, or where the published numbers are others, one that gives them."""
    if possible.holds(possible.truth):
        return possible.truth
    numbers = None if possible.logs else _some_solution(possible.case.region, clock)
    if numbers is None:
        return None
    moved = _moved(possible, possible.truth, dict(enumerate(numbers)))
    table = None if moved is None else {**possible.truth, **moved}
    return table if table is not None and possible.holds(table) else None


def _some_solution(region: Region, clock: Clock) -> list[Fraction] | None:
    left = max(0.0, clock.seconds_left)
    if decidable(region):
        try:
            found = whole_solution(region, left)
        except TimeoutError:
            return None
        return None if found is None else [Fraction(each) for each in found]
    scaled = Scaled.of(region.within(region.box.inward()))
    status, vertex = LinearProgram(scaled).minimise(np.zeros(scaled.columns))
    point = vertex.exact_point() if status is Status.OPTIMAL else None
    return None if point is None else [scaled.restored(value) for value in point]


def _moved(possible: Possible, base: Values, change: Change) -> Moved | None:
    """The values that a change of columns leads to; None if no value has such columns."""
    case, moved = possible.case, Moved()
    numbers = possible.numbers(base)
    owner = case.equations.record.tolist()
    for secret in dict.fromkeys((owner[c], case.secret(c)) for c in change):
        columns = possible.columns[secret]
        unknowns = [(case.unknown(c), change.get(c, numbers[c])) for c in columns]
        declared = case.declared(secret[1])
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
        self._frozen_columns = [c for c in frozen if c < possible.case.equations.system.columns]
        self._numbers = possible.numbers(base)
        self._wanted_set = set(wanted)
        self._changes: list[Moved] = []
        self._moved: set[Secret] = set()
        self._far: set[Secret] = set()

    def take_columns(self, changes: Iterable[Change]) -> None:
        """Take changes of columns that keep the equations, where they keep all else too."""
        for change in changes:
            self._take(_moved(self._possible, self._base, change) or {})

    def take_order(self, ordered: Ordered, clock: Clock) -> None:
        """Take the second tables by which extremes and medians were shown to leave room.

        They move records by anything; tables that move them by their widths are looked for.
        """
        log, number = ordered.log, Unknown(ordered.column)
        nodes = {place: Node(place, number, None) for place in log.asked() - ordered.tied}
        nodes |= log.extras
        self._take_witnesses(nodes, ordered.witnesses)
        widths = [Fraction(0)] * len(log.truth)
        for place, node in nodes.items():
            secret = self._possible.owner(node)
            if node.unknown.category is None and secret in self._wanted_set - self._far:
                widths[place] = self._width(secret)
        if any(widths) and not clock.over:
            found = audit_order(log.questions, log.domain, log.truth, widths, clock.left)
            self._take_witnesses(nodes, found.witnesses)

    def _take_witnesses(self, nodes: Mapping[int, Node], witnesses: Iterable[Witness]) -> None:
        """Take second tables of positions that stand for nodes."""
        for witness in witnesses:
            parts: dict[Secret, dict[Unknown, Fraction]] = {}
            for place, value in zip(witness.positions.tolist(), witness.values, strict=True):
                node = nodes.get(place)
                if node is not None:
                    secret = self._possible.owner(node)
                    parts.setdefault(secret, {})[node.unknown] = Fraction(value)
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
        return value_of(listed, candidates(listed, base, case.declared(secret[1])))

    def _take(self, moved: Moved) -> None:
        """Keep a change that shows something new and leads to a possible table."""
        if not moved:
            return
        far = {s for s, v in moved.items() if self._apart(s, v) >= self._width(s)}
        news = (moved.keys() - self._moved) | (far - self._far)
        if news & self._wanted_set and self._possible.holds({**self._base, **moved}):
            self._changes.append(moved)
            self._moved |= moved.keys()
            self._far |= far

    def _apart(self, secret: Secret, value: Value) -> Fraction:
        if self._possible.case.declared(secret[1]) or value is None or self._base[secret] is None:
            return Fraction(1)
        return abs(Fraction(value) - Fraction(self._base[secret]))  # type: ignore[arg-type]  # numbers

    def take_unseen(self) -> None:
        """Change categories to values that nothing published tells from their own, all at once."""
        case, moved = self._possible.case, Moved()
        for secret in self._wanted:
            columns = self._possible.columns.get(secret, [])
            unknowns = [(case.unknown(column), self._numbers[column]) for column in columns]
            others = [v for v in case.declared(secret[1]) if v != self._base[secret]]
            fits, value = value_of(unknowns, others)
            moved |= {secret: value} if fits else {}
        self._take(moved)

    def look(self, clock: Clock) -> None:
        """Look for changes of columns: by the protection width first, then by anything."""
        for least, share in ((False, 0.5), (True, 1.0)):
            done = self._moved if least else self._far
            left = {s for s in self._wanted if s not in done and s in self._possible.columns}
            if left and not clock.over:
                self._look(left, least, clock.seconds_left * share)

    def _look(self, left: set[Secret], least: bool, seconds: float) -> None:
        case = self._possible.case
        region = case.region.within(self._frozen())
        columns = {c for secret in left for c in self._asked(secret)}
        mark = np.array([c in columns for c in range(len(region.box))], np.bool_)
        shares = kinds(region, [mark])
        for chosen in shares:
            smaller = part(region, chosen)
            names = chosen.tolist()
            known = RegionSolution(smaller, [self._numbers[c] for c in names])
            widths = [self._column_width(c, least) for c in names]
            asked = [i for i, c in enumerate(names) if c in columns]
            found = decide(known, asked, widths, seconds / len(shares))
            self.take_columns({names[i]: v for i, v in each.items()} for each in found.changes)

    def _asked(self, secret: Secret) -> list[int]:
        """The columns of which one must move: those of a category, or the number itself."""
        case = self._possible.case
        columns = self._possible.columns[secret]
        return columns if case.declared(secret[1]) else [c for c in columns if case.is_number(c)]

    def _column_width(self, column: int, least: bool) -> Fraction:
        case = self._possible.case
        if case.region.box.integer[column] or not case.is_number(column):
            known = Fraction(1)
        else:
            known = Fraction(1, self._numbers[column].denominator)
        secret = int(case.equations.record[column]), case.secret(column)
        if least or not case.is_number(column):
            return known
        wide = self._width(secret)
        return max(known, Fraction(math.ceil(wide)) if known == 1 else wide)

    def _frozen(self) -> Box:
        """The box, with everything that extremes and medians decide held where it is."""
        box = self._possible.case.region.box
        low, high = list(box.low), list(box.high)
        for column in self._frozen_columns:
            low[column] = high[column] = self._numbers[column]
        return Box(tuple(low), tuple(high), box.integer)

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
