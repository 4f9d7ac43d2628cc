"""Who attains extremes and who is below medians, held fixed: then each unit has a range of its own.

With the labels fixed a class may have any total between the sums of its units' ranges, so that
second tables are points of a linear program over the totals of classes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.classes.changes import ClassChange, least_past, past, safe
from casemate.audit.classes.facts import OrderFact, middle_pair
from casemate.audit.classes.propagation import Propagation
from casemate.query.records import Cut

Flags = NDArray[np.bool_]

NARROW_LIMIT = 2**40
"""Numbers below this are held in 64 bits, with as much again for what stands for no end."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Who has a value, and the range of each unit, in units of the facts' scale."""

    low: NDArray[Any]
    high: NDArray[Any]
    present: Flags


@dataclass(frozen=True, eq=False)
class Attained:
    """Some unit must be at a level; `own` are those that are, `candidates` who could be."""

    level: int
    own: NDArray[np.int64]
    candidates: NDArray[np.int64]
    median: bool = False  # whoever stops being in the middle goes where its successor came from


class Patterns:
    """The patterns of some classes near the truth."""

    def __init__(self, ranges: Propagation, random: np.random.Generator) -> None:
        classes = ranges.classes
        self._classes, self._facts, self._random = classes, classes.facts, random
        facts = classes.facts
        ends = [end for side in (ranges.low, ranges.high) for end in side if end is not None]
        largest = max(
            [abs(int(each)) for each in (facts.number.min(initial=0), facts.number.max(initial=0))]
            + [int(abs(end) * facts.scale) + 1 for end in ends]
            + [abs(least_past(cut, facts.scale)) for each in classes.cuts for cut in each]
        )
        narrow = largest < NARROW_LIMIT
        self.number = facts.number if narrow else facts.number.astype(object)
        self.absent = 4 * max(NARROW_LIMIT, largest)
        kind = np.int64 if narrow else object
        units = len(facts.present)
        self._low = np.full(units, -self.absent, kind)
        self._high = np.full(units, self.absent, kind)
        for side, out, inwards in (
            (ranges.low, self._low, _ceil),
            (ranges.high, self._high, _floor),
        ):
            numerators = [
                None if end is None else inwards(end, facts.scale, prior.whole)
                for end, prior in zip(side, classes.priors, strict=True)
            ]
            absent = -self.absent if out is self._low else self.absent
            by_class = np.array([absent if each is None else each for each in numerators], kind)
            out[classes.order] = np.repeat(by_class, classes.size)
        for fact in facts.compared:
            for cut, factors in fact.cuts:
                self._stay(fact.unit[factors != 0], cut)
        self._extremes = [
            self._attained(each.fact) for each in classes.orders if each.fact.kind != "median"
        ]
        self._medians = [each.fact for each in classes.orders if each.fact.kind == "median"]

    def _stay(self, units: NDArray[np.int64], cut: Cut) -> None:
        """Keep units on their side of a cut."""
        facts, level = self._facts, least_past(cut, self._facts.scale)
        beyond = past(cut, facts.number[units], facts.present[units], facts.scale)
        whole = np.array([prior.whole for prior in facts.priors], np.bool_)[facts.prior[units]]
        for side, inside, bound, choose, end in (
            (self._low, beyond, level, np.maximum, _ceil),
            (self._high, ~beyond, level - 1, np.minimum, _floor),
        ):
            for step in (False, True):
                own = units[inside & (whole == step)]
                side[own] = choose(side[own], end(Fraction(bound, facts.scale), facts.scale, step))

    def _attained(self, fact: OrderFact) -> Attained:
        top = fact.kind == "max"
        there = fact.unit[self._facts.present[fact.unit]]
        numbers = self.number[there]
        level = int(numbers.max() if top else numbers.min())
        cap = self._high[there] if top else self._low[there]
        reaches = cap >= level if top else cap <= level
        return Attained(level, there[numbers == level], there[reaches & (numbers != level)])

    def pattern(self, avoid: Flags, prefer: Flags, *, replace: bool) -> Pattern | None:
        """A pattern in which units to avoid attain nothing, and others do where that can be.

        `prefer` are units that may as well stand still. Without `replace` nobody takes the place of
        somebody else, so that a unit to avoid stays where nobody else is there.
        """
        low, high = self._low.copy(), self._high.copy()
        wanted = [*self._extremes]
        for fact in self._medians:
            wanted += self._sides(fact, low, high, avoid, prefer)
        for each in wanted:
            if not self._attain(each, low, high, avoid, prefer, replace=replace):
                return None
        return Pattern(low, high, self._facts.present)

    def pinned(
        self, tops: NDArray[np.int64], bottoms: NDArray[np.int64], there: NDArray[np.int64]
    ) -> Pattern:
        """So many units of each class at its top and at its bottom, and so many with a value."""
        classes = self._classes
        low, high, present = self._low.copy(), self._high.copy(), self._facts.present.copy()
        for which in np.flatnonzero(there != classes.there).tolist():
            members = classes.members(which)
            present[members] = np.arange(len(members)) < there[which]
        for which in np.flatnonzero(tops + bottoms).tolist():
            members = classes.members(which)
            members = members[present[members]]
            members = members[np.argsort(self.number[members], kind="stable")]
            bottom = members[: bottoms[which]]
            top = members[len(members) - tops[which] :]
            low[top], high[bottom] = high[top], low[bottom]
        return Pattern(low, high, present)

    def _attain(
        self,
        each: Attained,
        low: NDArray[Any],
        high: NDArray[Any],
        avoid: Flags,
        prefer: Flags,
        *,
        replace: bool,
    ) -> bool:
        own = each.own[(low[each.own] <= each.level) & (each.level <= high[each.own])]
        fixed = own[(low[own] == high[own])]
        if len(fixed):
            return True
        steady = own[~avoid[own]]
        if len(steady) or not replace:
            chosen = self._one_of(steady if len(steady) else own, prefer)
        else:
            chosen = self._successor(each, low, high, avoid, prefer)
        if chosen is None:
            return False
        if each.median and not len(steady) and replace:
            above = self.number[chosen] > each.level
            for unit in own.tolist():
                if above:
                    low[unit] = max(low[unit], each.level)
                else:
                    high[unit] = min(high[unit], each.level)
        low[chosen] = high[chosen] = each.level
        return True

    def _one_of(self, units: NDArray[np.int64], prefer: Flags) -> int | None:
        if not len(units):
            return None
        better = units[prefer[units]]
        return int(self._random.choice(better if len(better) else units))

    def _successor(
        self,
        each: Attained,
        low: NDArray[Any],
        high: NDArray[Any],
        avoid: Flags,
        prefer: Flags,
    ) -> int | None:
        """Somebody else who can be at the level: one of the nearest."""
        units = each.candidates
        able = (low[units] <= each.level) & (each.level <= high[units]) & ~avoid[units]
        units = units[able & (low[units] < high[units])]
        if not len(units):
            return None
        distance = np.abs(self.number[units] - each.level)
        better = units[prefer[units]]
        if len(better) and self._random.random() < 0.5:
            units, distance = better, np.abs(self.number[better] - each.level)
        nearest = units[np.argsort(distance, kind="stable")[:4]]
        return int(self._random.choice(nearest))

    # Medians --------------------------------------------------------------------------------------

    def _sides(
        self,
        fact: OrderFact,
        low: NDArray[Any],
        high: NDArray[Any],
        avoid: Flags,
        prefer: Flags,
    ) -> list[Attained]:
        """Put each unit of a median on its side, and say who must be in the middle."""
        present = self._facts.present[fact.unit]
        units, times = fact.unit[present], fact.times[present]
        numbers = self.number[units]
        lower, upper = middle_pair(numbers, times)
        below, above = units[numbers < lower], units[numbers > upper]
        high[below] = np.minimum(high[below], lower)
        low[above] = np.maximum(low[above], upper)
        if lower < upper:
            at_lower, at_upper = units[numbers == lower], units[numbers == upper]
            high[at_lower] = np.minimum(high[at_lower], lower)
            low[at_upper] = np.maximum(low[at_upper], upper)
            return [
                Attained(lower, at_lower, below),
                Attained(upper, at_upper, above),
            ]
        return self._middle(units, times, lower, (low, high), (avoid, prefer))

    def _middle(
        self,
        units: NDArray[np.int64],
        times: NDArray[np.int64],
        level: int,
        ends: tuple[NDArray[Any], NDArray[Any]],
        wishes: tuple[Flags, Flags],
    ) -> list[Attained]:
        """Whoever is at the median may go to a side as long as neither has more than half."""
        (low, high), (avoid, prefer), numbers = ends, wishes, self.number[units]
        at = units[numbers == level]
        total = int(times.sum())
        most = (total - 1) // 2  # on either side: less than half
        if int(times.max()) > 1:
            low[at], high[at] = np.maximum(low[at], level), np.minimum(high[at], level)
            return []
        room_below = most - int(np.count_nonzero(numbers < level))
        room_above = most - int(np.count_nonzero(numbers > level))
        steady = 2 - total % 2
        if len(at) == 1:
            others = units[numbers != level]
            return [Attained(level, at, others, median=True)]
        rank = self._random.random(len(at)) + 2.0 * avoid[at] - 1.0 * prefer[at]
        order = at[np.argsort(rank)]
        held, rest = order[:steady], order[steady:]
        low[held], high[held] = np.maximum(low[held], level), np.minimum(high[held], level)
        first, second = rest[:room_below], rest[room_below : room_below + room_above]
        high[first] = np.minimum(high[first], level)
        low[second] = np.maximum(low[second], level)
        return []

    # Ranges of classes ----------------------------------------------------------------------------

    def totals(self, pattern: Pattern) -> tuple[NDArray[Any], NDArray[Any], Flags, Flags]:
        """Between what the total of each class lies in units of the scale, and where no end is."""
        classes, present = self._classes, pattern.present[self._classes.order]
        ends, none = [], []
        for side, absent in ((pattern.low, -self.absent), (pattern.high, self.absent)):
            own = np.where(present, side[classes.order], 0)
            without = own == absent
            own = safe(np.where(without, 0, own), 1, len(own))
            ends.append(np.add.reduceat(own, classes.start[:-1]))
            none.append(np.add.reduceat(without.astype(np.int64), classes.start[:-1]) > 0)
        return ends[0], ends[1], none[0], none[1]

    def spread(self, totals: NDArray[Any], common: int, pattern: Pattern) -> ClassChange:
        """Values that add up to these totals (over the scale times `common`), near the true ones.

        Within a class the first units go as far as they can, and the others stay.
        """
        classes, facts = self._classes, self._facts
        order = classes.order
        factor = common * 4 * max(1, len(order))
        low, high, own = (
            safe(each[order], factor) for each in (pattern.low, pattern.high, self.number)
        )
        own = np.clip(own, low, high) * common
        present = pattern.present[order]
        own = np.where(present, own, 0)
        start = classes.start[:-1]
        left = totals - np.add.reduceat(own, start)
        amount = np.repeat(np.abs(left), classes.size)
        up = np.repeat(left > 0, classes.size)
        room = np.where(up, high * common - own, own - low * common)
        room = np.where(present, np.minimum(room, amount), 0)
        before = np.cumsum(room) - room
        before -= np.repeat(before[start], classes.size)
        step = np.clip(amount - before, 0, room)
        new = own + np.where(up, step, -step)
        moved = (new != safe(self.number[order], common) * common) & present
        moved |= present != facts.present[order]
        return ClassChange(order[moved], new[moved], present[moved], common)


def _ceil(end: Fraction, scale: int, whole: bool) -> int:
    unit = scale if whole else 1
    return -(-end * scale // unit) * unit


def _floor(end: Fraction, scale: int, whole: bool) -> int:
    unit = scale if whole else 1
    return (end * scale // unit) * unit


def none_of(size: int, units: Collection[int] = ()) -> Flags:
    """Flags of some units."""
    found = np.zeros(size, np.bool_)
    found[list(units)] = True
    return found
