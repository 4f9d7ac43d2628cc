"""Look for second tables over classes, and for proofs that there is none.

The order of work: exchanges within a class, pairs that move apart inside a class, linear programs
over the totals of classes with the labels of the truth, the same with other people attaining an
extreme or a median, and for whoever is left multipliers that prove one value (`certificate`).
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.classes.changes import ClassChange, FactCheck, largest, safe
from casemate.audit.classes.partition import Classes
from casemate.audit.classes.patterns import Pattern, Patterns, none_of
from casemate.audit.classes.propagation import Propagation
from casemate.audit.time_limit import Clock
from casemate.exact import Box, LinearProgram, Region, Scaled, Status, System, integer_array

RANDOM_PROGRAMS_WITHOUT_NEWS = 3
"""Linear programs in a row that may free nobody before single classes are tried."""

SMALL_GROUP, GROUPS_WITHOUT_NEWS = 6, 3
"""So many classes at a time, and so many times without news before single ones are tried."""

SEARCH_REACH = 4
"""A total without an end is looked for within so many times the largest number of the truth."""


class ClassStanding(IntEnum):
    """What is known of a class so far."""

    OPEN = 0
    FREE = 1
    EXPOSED = 2
    MISSING = 3


@dataclass(eq=False)
class Decisions:
    """What is known of each class so far, and the changes that show who is free."""

    classes: Classes
    standing: NDArray[np.int8] = field(init=False)
    changes: list[ClassChange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.standing = np.full(len(self.classes), ClassStanding.OPEN, np.int8)

    @property
    def open(self) -> NDArray[np.int64]:
        """The classes of which nothing is known yet."""
        return np.flatnonzero(self.standing == ClassStanding.OPEN)

    def free(self, change: ClassChange) -> int:
        """Take a change that keeps every fact; how many classes it shows to be free."""
        moved = np.unique(self.classes.label[change.unit])
        fresh = moved[self.standing[moved] == ClassStanding.OPEN]
        self.standing[fresh] = ClassStanding.FREE
        if len(fresh):
            self.changes.append(change)
        return len(fresh)


def exchange(decisions: Decisions) -> None:
    """Free whoever shares a class with somebody of another value, or with somebody missing."""
    classes = decisions.classes
    facts = classes.facts
    mixed = ~classes.constant
    decisions.standing[mixed] = ClassStanding.FREE
    inside = np.repeat(mixed, classes.size)
    following = np.arange(1, len(classes.order) + 1)
    following[classes.start[1:] - 1] = classes.start[:-1]
    unit, other = classes.order[inside], classes.order[following[inside]]
    change = ClassChange(unit, facts.number[other], facts.present[other])
    if len(change):
        decisions.changes.append(change)


def move_apart(decisions: Decisions, check: FactCheck) -> None:
    """Free classes of equal values: one goes up and one goes down, or one where nothing adds it."""
    classes = decisions.classes
    for which in decisions.open.tolist():
        value = classes.value(which)
        step = Fraction(0) if value is None else _room(classes, which, value)
        if value is None or not step:
            continue
        first, *others = classes.members(which)[:2].tolist()
        changes = [{first: value + step, other: value - step} for other in others]
        if not any(alpha for _, alpha, _ in classes.in_rows[which]):
            changes += [{first: value + step}, {first: value - step}]
        tried = (ClassChange.of(each, classes.facts.scale) for each in changes)
        kept = next(filter(check.keeps, tried), None)
        if kept is not None:
            decisions.free(kept)


def _room(classes: Classes, which: int, value: Fraction) -> Fraction:
    """A step up and down from a value that stays within all that a class is compared with."""
    prior = classes.priors[which]
    levels = [prior.low, prior.high, *(cut.value for cut in classes.cuts[which])]
    for number in classes.in_orders[which]:
        fact = classes.orders[number].fact
        levels += [fact.low, fact.high]
    steps = [abs(level - value) for level in levels if level is not None]
    least = min([each for each in steps if each], default=Fraction(2)) / 2
    if prior.whole:
        return Fraction(math.floor(least * 2)) if least < 1 else Fraction(1)
    return min(least, Fraction(1))


class TotalsProgram:
    """The linear program over the totals of classes, as differences from the truth."""

    def __init__(self, classes: Classes, check: FactCheck, patterns: Patterns) -> None:
        self._classes, self._patterns = classes, patterns
        facts = classes.facts
        self._scale = facts.scale
        self._true = integer_array([int(each * facts.scale) for each in classes.total])
        self._reach = SEARCH_REACH * max(
            1, *(abs(int(e)) for e in (facts.number.min(initial=0), facts.number.max(initial=0)))
        )
        rows = [
            (row, check.totals[number]) for number, row in enumerate(classes.rows) if any(row.alpha)
        ]
        self._rows = [row for row, _ in rows]
        lengths = [len(row.classes) for row, _ in rows]
        system = System(
            len(rows),
            len(classes),
            np.repeat(np.arange(len(rows)), lengths),
            np.concatenate([np.zeros(0, np.int64), *(row.classes for row, _ in rows)]),
            integer_array([alpha for row, _ in rows for alpha in row.alpha]),
        )
        ends = [_inside(row.fact, total) for row, total in rows]
        low, high = (
            (
                [None if e is None else e * facts.scale for e in side]
                for side in zip(*ends, strict=True)
            )
            if ends
            else ([], [])
        )
        widest = Fraction(self._reach * max(1, int(classes.size.max(initial=1))))
        box = Box.of(len(classes), -widest, widest)
        scaled = Scaled.of(Region(system, box, tuple(low), tuple(high)))
        self._unit, self._scaled = scaled.unit, scaled
        self._program = LinearProgram(scaled)

    def totals(
        self,
        pattern: Pattern,
        wanted: NDArray[np.int64],
        costs: NDArray[np.float64],
        deadline: float,
    ) -> Iterator[tuple[NDArray[Any], int]]:
        """Totals where the costs are least, over the scale times a number: rounded, then exact."""
        low, high, no_low, no_high = self._patterns.totals(pattern)
        reach = self._reach * self._classes.size.astype(object)  # may be beyond 64 bits
        low = np.where(no_low, -reach, low.astype(object) - self._true)
        high = np.where(no_high, reach, high.astype(object) - self._true)
        if bool((low > high).any()):
            return
        self._program.move_ends((low * self._unit).tolist(), (high * self._unit).tolist())
        self._program.move_row_ends(*self._row_ends(pattern))
        status, vertex = self._program.minimise(costs, deadline)
        if status is not Status.OPTIMAL:
            return
        scaled = self._program.scaled
        rounded = np.rint(vertex.point / float(scaled.shrink * self._unit))
        if not rounded[wanted].any() and not classes_there(self._classes, pattern)[wanted].any():
            return
        if largest(rounded) < 2**50:
            yield self._true + np.clip(rounded.astype(np.int64), low, high), 1
        exact = vertex.exact_point()
        if exact is not None:
            common = math.lcm(*{each.denominator for each in exact}) * self._unit
            moved = integer_array([int(each * (common // self._unit)) for each in exact])
            yield safe(self._true, common) * common + moved, common

    def _row_ends(self, pattern: Pattern) -> tuple[list[int | None], list[int | None]]:
        """The ends of the rows, less what other numbers of values add to them."""
        classes, present = self._classes, classes_there(self._classes, pattern)
        low, high = list(self._scaled.row_low), list(self._scaled.row_high)
        if not present.any():
            return low, high
        for number, row in enumerate(self._rows):
            pairs = zip(row.beta, present[row.classes].tolist(), strict=True)
            more = sum(beta * each for beta, each in pairs) * classes.facts.scale * self._unit
            for side in (low, high):
                end = side[number]
                side[number] = None if end is None else end - more
        return low, high


def classes_there(classes: Classes, pattern: Pattern) -> NDArray[np.int64]:
    """How many more units of each class have a value than in the truth."""
    more = pattern.present.astype(np.int64) - classes.facts.present
    return np.asarray(np.add.reduceat(more[classes.order], classes.start[:-1]), np.int64)


def _inside(fact: "object", total: Fraction) -> tuple[Fraction | None, Fraction | None]:
    """The ends of a fact less the true total; an end that is not possible is moved inwards."""
    low, high = (None if end is None else end - total for end in (fact.low, fact.high))  # type: ignore[attr-defined]
    if low is not None and fact.open_ends[0]:  # type: ignore[attr-defined]
        low = low / 2
    if high is not None and fact.open_ends[1]:  # type: ignore[attr-defined]
        high = high / 2
    return low, high


class SecondTableSearch:
    """Second tables by linear programs, for the classes that are open."""

    def __init__(
        self, decisions: Decisions, ranges: Propagation, check: FactCheck, clock: Clock
    ) -> None:
        self.decisions, self._check, self._clock = decisions, check, clock
        classes = decisions.classes
        self._classes = classes
        self._random = np.random.default_rng(0)
        self._patterns = Patterns(ranges, self._random)
        self._program = TotalsProgram(classes, check, self._patterns)
        self.runs = 0

    def _deadline(self) -> float:
        return time.monotonic() + max(0.0, self._clock.seconds_left)

    def many_at_once(self) -> None:
        """Programs with random costs, as long as they free somebody."""
        idle = 0
        while (
            idle < RANDOM_PROGRAMS_WITHOUT_NEWS
            and len(self.decisions.open)
            and not self._clock.over
        ):
            open_classes = self.decisions.open
            costs = np.zeros(len(self._classes))
            costs[open_classes] = self._random.standard_normal(len(open_classes))
            idle = 0 if self._try(open_classes, costs, replace=False) else idle + 1

    def in_small_groups(self) -> None:
        """A few classes at a time, with others in their place where they attain something."""
        idle = 0
        while idle < GROUPS_WITHOUT_NEWS and len(self.decisions.open) > SMALL_GROUP:
            if self._clock.over:
                return
            wanted = self._random.choice(self.decisions.open, SMALL_GROUP, replace=False)
            costs = np.zeros(len(self._classes))
            costs[wanted] = self._random.standard_normal(SMALL_GROUP)
            idle = 0 if self._try(wanted, costs, replace=True) else idle + 1

    def one_by_one(self, tries: int) -> None:
        """One class at a time, with others in its place where it attains something."""
        for which in self.decisions.open.tolist():
            for turn in range(tries):
                if self._clock.over:
                    return
                if self.decisions.standing[which] != ClassStanding.OPEN:
                    break
                costs = np.zeros(len(self._classes))
                costs[which] = 1.0 if turn % 2 else -1.0
                self._try(np.array([which]), costs, replace=True)

    def _try(self, wanted: NDArray[np.int64], costs: NDArray[np.float64], *, replace: bool) -> int:
        self.runs += 1
        classes, standing = self._classes, self.decisions.standing
        size = len(classes.facts.present)
        avoid = none_of(size)
        for which in wanted.tolist():
            avoid[classes.members(which)] = True
        prefer = none_of(size)
        prefer[classes.order] = np.repeat(standing == ClassStanding.FREE, classes.size)
        pattern = self._patterns.pattern(avoid, prefer, replace=replace)
        return 0 if pattern is None else self._take(pattern, wanted, costs)

    def at_extremes(
        self,
        wanted: int,
        costs: float,
        tops: NDArray[np.int64],
        bottoms: NDArray[np.int64],
        there: NDArray[np.int64],
    ) -> int:
        """Second tables in which so many units of each class have extremes, and a value at all."""
        pattern = self._patterns.pinned(tops, bottoms, there)
        weights = np.zeros(len(self._classes))
        weights[wanted] = costs
        return self._take(pattern, np.array([wanted]), weights)

    def _take(self, pattern: Pattern, wanted: NDArray[np.int64], costs: NDArray[np.float64]) -> int:
        for totals, common in self._program.totals(pattern, wanted, costs, self._deadline()):
            change = self._patterns.spread(totals, common, pattern)
            if len(change) and self._check.keeps(change):
                return self.decisions.free(change)
        return 0
