"""The queries of a fixed plan, asked in turn, without those whose answers follow from others."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_oracle import Asking
from casemate.attack.plan_result import Determined, Planned
from casemate.attack.plan_setting import Setting

Ends = tuple[Fraction, Fraction]


@dataclass
class _Asked:
    """A query that was asked: whom it is about and is not settled yet, and their sum."""

    value: int
    left: NDArray[np.bool_]
    total: Fraction


class Settling:
    """A run of a fixed plan; what a value may be lies between its ends, if they are known."""

    def __init__(self, setting: Setting, plan: Planned, asking: Asking) -> None:
        self._setting, self._plan, self._asking = setting, plan, asking
        self._reading = setting.read(plan.queries)
        self._kinds = len(setting.secret.asked)
        count = setting.language.count
        self._settled = [np.zeros(count, np.bool_) for _ in range(self._kinds)]
        self._values = [np.full(count, Fraction(0), object) for _ in range(self._kinds)]
        self._open: list[_Asked] = []

    def run(self) -> dict[int, Fraction]:
        """The number that stands for the value of each record that the plan is for."""
        answers: dict[int, Fraction] = {}
        for query in self._order:
            if self._is_known:
                break
            answers[query] = self._answer(query)
        return {place: self._value(place, each, answers) for place, each in self._wanted.items()}

    @cached_property
    def _wanted(self) -> dict[int, Determined]:
        if not self._plan.combination:
            return {self._setting.place(each.record): each for each in self._plan.determined}
        whole = Determined(self._plan.target, dict(enumerate(self._plan.combination)))
        return {self._setting.place(self._plan.target): whole}

    @cached_property
    def _order(self) -> list[int]:
        """The queries about one wanted record first, small ones before large ones."""
        numbers = range(len(self._plan.queries))
        if not self._plan.combination:
            return list(numbers)
        (place,) = self._wanted
        counts = self._plan.counts
        return sorted(numbers, key=lambda q: (not self._reading.selected(q)[place], counts[q]))

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
        value, chosen = query % self._kinds, self._reading.selected(query)
        left = chosen & ~self._settled[value]
        known = sum(self._values[value][chosen & ~left].tolist(), Fraction(0))
        if not left.any():
            return known
        total = self._asking.ask(self._plan.queries[query])
        self._open.append(_Asked(value, left, total - known))
        self._settle()
        return total

    def _settle(self) -> None:
        """Settle everybody in sets whose sum is at an end, until nothing changes."""
        changed = self._ends is not None
        while changed:
            changed = False
            for asked in self._open:
                changed |= self._settle_one(asked, *(self._ends or (Fraction(0), Fraction(0))))
            self._open = [asked for asked in self._open if asked.left.any()]

    def _settle_one(self, asked: _Asked, low: Fraction, high: Fraction) -> bool:
        """Whether somebody is settled by one query, given what is settled already."""
        done = asked.left & self._settled[asked.value]
        if done.any():
            asked.total -= sum(self._values[asked.value][done].tolist(), Fraction(0))
            asked.left = asked.left & ~done
        size = int(asked.left.sum())
        if not size or not (size == 1 or asked.total in (low * size, high * size)):
            return False
        self._settled[asked.value] |= asked.left
        self._values[asked.value][asked.left] = asked.total / size
        return True

    def _value(self, place: int, each: Determined, answers: dict[int, Fraction]) -> Fraction:
        """A record's number: settled on the way, or what its combination adds up to."""
        if all(settled[place] for settled in self._settled):
            parts = zip(self._setting.secret.asked, self._values, strict=True)
            return sum((i * values[place] for i, values in parts), Fraction(0))
        weights = each.combination.items()
        return sum((weight * answers[query] for query, weight in weights), Fraction(0))
