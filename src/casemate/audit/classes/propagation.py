"""The ranges that single facts leave of every class, with the steps that narrowed them."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from casemate.audit.classes.certificate import Capped, CombinedFacts, OnlyAttainer, Step
from casemate.audit.classes.partition import Classes, ClassOrder
from casemate.audit.time_limit import Clock
from casemate.exact import Bound

MAX_SWEEPS = 20
"""Sweeps over all facts, each of which may narrow ranges further."""

ENDS = ("low", "high", "least", "most")
"""What a step can narrow of a class."""


@dataclass(frozen=True)
class _Reasoned:
    """A step, and the steps whose consequences it uses."""

    step: Step
    premises: frozenset[int]


class Propagation:
    """The range and the number of values of every class, and the steps that narrowed them.

    `low` and `high` are of each unit of a class, `least` and `most` how many of its units have a
    value. `because` are the steps behind an end; none for what was known beforehand. Every step is
    true by itself: what ends early has wider ranges.
    """

    def __init__(self, classes: Classes, clock: Clock | None = None) -> None:
        self.classes, self._clock = classes, clock
        self.low: list[Bound] = [each.low for each in classes.priors]
        self.high: list[Bound] = [each.high for each in classes.priors]
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
            above = each.fact.kind == "max"
            level = each.fact.high if above else each.fact.low
            tighter = [w for w in each.classes.tolist() if self._is_tighter(w, level, above)]
            if each.fact.kind != "median" and tighter:
                reason = self._add(Capped(number), frozenset())
                for which in tighter:
                    self._move(which, level, above, reason)

    def _is_tighter(self, which: int, level: Fraction, above: bool) -> bool:
        end = self.high[which] if above else self.low[which]
        return end is None or (level < end if above else level > end)

    def _move(self, which: int, level: Fraction, above: bool, reason: frozenset[int]) -> None:
        """Put the upper, or the lower, end of a class where a step says."""
        (self.high if above else self.low)[which] = level
        self._note("high" if above else "low", which, reason)

    def _sweep(self) -> bool:
        before = len(self.steps)
        for number in range(len(self.classes.rows)):
            if self._is_late():
                return False
            self._press(number)
        for number, each in enumerate(self.classes.orders):
            if self._is_late():
                return False
            self._single_out(number, each)
        return len(self.steps) > before

    def _is_late(self) -> bool:
        return self._clock is not None and self._clock.over

    # Extremes that only one can have --------------------------------------------------------------

    def _single_out(self, number: int, each: ClassOrder) -> None:
        fact, classes = each.fact, self.classes
        able = [which for which in each.classes.tolist() if self.attains(which, each)]
        if len(able) != 1 or classes.size[able[0]] != 1:
            return
        if fact.kind == "median" and not self._is_odd(each):
            return
        (which,) = able
        news = [
            (level, above)
            for level, above in ((fact.low, False), (fact.high, True))
            if self._is_tighter(which, level, above)
        ]
        if not news and self.least[which] == 1:
            return
        others = (other for other in each.classes.tolist() if other != which)
        premises = self.because(*((end, other) for other in others for end in ENDS))
        reason = self._add(OnlyAttainer(number, int(classes.members(which)[0])), premises)
        for level, above in news:
            self._move(which, level, above, reason)
        self.least[which] = 1
        self._note("least", which, reason)

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

    def premises(self, step: CombinedFacts) -> frozenset[int]:
        """The steps behind the ends of ranges that a combination uses."""
        classes = self.classes
        own = {int(classes.label[unit]) for unit in step.units}
        slope = {which: Fraction(-1 if step.above else 1) for which in own}
        for number, weight in step.linear.items():
            row = classes.rows[number]
            for which, alpha in zip(row.classes.tolist(), row.alpha, strict=True):
                slope[which] = slope.get(which, Fraction(0)) - weight * alpha
        compared = {w for n in step.attained for w in classes.orders[n].classes.tolist()}
        ends = [(end, which) for which in own | compared for end in ENDS]
        ends += [(end, which) for which in slope for end in ("least", "most")]
        ends += [("low" if each > 0 else "high", which) for which, each in slope.items() if each]
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
        step = CombinedFacts(units, "presence", above, bound, {number: weight})
        self._note(end, which, self._add(step, self.premises(step)))

    def _value(self, number: int, place: int, sign: int, needed: Fraction, alpha: int) -> None:
        """What the values of a class add up to has a bound, and perhaps each of them."""
        row = self.classes.rows[number]
        which, bound, above = int(row.classes[place]), needed / alpha, alpha < 0
        each = self._share(which, bound, above)
        if each is None or not self._is_tighter(which, each, above):
            return
        units = tuple(self.classes.members(which).tolist())
        weight = Fraction(sign, abs(row.alpha[place]))
        step = CombinedFacts(units, "value", above, bound, {number: weight})
        self._move(which, each, above, self._add(step, self.premises(step)))

    def _share(self, which: int, bound: Fraction, above: bool) -> Fraction | None:
        """The bound of each unit of a class that the bound of all implies, if it is worth a step.

        Of several it is where it leaves all of them at the other end.
        """
        count, own = self.most[which], (self.low if above else self.high)[which]
        if count > 1 and own is None:
            return None
        each = bound - (count - 1) * (own or Fraction(0))
        if self.classes.priors[which].whole:
            each = Fraction(math.floor(each) if above else math.ceil(each))
        return each if count == 1 or each == own else None
