"""Whole numbers in a short range: how many units of a class have each value, searched by CP-SAT.

Every fact is linear in these counts but an even median, which is a choice among pairs of values.
So the search decides everybody; that it found no other table is the only proof then, and the
least set of statements for which it finds none is named.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from casemate.audit.classes.certificate import ClassProof, Searched
from casemate.audit.classes.changes import ClassChange, FactCheck
from casemate.audit.classes.partition import ClassOrder, ClassRow
from casemate.audit.classes.propagation import Propagation
from casemate.audit.classes.search import ClassStanding, Decisions
from casemate.audit.order.solver import settle
from casemate.audit.time_limit import CP_SAT_LARGEST_VALUE, Clock

MAX_COUNTS = 5_000
"""Counts of values, of all classes together, up to which they are searched."""

MAX_STATEMENTS_LEFT_OUT = 20
"""Statements that are left out one by one to find the least set behind a search."""

SECONDS_FOR_ONE_SET = 2.0
"""The longest that one search for a smaller set of statements may take."""

Cells = tuple[Sequence[ClassRow], Sequence[ClassOrder]]


class ValueCounts:
    """The model: column (c, v) is how many units of class c have the value v, None for missing."""

    def __init__(self, ranges: Propagation, cells: Cells) -> None:
        self.classes, self._facts = ranges.classes, ranges.classes.facts
        self.model = cp_model.CpModel()
        self.counts: list[dict[int | None, cp_model.IntVar]] = []
        for which in range(len(self.classes)):
            self.counts.append(self._of_class(ranges, which))
        rows, orders = cells
        for row in rows:
            self._linear(row)
        for each in orders:
            self._order(each)

    def _of_class(self, ranges: Propagation, which: int) -> dict[int | None, cp_model.IntVar]:
        size = int(self.classes.size[which])
        low, high = prior_values(ranges, which)
        values: list[int | None] = list(range(low, high + 1))
        values += [None] if self.classes.may_miss[which] else []
        found = {value: self.model.new_int_var(0, size, "") for value in values}
        self.model.add(sum(found.values()) == size)
        for value, count in self._true_counts(which).items():
            self.model.add_hint(found[value], count)
        return found

    def _true_counts(self, which: int) -> dict[int | None, int]:
        found: dict[int | None, int] = {}
        for unit in self.classes.members(which).tolist():
            value = self._facts.value(unit)
            key = None if value is None else int(value)
            found[key] = found.get(key, 0) + 1
        return found

    def _linear(self, row: ClassRow) -> None:
        terms = []
        for place, which in enumerate(row.classes.tolist()):
            for value, count in self._there(which).items():
                past = sum(
                    factors[place] for cut, factors in row.past if cut.holds(Fraction(value))
                )
                terms.append((row.alpha[place] * value + row.beta[place] + past) * count)
        fact, total = row.fact, sum(terms)
        if fact.low is not None:
            first = math.floor(fact.low) + 1 if fact.open_ends[0] else math.ceil(fact.low)
            self.model.add(total >= first)
        if fact.high is not None:
            last = math.ceil(fact.high) - 1 if fact.open_ends[1] else math.floor(fact.high)
            self.model.add(total <= last)

    def _there(self, which: int) -> dict[int, cp_model.IntVar]:
        return {value: count for value, count in self.counts[which].items() if value is not None}

    def _weighted(self, each: ClassOrder) -> Iterator[tuple[int, int, cp_model.IntVar]]:
        for which, times in zip(each.classes.tolist(), each.times.tolist(), strict=True):
            for value, count in self._there(which).items():
                yield value, times, count

    def _order(self, each: ClassOrder) -> None:
        fact, entries = each.fact, list(self._weighted(each))
        if fact.kind == "median":
            self._median(each, entries)
            return
        beyond = [
            c for v, _, c in entries if (v > fact.high if fact.kind == "max" else v < fact.low)
        ]
        self.model.add(sum(beyond) == 0)
        attaining = [c for v, _, c in entries if fact.low <= v <= fact.high]
        self.model.add(sum(attaining) >= 1)

    def _median(self, each: ClassOrder, entries: list[tuple[int, int, cp_model.IntVar]]) -> None:
        """One pair of values in the middle is chosen; the two may be the same."""
        values = sorted({value for value, _, _ in entries})
        chosen = []
        for place, lower in enumerate(values):
            for upper in values[place:]:
                if each.fact.low <= Fraction(lower + upper, 2) <= each.fact.high:
                    chosen.append(self._middle(entries, lower, upper))
        self.model.add_bool_or(chosen)

    def _middle(
        self, entries: list[tuple[int, int, cp_model.IntVar]], lower: int, upper: int
    ) -> cp_model.IntVar:
        """A literal that is true only if these are the values in the middle."""
        literal = self.model.new_bool_var("")
        at_most = sum(times * c for v, times, c in entries if v <= lower)
        at_least = sum(times * c for v, times, c in entries if v >= upper)
        if lower < upper:
            between = [c for v, _, c in entries if lower < v < upper]
            self.model.add(sum(between) == 0).only_enforce_if(literal)
            self.model.add(at_most == at_least).only_enforce_if(literal)
            for end in (lower, upper):
                at_end = sum(c for v, _, c in entries if v == end)
                self.model.add(at_end >= 1).only_enforce_if(literal)
        else:
            below = sum(times * c for v, times, c in entries if v < lower)
            above = sum(times * c for v, times, c in entries if v > upper)
            self.model.add(below < at_least).only_enforce_if(literal)
            self.model.add(above < at_most).only_enforce_if(literal)
        return literal

    def moved(self, which: int) -> cp_model.IntVar:
        """A literal that is true only where not all units of a class are as in the truth."""
        value = self.classes.value(which)
        own = self.counts[which][None if value is None else int(value)]
        literal = self.model.new_bool_var("")
        self.model.add(own <= int(self.classes.size[which]) - 1).only_enforce_if(literal)
        self.model.add_hint(literal, False)
        return literal

    def change(self, solver: cp_model.CpSolver) -> ClassChange:
        """The units whose values a solution changes."""
        found: dict[int, Fraction | None] = {}
        for which, counts in enumerate(self.counts):
            wanted = {value: solver.value(count) for value, count in counts.items()}
            members = self.classes.members(which).tolist()
            found |= _rearranged(members, [self._facts.value(unit) for unit in members], wanted)
        return ClassChange.of(found, self._facts.scale)


def _rearranged(
    members: list[int], own: list[Fraction | None], wanted: dict[int | None, int]
) -> dict[int, Fraction | None]:
    """Units that keep their value as long as it is wanted, and others for those that are not."""
    left, without = dict(wanted), []
    for unit, value in zip(members, own, strict=True):
        key = None if value is None else int(value)
        if left.get(key, 0):
            left[key] -= 1
        else:
            without.append(unit)
    others = [value for value, count in left.items() for _ in range(count)]
    pairs = zip(without, others, strict=True)
    return {unit: None if value is None else Fraction(value) for unit, value in pairs}


def prior_values(ranges: Propagation, which: int) -> tuple[int, int]:
    """The least and the greatest whole number that was possible beforehand."""
    prior = ranges.classes.priors[which]
    if prior.low is None or prior.high is None:
        raise ValueError("values are counted only between bounds")
    return math.ceil(prior.low), math.floor(prior.high)


def can_be_counted(ranges: Propagation) -> bool:
    """Whether all are whole numbers between bounds, and there are few enough values."""
    facts, classes = ranges.classes.facts, ranges.classes
    used = [facts.priors[which] for which in np.unique(facts.prior[facts.asked]).tolist()]
    if not all(each.whole and None not in (each.low, each.high) for each in used):
        return False
    ends = [abs(end) for each in used for end in (each.low, each.high) if end is not None]
    ends += [abs(e) for fact in facts.equations for e in (fact.low, fact.high) if e is not None]
    sizes = [a for row in classes.equations for a in (*row.alpha, *row.beta)]
    sizes += [a for row in classes.compared for _, factors in row.past for a in factors]
    if max(map(abs, (*ends, *sizes)), default=0) > CP_SAT_LARGEST_VALUE:
        return False
    spans = (prior_values(ranges, which) for which in range(len(classes)))
    return sum(high - low + 2 for low, high in spans) <= MAX_COUNTS


@dataclass(frozen=True, eq=False)
class CountSearch:
    """Decides the classes that are open by the counts of values."""

    decisions: Decisions
    ranges: Propagation
    check: FactCheck
    clock: Clock

    def run(self) -> list[ClassProof]:
        """Free or expose whoever is open; the proofs name the statements that are needed."""
        classes = self.ranges.classes
        counts = ValueCounts(self.ranges, (classes.equations, classes.orders))
        moved = {which: counts.moved(which) for which in self.decisions.open.tolist()}
        asked = np.array(list(moved), np.int64)

        def accept(solver: cp_model.CpSolver) -> NDArray[np.bool_]:
            change = counts.change(solver)
            if not self.check.keeps(change):
                raise ArithmeticError("CP-SAT returned counts that break a fact")
            self.decisions.free(change)
            return np.asarray(self.decisions.standing[asked] != ClassStanding.OPEN)

        settled = settle(counts.model, moved, accept, self.clock)
        return [self._proof(which) for which in settled.unmovable.tolist()]

    def _proof(self, which: int) -> ClassProof:
        classes = self.ranges.classes
        value = classes.value(which)
        standing = ClassStanding.MISSING if value is None else ClassStanding.EXPOSED
        self.decisions.standing[which] = standing
        queries = self._least_set(which)
        linear = tuple(n for n, r in enumerate(classes.equations) if r.fact.place.query in queries)
        order = tuple(n for n, e in enumerate(classes.orders) if e.fact.place.query in queries)
        units = tuple(classes.members(which).tolist())
        return ClassProof(units, value, (Searched(linear, order),))

    def _least_set(self, which: int) -> set[int]:
        """Statements without any one of which the search does find another table."""
        classes = self.ranges.classes
        queries = {each.fact.place.query for each in classes.equations}
        queries |= {each.fact.place.query for each in classes.orders}
        if len(queries) > MAX_STATEMENTS_LEFT_OUT:
            return queries
        for query in sorted(queries):
            if not self.clock.over and self._stays(which, queries - {query}):
                queries = queries - {query}
        return queries

    def _stays(self, which: int, queries: Collection[int]) -> bool:
        """Whether a class is the same in every table that gives these statements' answers."""
        classes = self.ranges.classes
        rows = [row for row in classes.equations if row.fact.place.query in queries]
        orders = [each for each in classes.orders if each.fact.place.query in queries]
        counts = ValueCounts(self.ranges, (rows, orders))
        counts.model.add_bool_or([counts.moved(which)])
        solver = self.clock.solver(SECONDS_FOR_ONE_SET)
        status = solver.solve(counts.model)
        self.clock.spent(solver)
        return bool(status == cp_model.INFEASIBLE)
