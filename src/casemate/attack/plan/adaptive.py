"""Plans that look at each answer before they ask on, and stop as soon as everything is known.

Guarantee  The result is right as long as answers are exact and the values keep to the column's
           declared bounds. Never more queries than the plan that does not look, plus one.
Method     Where a public column tells all records apart and the bounds are known, sets are halved
           (`HalvingRun`). Elsewhere the queries of the fixed plan are asked in turn
           (`FixedPlanRun`); one whose answer follows from what is settled is passed over, and a set
           whose sum is at an end of what is possible settles everybody in it.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.detecting_matrix import DetectingMatrix, sums_needed
from casemate.attack.plan.plan import Planner
from casemate.attack.plan.result import Answer, DeterminedRecord, Planned
from casemate.attack.plan.setting import Chosen, PlanSetting, Subsets
from casemate.errors import Misconfigured
from casemate.query.language import Scalar


class Oracle(Protocol):
    """Answers one query at a time: a database, a dashboard, somebody on the telephone."""

    def ask(self, sql: str) -> Answer:
        """The number that a query shows; None is NULL."""


@dataclass
class CountedOracle:
    """Questions put to an oracle, each once, with their answers."""

    oracle: Oracle
    answers: dict[str, Fraction] = field(default_factory=dict)

    def ask(self, sql: str) -> Fraction:
        """The answer to a query; NULL, the sum of nothing, is 0."""
        if sql not in self.answers:
            self.answers[sql] = Fraction(self.oracle.ask(sql) or 0)
        return self.answers[sql]


# A fixed plan asked in turn, without queries whose answers follow from others -------------------


Ends = tuple[Fraction, Fraction]


@dataclass
class _AskedQuery:
    """A query that was asked: whom it is about and is not settled yet, and their sum."""

    value: int
    unsettled: NDArray[np.bool_]
    total: Fraction


class FixedPlanRun:
    """A run of a fixed plan; what a value may be lies between its ends, if they are known."""

    def __init__(self, setting: PlanSetting, plan: Planned, asking: CountedOracle) -> None:
        self._setting, self._plan, self._asking = setting, plan, asking
        self._reading = setting.read(plan.queries)
        self._kinds = len(setting.secret.asked)
        count = setting.language.count
        self._settled = [np.zeros(count, np.bool_) for _ in range(self._kinds)]
        self._values = [np.full(count, Fraction(0), object) for _ in range(self._kinds)]
        self._open: list[_AskedQuery] = []

    def run(self) -> dict[int, Fraction]:
        """The number that stands for the value of each record that the plan is for."""
        answers: dict[int, Fraction] = {}
        for query in self._order:
            if self._is_known:
                break
            answers[query] = self._answer(query)
        return {place: self._value(place, each, answers) for place, each in self._wanted.items()}

    @cached_property
    def _wanted(self) -> dict[int, DeterminedRecord]:
        if not self._plan.combination:
            return {self._setting.place(each.record): each for each in self._plan.determined}
        whole = DeterminedRecord(self._plan.target, dict(enumerate(self._plan.combination)))
        return {self._setting.place(self._plan.target): whole}

    @cached_property
    def _order(self) -> list[int]:
        """The queries about one wanted record first, small ones before large ones."""
        numbers = range(len(self._plan.queries))
        if not self._plan.combination:
            return list(numbers)
        (place,) = self._wanted
        counts = self._plan.counts
        return sorted(numbers, key=lambda q: (not self._reading.selection(q)[place], counts[q]))

    @cached_property
    def _ends(self) -> Ends | None:
        if self._setting.secret.values is not None:
            return Fraction(0), Fraction(1)
        return self._setting.secret.bounds

    @property
    def _is_known(self) -> bool:
        places = list(self._wanted)
        return all(settled[places].all() for settled in self._settled)

    def _answer(self, query: int) -> Fraction:
        """What a query shows: from what is settled, or else from the oracle."""
        value, chosen = query % self._kinds, self._reading.selection(query)
        unsettled = chosen & ~self._settled[value]
        settled_sum = sum(self._values[value][chosen & ~unsettled].tolist(), Fraction(0))
        if not unsettled.any():
            return settled_sum
        total = self._asking.ask(self._plan.queries[query])
        self._open.append(_AskedQuery(value, unsettled, total - settled_sum))
        self._settle()
        return total

    def _settle(self) -> None:
        """Settle everybody in sets whose sum is at an end, until nothing changes."""
        changed = self._ends is not None
        while changed:
            changed = False
            for asked in self._open:
                changed |= self._settle_one(asked, *(self._ends or (Fraction(0), Fraction(0))))
            self._open = [asked for asked in self._open if asked.unsettled.any()]

    def _settle_one(self, asked: _AskedQuery, low: Fraction, high: Fraction) -> bool:
        """Whether somebody is settled by one query, given what is settled already."""
        done = asked.unsettled & self._settled[asked.value]
        if done.any():
            asked.total -= sum(self._values[asked.value][done].tolist(), Fraction(0))
            asked.unsettled = asked.unsettled & ~done
        size = int(asked.unsettled.sum())
        if not size or not (size == 1 or asked.total in (low * size, high * size)):
            return False
        self._settled[asked.value] |= asked.unsettled
        self._values[asked.value][asked.unsettled] = asked.total / size
        return True

    def _value(self, place: int, each: DeterminedRecord, answers: dict[int, Fraction]) -> Fraction:
        """A record's number: settled on the way, or what its combination adds up to."""
        if all(settled[place] for settled in self._settled):
            parts = zip(self._setting.secret.asked, self._values, strict=True)
            return sum((i * values[place] for i, values in parts), Fraction(0))
        weights = each.combination.items()
        return sum((weight * answers[query] for query, weight in weights), Fraction(0))


# Halving: a set whose sum is as small or as large as can be is settled --------------------------
#
# A set of bits with known sum is split in two; the sum of one half is asked for, that of the other
# follows. With d ones among n records this takes about d log2(n / d) queries, far fewer than a
# fixed plan when ones (or zeros) are rare. Where they are not, a detecting matrix on the set takes
# fewer. `costs` has, for a set of s bits with d ones, the most queries that it can take if this set
# and all its parts are treated in the way that is cheaper then. That way is taken: at most one
# query more than a detecting matrix on all records, whatever the bits are; for numbers between two
# ends, at most one query for each record.


@cache
def costs(size: int) -> NDArray[np.int64]:
    """For 0 to `size` ones among so many bits, the most queries beyond their known sum.

    >>> costs(4).tolist()
    [0, 2, 3, 2, 0]
    """
    if size < 2:
        return np.zeros(size + 1, np.int64)
    split = 1 + _worst(costs(size // 2), costs(size - size // 2))
    split[[0, size]] = 0
    return np.minimum(split, sums_needed(size))


def _worst(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each total, the largest sum of an entry of each whose places add up to it."""
    found = np.zeros(len(left) + len(right) - 1, np.int64)
    for place, cost in enumerate(left.tolist()):
        part = found[place : place + len(right)]
        np.maximum(part, cost + right, out=part)
    return found


@dataclass
class HalvingRun:
    """A run that finds the value of every record, asking as it goes."""

    subsets: Subsets
    asking: CountedOracle
    low: Fraction
    high: Fraction
    bits: bool
    values: list[Fraction] = field(init=False)
    _total: Fraction = field(init=False, default=Fraction(0))

    def run(self) -> list[Fraction]:
        """Every record's value, in the order of the records."""
        everybody = self.subsets.everybody
        self.values = [self.low] * self.subsets.count
        self._total = self.asking.ask(self.subsets.statement(everybody))
        order = np.argsort(self.subsets.axis.places)  # so that halves are ranges
        pending = [(order, self._total)]
        while pending:
            places, total = pending.pop()
            if not self._settle_set(places, total):
                pending += self._split(places, total)
        return self.values

    def _settle_set(self, places: NDArray[np.int64], total: Fraction) -> bool:
        """Whether a set is known: by its sum alone, or because its bits are decoded."""
        size = len(places)
        if size == 1:
            self.values[places[0]] = total
        elif total in (self.low * size, self.high * size):
            for place in places.tolist():
                self.values[place] = total / size
        elif not (self.bits and self._decode_bits(places, int(total))):
            return False
        return True

    def _decode_bits(self, places: NDArray[np.int64], ones: int) -> bool:
        """Whether a detecting matrix is the cheaper way; if so it is asked."""
        size = len(places)
        if costs(size)[ones] < sums_needed(size):
            return False
        matrix = DetectingMatrix(size)
        bits = matrix.decode([int(self._sum(places[row])) for row in matrix.rows])
        for place, bit in zip(places.tolist(), bits.tolist(), strict=True):
            self.values[place] = Fraction(bit)
        return True

    def _split(
        self, places: NDArray[np.int64], total: Fraction
    ) -> list[tuple[NDArray[np.int64], Fraction]]:
        half = len(places) // 2
        first_sum = self._sum(places[:half])
        return [(places[half:], total - first_sum), (places[:half], first_sum)]

    def _sum(self, places: NDArray[np.int64]) -> Fraction:
        """The sum of a set, by its complement where it is too small to be asked for."""
        chosen: Chosen = np.zeros(self.subsets.count, np.bool_)
        chosen[places] = True
        if not self.subsets.needs_complement(chosen):
            return self.asking.ask(self.subsets.statement(chosen))
        return self._total - self.asking.ask(self.subsets.statement(~chosen))


# The plan that chooses between them -------------------------------------------------------------


@dataclass(frozen=True)
class AdaptiveFindings:
    """What an adaptive plan found out, and the queries that it asked, with their answers."""

    values: dict[Scalar, Scalar | Fraction] = field(repr=False)
    queries: tuple[str, ...]
    answers: tuple[Fraction, ...] = field(repr=False)


class AdaptivePlan:
    """A plan for one record, or for "all", that asks an oracle query by query."""

    def __init__(self, planner: Planner, target: Scalar, seconds: float | None = None) -> None:
        self.fixed: Planned = planner.plan(target, None, seconds)
        self._setting: PlanSetting = planner.setting
        if not self.fixed.queries:
            raise Misconfigured(f"there is nothing to ask: {self.fixed.reason}")

    @property
    def most(self) -> int:
        """The most queries that it asks: one more than the fixed plan has."""
        return len(self.fixed.queries) + 1

    def run(self, oracle: Oracle) -> AdaptiveFindings:
        """Ask until everything that the fixed plan determines is known."""
        asking = CountedOracle(oracle)
        splitting = self._splitting(asking)
        if splitting is None:
            found = FixedPlanRun(self._setting, self.fixed, asking).run()
        else:
            found = dict(enumerate(splitting.run()))
        names = {self._setting.name(place): value for place, value in found.items()}
        return AdaptiveFindings(
            {record: self.fixed.decode_number(value) for record, value in names.items()},
            tuple(asking.answers),
            tuple(asking.answers.values()),
        )

    def _splitting(self, asking: CountedOracle) -> HalvingRun | None:
        """Halving, where any set may be asked for and the values have ends."""
        subsets, secret = self._setting.subsets, self._setting.secret
        if self.fixed.combination or subsets is None or secret.bounds is None:
            return None
        return HalvingRun(subsets, asking, *secret.bounds, secret.bits) if subsets.any_set else None
