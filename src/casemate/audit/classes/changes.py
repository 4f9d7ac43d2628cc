"""Changes of some units' values, and whether they keep every fact, in exact arithmetic."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.classes.facts import NumberFacts, OrderFact, middle_pair
from casemate.audit.classes.partition import Classes, ClassRow
from casemate.exact import integer_array
from casemate.query.records import Cut

SAFE_TOTAL = 2**62
"""Sums of magnitudes below this are exact in 64 bits."""


@dataclass(frozen=True, eq=False, repr=False)
class ClassChange:
    """Other values of some units: `number` over the facts' scale times `common`, where `there`."""

    unit: NDArray[np.int64]
    number: NDArray[Any]
    there: NDArray[np.bool_]
    common: int = 1

    @classmethod
    def of(cls, values: Mapping[int, Fraction | None], scale: int) -> "ClassChange":
        """A change from plain values; None is a value that is missing."""
        scaled = {unit: None if v is None else v * scale for unit, v in values.items()}
        common = math.lcm(1, *{v.denominator for v in scaled.values() if v is not None})
        numbers = [0 if v is None else int(v * common) for v in scaled.values()]
        there = [v is not None for v in scaled.values()]
        units = np.fromiter(values, np.int64, len(values))
        return cls(units, integer_array(numbers), np.array(there, np.bool_), common)

    def __len__(self) -> int:
        return len(self.unit)

    def among(self, wanted: NDArray[np.bool_]) -> "ClassChange":
        """What of it is about these units."""
        kept = wanted[self.unit]
        parts = self.unit[kept], self.number[kept], self.there[kept]
        return self if kept.all() else ClassChange(*parts, self.common)

    def items(self, scale: int) -> Iterator[tuple[int, Fraction | None]]:
        """The units and their values."""
        for unit, number, there in zip(
            self.unit.tolist(), self.number.tolist(), self.there.tolist(), strict=True
        ):
            yield unit, Fraction(number, scale * self.common) if there else None


def largest(numbers: NDArray[Any]) -> int:
    """The largest magnitude."""
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0


def safe(numbers: NDArray[Any], factor: int, terms: int = 1) -> NDArray[Any]:
    """The numbers, as Python integers where so many of their multiples could overflow."""
    size = max(1, largest(numbers)) * max(1, abs(factor)) * terms
    fits = numbers.dtype != object and size < SAFE_TOTAL
    return numbers if fits else numbers.astype(object)


def past(
    cut: Cut, numbers: NDArray[Any], there: NDArray[np.bool_], scale: int
) -> NDArray[np.bool_]:
    """Which of the values, numbers over a scale where they are there, are past a cut."""
    found: NDArray[np.bool_] = there & (numbers.astype(object) >= least_past(cut, scale))
    return found


def least_past(cut: Cut, scale: int) -> int:
    """The least number over a scale that is past a cut."""
    level = (cut.value or Fraction(0)) * scale
    return math.floor(level) + 1 if cut.strict else math.ceil(level)


@dataclass(frozen=True, eq=False, repr=False)
class _Entries:
    """The coefficients of the linear facts, one after another."""

    row: NDArray[np.int64]
    which: NDArray[np.int64]
    alpha: NDArray[Any]
    beta: NDArray[Any]

    @classmethod
    def of(cls, rows: Sequence[ClassRow]) -> "_Entries":
        lengths = [len(row.classes) for row in rows]
        return cls(
            np.repeat(np.arange(len(rows)), lengths),
            np.concatenate([np.zeros(0, np.int64), *(row.classes for row in rows)]),
            integer_array([each for row in rows for each in row.alpha]),
            integer_array([each for row in rows for each in row.beta]),
        )

    def sums(self, total: NDArray[Any], there: NDArray[Any], scale: int, rows: int) -> list[int]:
        """What the facts come to for these totals and numbers of values."""
        count = max(1, len(self.row))
        total, there = safe(total, largest(self.alpha), count), there.astype(object)
        small = object not in (total.dtype, self.alpha.dtype)
        counted = max(1, largest(self.beta)) * max(1, largest(there))
        small = small and counted * scale * count < SAFE_TOTAL
        kind = np.int64 if small else object
        parts = self.alpha.astype(kind) * total.astype(kind)[self.which]
        parts = parts + self.beta.astype(kind) * there.astype(kind)[self.which] * scale
        found = np.zeros(rows, kind)
        np.add.at(found, self.row, parts)
        return [int(each) for each in found.tolist()]


class FactCheck:
    """The facts of some classes, and what they come to in the table itself."""

    def __init__(self, classes: Classes) -> None:
        self.classes, self._facts = classes, classes.facts

    @cached_property
    def _entries(self) -> _Entries:
        return _Entries.of(self.classes.equations)

    @cached_property
    def totals(self) -> list[Fraction]:
        """What each linear fact comes to on the table's own values; those with cuts are last."""
        scale, asked = self._facts.scale, self._facts.asked
        numbers = integer_array([int(each * scale) for each in self.classes.total])
        sums = self._entries.sums(numbers, self.classes.there, scale, len(self.classes.equations))
        counted = self._past(asked, self._facts.number[asked], self._facts.present[asked], scale)
        return [Fraction(each, scale) + more for each, more in zip(sums, counted, strict=True)]

    def _past(
        self, units: NDArray[np.int64], numbers: NDArray[Any], there: NDArray[np.bool_], scale: int
    ) -> list[int]:
        """What these units' being past cuts adds to each linear fact."""
        label, size = self.classes.label[units], len(self.classes)
        cuts = {cut for row in self.classes.compared for cut, _ in row.past}
        counts = {
            cut: np.bincount(label[past(cut, numbers, there, scale)], minlength=size)
            for cut in cuts
        }
        return [
            sum(
                factor * int(count)
                for cut, factors in row.past
                for factor, count in zip(factors, counts[cut][row.classes], strict=True)
            )
            for row in self.classes.equations
        ]

    def keeps(self, change: ClassChange) -> bool:
        """Whether the table with these values put in could be the true one."""
        return self._keeps_priors(change) and self._keeps_sums(change) and self._keeps_order(change)

    def _keeps_priors(self, change: ClassChange) -> bool:
        facts = self._facts
        if not facts.may_miss[change.unit[~change.there]].all():
            return False
        units, numbers = change.unit[change.there], change.number[change.there]
        unit = facts.scale * change.common
        for which in np.unique(facts.prior[units]).tolist():
            prior, mine = facts.priors[which], numbers[facts.prior[units] == which]
            low, high = Fraction(int(mine.min()), unit), Fraction(int(mine.max()), unit)
            if prior.low is not None and low < prior.low:
                return False
            if prior.high is not None and high > prior.high:
                return False
            if prior.whole and bool((safe(mine, unit) % unit != 0).any()):
                return False
        return True

    def _keeps_sums(self, change: ClassChange) -> bool:
        facts, classes = self._facts, self.classes
        new = np.where(change.there, safe(change.number, 1, 2), 0)
        own = np.where(facts.present[change.unit], facts.number[change.unit], 0)
        moved = (
            safe(new, 1, 2 * len(change))
            - safe(own, change.common, 2 * len(change)) * change.common
        )
        total, there = np.zeros(len(classes), moved.dtype), np.zeros(len(classes), np.int64)
        label = classes.label[change.unit]
        np.add.at(total, label, moved)
        np.add.at(there, label, change.there.astype(np.int64) - facts.present[change.unit])
        unit = facts.scale * change.common
        sums = self._entries.sums(total, there, unit, len(self.classes.equations))
        before = self._past(
            change.unit, facts.number[change.unit], facts.present[change.unit], facts.scale
        )
        after = self._past(change.unit, change.number, change.there, unit)
        return all(
            row.fact.allows(true + Fraction(amount, unit) + new - old)
            for row, true, amount, old, new in zip(
                self.classes.equations, self.totals, sums, before, after, strict=True
            )
            if amount or old != new
        )

    def _keeps_order(self, change: ClassChange) -> bool:
        facts, classes = self._facts, self.classes
        if not classes.orders or not len(change):
            return True
        present = facts.present.copy()
        present[change.unit] = change.there
        numbers = safe(facts.number, change.common) * change.common
        if change.number.dtype == object:
            numbers = numbers.astype(object)
        numbers[change.unit] = change.number
        touched = {
            number
            for which in np.unique(classes.label[change.unit]).tolist()
            for number in classes.in_orders[which]
        }
        unit = facts.scale * change.common
        return all(
            answers_as_published(classes.orders[number].fact, numbers, present, unit)
            for number in touched
        )


def answers_as_published(
    fact: OrderFact, numbers: NDArray[Any], present: NDArray[np.bool_], scale: int
) -> bool:
    """Whether the values give the extreme or the median that was published."""
    there = present[fact.unit]
    values = numbers[fact.unit[there]]
    if not len(values):
        return False
    if fact.kind == "median":
        answer = Fraction(sum(middle_pair(values, fact.times[there])), 2 * scale)
    else:
        answer = Fraction(int(values.max() if fact.kind == "max" else values.min()), scale)
    return fact.low <= answer <= fact.high


def false_facts(facts: NumberFacts, check: FactCheck) -> tuple[list[int], list[int]]:
    """The linear and the order facts that the table itself does not give."""
    told = zip(facts.equations, check.totals, strict=True)
    linear = [number for number, (fact, total) in enumerate(told) if not fact.allows(total)]
    order = [
        number
        for number, fact in enumerate(facts.order)
        if not answers_as_published(fact, facts.number, facts.present, facts.scale)
    ]
    return linear, order
