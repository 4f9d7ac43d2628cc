"""The ranges that single facts leave of every class, with the steps that narrowed them."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from casemate.audit.classes.certificate import Capped, Combined, OnlyAttainer, Step
from casemate.audit.classes.partition import Classes, ClassOrder
from casemate.exact import Bound

MAX_SWEEPS = 20
"""Sweeps over all facts, each of which may narrow ranges further."""


@dataclass(frozen=True)
class _Reasoned:
    """A step, and the steps whose consequences it uses."""

    step: Step
    premises: frozenset[int]


class Propagation:
    """The range and the number of values of every class, and the steps that narrowed them.

    `low` and `high` are of each unit of a class, `least` and `most` how many of its units have a
    value. `because` are the steps behind an end; none for what was known beforehand.
    """

    def __init__(self, classes: Classes) -> None:
        self.classes, facts = classes, classes.facts
        first = classes.order[classes.start[:-1]]
        priors = [facts.priors[which] for which in facts.prior[first].tolist()]
        self.low: list[Bound] = [each.low for each in priors]
        self.high: list[Bound] = [each.high for each in priors]
        self.least = np.where(classes.may_miss, 0, classes.size).tolist()
        self.most = classes.size.tolist()
        self.steps: list[_Reasoned] = []
        self._because: dict[tuple[str, int], frozenset[int]] = {}
        self._cap()
        changed = True
        for _ in range(MAX_SWEEPS):
            if changed:
                changed = self._sweep()

    def because(self, *ends: tuple[str, int]) -> frozenset[int]:
        """The steps behind some ends."""
        return frozenset().union(*(self._because.get(end, frozenset()) for end in ends))

    def proof(self, steps: frozenset[int]) -> tuple[Step, ...]:
        """Some steps with all that they rest on, in order."""
        needed, left = set(steps), list(steps)
        while left:
            for each in self.steps[left.pop()].premises - needed:
                needed.add(each)
                left.append(each)
        return tuple(self.steps[each].step for each in sorted(needed))

    def _add(self, step: Step, premises: frozenset[int]) -> frozenset[int]:
        self.steps.append(_Reasoned(step, premises))
        return frozenset({len(self.steps) - 1})

    def _note(self, end: str, which: int, reason: frozenset[int]) -> None:
        self._because[end, which] = reason

    def _cap(self) -> None:
        """Everybody keeps to the extremes they are in."""
        for number, each in enumerate(self.classes.orders):
            fact = each.fact
            if fact.kind == "median":
                continue
            reason: frozenset[int] | None = None
            for which in each.classes.tolist():
                end = self.high[which] if fact.kind == "max" else self.low[which]
                level = fact.high if fact.kind == "max" else fact.low
                tighter = end is None or (level < end if fact.kind == "max" else level > end)
                if tighter:
                    reason = reason or self._add(Capped(number), frozenset())
                    (self.high if fact.kind == "max" else self.low)[which] = level
                    self._note("high" if fact.kind == "max" else "low", which, reason)

    def _sweep(self) -> bool:
        before = len(self.steps)
        for number in range(len(self.classes.rows)):
            self._press(number)
        for number, each in enumerate(self.classes.orders):
            self._single_out(number, each)
        return len(self.steps) > before

    # Extremes that only one can have --------------------------------------------------------------

    def _single_out(self, number: int, each: ClassOrder) -> None:
        fact, classes = each.fact, self.classes
        able = [which for which in each.classes.tolist() if self.attains(which, each)]
        if len(able) != 1 or classes.size[able[0]] != 1:
            return
        (which,) = able
        if self.low[which] == fact.low == self.high[which] and self.least[which] == 1:
            return
        if fact.kind == "median" and not self._is_odd(each):
            return
        others = [other for other in each.classes.tolist() if other != which]
        ends = [("high", o) for o in others] + [("low", o) for o in others]
        premises = self.because(*ends, *(("most", o) for o in others))
        if fact.kind == "median":
            premises |= self.because(*(("least", o) for o in others))
        unit = int(classes.members(which)[0])
        reason = self._add(OnlyAttainer(number, unit), premises)
        low, high = self.low[which], self.high[which]
        self.low[which] = fact.low if low is None else max(low, fact.low)
        self.high[which] = fact.high if high is None else min(high, fact.high)
        self.least[which] = 1
        for end in ("low", "high", "least"):
            self._note(end, which, reason)

    def attains(self, which: int, each: ClassOrder) -> bool:
        """Whether somebody of a class may have an extreme."""
        low, high = self.low[which], self.high[which]
        return self.most[which] > 0 and (
            (high is None or high >= each.fact.low) and (low is None or low <= each.fact.high)
        )

    def _is_odd(self, each: ClassOrder) -> bool:
        known = all(self.least[w] == self.most[w] for w in each.classes.tolist())
        pairs = zip(each.classes.tolist(), each.times.tolist(), strict=True)
        return known and sum(self.most[w] * times for w, times in pairs) % 2 == 1

    # Sums -----------------------------------------------------------------------------------------

    def _press(self, number: int) -> None:
        """What a linear fact and the ranges of all others say of each class."""
        row = self.classes.rows[number]
        for lower in (True, False):
            end = row.fact.low if lower else row.fact.high
            if end is None:
                continue
            sign = 1 if lower else -1
            most = [
                self._largest(which, sign * alpha, sign * beta)
                for which, alpha, beta in zip(
                    row.classes.tolist(), row.alpha, row.beta, strict=True
                )
            ]
            unknown = [place for place, each in enumerate(most) if each is None]
            if len(unknown) > 1:
                continue
            total = sum((each for each in most if each is not None), Fraction(0))
            places = unknown or range(len(most))
            for place in places:
                own = most[place]
                others = total if own is None else total - own
                self._narrow(number, place, sign, sign * end - others)

    def _largest(self, which: int, alpha: int, beta: int) -> Fraction | None:
        """The most that a class can add to a sum."""
        low, high = self.low[which], self.high[which]
        end = high if alpha > 0 else low
        if alpha and end is None:
            return Fraction(0) if self.most[which] == 0 else None
        each = (alpha * end if end is not None and alpha else Fraction(0)) + beta
        return each * int(self.most[which] if each > 0 else self.least[which])

    def _narrow(self, number: int, place: int, sign: int, needed: Fraction) -> None:
        """A class adds at least so much to `sign` times a linear fact."""
        row = self.classes.rows[number]
        which, alpha, beta = (
            int(row.classes[place]),
            sign * row.alpha[place],
            sign * row.beta[place],
        )
        if alpha == 0 and beta:
            self._count(number, place, sign, needed / beta, above=beta < 0)
        elif alpha and self.least[which] == self.most[which] > 0:
            self._value(number, place, sign, needed - beta * self.most[which], alpha)

    def _premises(self, number: int, place: int, sign: int) -> frozenset[int]:
        """The steps behind the ends of the other classes that a bound uses."""
        row = self.classes.rows[number]
        ends = [(end, int(row.classes[place])) for end in ("least", "most")]
        entries = zip(row.classes.tolist(), row.alpha, row.beta, strict=True)
        for other, (which, alpha, beta) in enumerate(entries):
            if other == place:
                continue
            upwards = sign * alpha > 0
            end = self.high[which] if upwards else self.low[which]
            each = sign * ((alpha * end if end is not None and alpha else Fraction(0)) + beta)
            if each or (alpha and end is None):
                ends.append(("most" if each > 0 or end is None else "least", which))
            if alpha:
                ends.append(("high" if upwards else "low", which))
        return self.because(*ends)

    def _count(self, number: int, place: int, sign: int, bound: Fraction, *, above: bool) -> None:
        """At least, or at most, so many units of a class have a value."""
        which = int(self.classes.rows[number].classes[place])
        weight = Fraction(sign, abs(self.classes.rows[number].beta[place]))
        if above:
            most = max(0, math.floor(bound))
            if most >= self.most[which] or most > 0:
                return  # who of them it is stays open
            end, self.most[which] = "most", 0
        else:
            least = min(self.most[which], math.ceil(bound))
            if least <= self.least[which] or least < self.classes.size[which]:
                return
            end, self.least[which] = "least", least
        units = tuple(self.classes.members(which).tolist())
        step = Combined(units, "presence", above, bound, {number: weight})
        self._note(end, which, self._add(step, self._premises(number, place, sign)))

    def _value(self, number: int, place: int, sign: int, needed: Fraction, alpha: int) -> None:
        """What the values of a class add up to has a bound, and perhaps each of them."""
        which = int(self.classes.rows[number].classes[place])
        bound, above = needed / alpha, alpha < 0
        count = self.most[which]
        own = self.low[which] if above else self.high[which]
        if count > 1 and own is None:
            return
        each = bound - (count - 1) * own if count > 1 and own is not None else bound
        if self.classes.whole[which]:
            each = Fraction(math.floor(each) if above else math.ceil(each))
        before = self.high[which] if above else self.low[which]
        if before is not None and (each >= before if above else each <= before):
            return
        if count > 1 and each != own:
            return  # only all together is worth a step
        units = tuple(self.classes.members(which).tolist())
        weight = Fraction(sign, abs(self.classes.rows[number].alpha[place]))
        step = Combined(units, "value", above, bound, {number: weight})
        premises = self._premises(number, place, sign)
        if count > 1:
            premises |= self.because(("low" if above else "high", which))
        reason = self._add(step, premises)
        (self.high if above else self.low)[which] = each
        self._note("high" if above else "low", which, reason)
