"""Plans by differences: two queries that differ in one record, and trackers that do so in steps.

A side of a record on a column is a pair of conditions, a wider and a narrower one, between which
the record lies: `age <= 40` and `age < 40`, or nothing and `sex = 'male'` for a woman. If a box on
the other columns keeps everybody else out who lies between the two, then the wider query less the
narrower one is the record. With two sides on two columns, four queries do the same and each of
them may be much larger (inclusion and exclusion: the general tracker against a rule that refuses
small queries); with j sides, 2^j.

Source     Denning, Denning and Schwartz, "The tracker: a threat to statistical database security"
           (1979), for the idea; there complements and unions are part of the language.
Guarantee  Two queries suffice iff some single side and box do: where the wider query has all of the
           narrower one and one record more, one condition of the narrower one alone excludes the
           record, and may be widened to a side.

Boxes that keep records out: queries that contain one record, some friends, and no strangers.

Almost every plan comes down to this. To tell a record from those beside it, some strangers have to
be kept out by conditions on other columns, and so many friends have to stay that the query, or
what is left of it without the record, is large enough to be answered.

Method     Take a stranger that is still inside. Some condition of the box keeps it out: on each
           column there is one weakest condition that does, and the box satisfies at least one of
           them. Branch over them, the one that keeps most friends first; the stranger with the
           fewest ways out is taken first; and what was tried in one branch is forbidden in the
           next, so that no box is met twice. A branch with too few friends is given up.
Guarantee  If the search ends by itself, every box that there is lies inside one that was given, so
           no box given means that there is none.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from casemate.attack.plan.language import Axis, Bits, Box, Language, Span, lowest

LOOKED_AT = 6
"""How many strangers are looked at for the one with the fewest ways out."""


class Unfinished(Exception):
    """A search was given up before its end."""


@dataclass
class Effort:
    """How many steps a search may still take; all searches for one plan share them."""

    steps: int
    until: float = math.inf  # a time of the monotonic clock

    def step(self, steps: int = 1) -> None:
        """Take some steps, or give up."""
        if self.steps <= 0 or time.monotonic() > self.until:
            raise Unfinished
        self.steps -= steps

    @property
    def seconds_left(self) -> float:
        """Seconds before the time is over."""
        return max(0.0, self.until - time.monotonic())

    def share(self, steps: int) -> "Effort":
        """A part of what is left of the time, with steps of its own."""
        return Effort(steps, self.until)


@dataclass(frozen=True)
class Friends:
    """Records of which at least so many have to stay in a box."""

    bits: Bits
    least: int

    @property
    def enough(self) -> bool:
        """Whether there are so many."""
        return self.bits.bit_count() >= self.least


@dataclass(frozen=True)
class _Kept:
    """Values of one axis that the box has to contain; `free`: it may have no condition there."""

    span: Span
    free: bool = False

    def allows(self, span: Span) -> bool:
        return not self.free and span[0] <= self.span[0] and self.span[1] <= span[1]

    def with_place(self, place: int, ordered: bool) -> "_Kept":
        """The same, but a value that was to be kept out stays."""
        if place < 0 or not ordered:
            return _Kept(self.span, True)
        return _Kept((min(self.span[0], place), max(self.span[1], place)), self.free)


@dataclass(frozen=True)
class _Way:
    """A condition that keeps a stranger out, and the friends that stay."""

    axis: int
    span: Span
    inside: Bits
    friends: tuple[Friends, ...]

    @property
    def rank(self) -> int:
        return -sum(each.bits.bit_count() for each in self.friends)


@dataclass(frozen=True)
class _Node:
    """A box so far: what it has to contain, the strangers still inside, and the friends."""

    box: Box
    kept: Mapping[int, _Kept]
    strangers: Bits
    friends: tuple[Friends, ...]


class Boxes:
    """The search for boxes around one record, over the axes that are free to have conditions."""

    def __init__(
        self, language: Language, target: int, axes: Sequence[int], effort: Effort
    ) -> None:
        self._language, self._effort = language, effort
        self._places = {number: language.axes[number].places for number in axes}
        self._own = {n: int(places[target]) for n, places in self._places.items()}
        self._axes = [number for number in axes if self._own[number] >= 0]

    def around(self, strangers: Bits, friends: Sequence[Friends]) -> Iterator[Box]:
        """Boxes with enough friends and no stranger, each as wide as its strangers let it be."""
        if not all(each.enough for each in friends):
            return
        kept = {number: _Kept((own, own)) for number, own in self._own.items()}
        open_ = [_Node({}, kept, strangers, tuple(friends))]
        while open_:
            self._effort.step()
            node = open_.pop()
            if node.strangers:
                open_ += reversed(list(self._branches(node)))
            else:
                yield node.box

    def _branches(self, node: _Node) -> Iterator[_Node]:
        """The ways to keep one stranger out, each without those before it."""
        stranger, ways = self._hardest(node)
        kept = dict(node.kept)
        for way in sorted(ways, key=lambda each: each.rank):
            left = node.strangers & way.inside
            yield _Node({**node.box, way.axis: way.span}, dict(kept), left, way.friends)
            place = int(self._places[way.axis][stranger])
            ordered = self._language.axes[way.axis].ordered
            kept[way.axis] = kept[way.axis].with_place(place, ordered)

    def _hardest(self, node: _Node) -> tuple[int, list[_Way]]:
        """The stranger with the fewest ways out, of the first few, and those ways."""
        best: tuple[int, list[_Way]] | None = None
        strangers = node.strangers
        for _ in range(LOOKED_AT):
            if not strangers:
                break
            stranger = lowest(strangers)
            strangers &= strangers - 1
            ways = list(self._ways(stranger, node))
            if best is None or len(ways) < len(best[1]):
                best = stranger, ways
            if len(ways) < 2:
                break
        return best or (0, [])

    def _ways(self, stranger: int, node: _Node) -> Iterator[_Way]:
        """The weakest condition on each axis that keeps a stranger out and enough friends in."""
        for number in self._axes:
            span = self._without(stranger, number, node.box.get(number))
            if span is None or not node.kept[number].allows(span):
                continue
            inside = self._language.between(number, span)
            left = tuple(Friends(each.bits & inside, each.least) for each in node.friends)
            if all(each.enough for each in left):
                yield _Way(number, span, inside, left)

    def _without(self, stranger: int, number: int, now: Span | None) -> Span | None:
        """The condition on an axis, as wide as can be, that a stranger does not satisfy."""
        axis, own = self._language.axes[number], self._own[number]
        place = int(self._places[number][stranger])
        if place == own:
            return None
        if not axis.ordered:
            return own, own
        low, high = now or (0, axis.last)
        if place < 0:
            return low, high
        return (place + 1, high) if place < own else (low, place - 1)


# Plan sides -------------------------------------------------------------------------------------


MOST_CHOICES = 400
"""Combinations of sides that are tried, of so many that are looked at."""

MOST_LOOKED_AT = 20_000

Sum = list[tuple[int, Box]]
"""Queries, each with its coefficient, whose answers add up to a record's value."""


@dataclass(frozen=True)
class Difference:
    """Two conditions on one axis: the record satisfies the wider one and not the narrower one."""

    axis: int
    wider: Span | None
    narrower: Span
    between: Bits  # who satisfies the wider one only
    beyond: Bits  # who satisfies both


def sides(language: Language, target: int, least: int) -> list[Difference]:
    """Every side of a record with so many beyond it, those with the fewest others between first."""
    found = [
        Difference(number, wider, narrower, *_sets(language, number, wider, narrower))
        for number, axis in enumerate(language.axes)
        for wider, narrower in _pairs(axis, target)
        if axis.count(narrower) >= least
    ]
    return sorted(found, key=lambda side: (side.between.bit_count(), side.axis, side.narrower))


def _pairs(axis: Axis, target: int) -> Iterator[tuple[Span | None, Span]]:
    own = int(axis.places[target])
    if not axis.ordered:
        yield from ((None, (place, place)) for place in range(axis.last + 1) if place != own)
        return
    if own < 0:
        yield None, (0, axis.last)
        return
    if own > 0:
        yield (0, own), (0, own - 1)
    if own < axis.last:
        yield (own, axis.last), (own + 1, axis.last)


def _sets(language: Language, number: int, wider: Span | None, narrower: Span) -> tuple[Bits, Bits]:
    beyond = language.between(number, narrower)
    whole = language.everybody if wider is None else language.between(number, wider)
    return whole & ~beyond, beyond


class Differences:
    """Plans for one record by sides, every query with at least `least` records."""

    def __init__(self, language: Language, target: int, least: int) -> None:
        self._language, self._target, self._least = language, target, least
        self._own = 1 << target
        self.sides = sides(language, target, max(1, least - 1))

    def by(self, chosen: Sequence[Difference], least: int, effort: Effort) -> Iterator[Box]:
        """Boxes in which the record is alone between the sides, with so many beyond all of them."""
        between, beyond = self._meeting(chosen)
        used = {side.axis for side in chosen}
        axes = [number for number in range(len(self._language.axes)) if number not in used]
        boxes = Boxes(self._language, self._target, axes, effort)
        return boxes.around(between & ~self._own, [Friends(beyond, least)])

    def plan(self, number: int, effort: Effort) -> Sum | None:
        """A plan with so many sides; None if there is none."""
        for chosen in self._choices(number):
            for box in self.by(chosen, self._least, effort):
                return _signed(chosen, box)
        return None

    def _choices(self, number: int) -> list[tuple[Difference, ...]]:
        """Sides on different axes with enough records beyond all, those that leave fewest first."""
        usable = [side for side in self.sides if side.beyond.bit_count() >= self._least]
        found: list[tuple[int, int, tuple[Difference, ...]]] = []
        for chosen in islice(combinations(usable, number), MOST_LOOKED_AT):
            if len({side.axis for side in chosen}) < number:
                continue
            between, beyond = self._meeting(chosen)
            if beyond.bit_count() >= self._least:
                found.append((between.bit_count(), len(found), chosen))
        return [chosen for _, _, chosen in sorted(found)[:MOST_CHOICES]]

    def _meeting(self, chosen: Sequence[Difference]) -> tuple[Bits, Bits]:
        """Who lies between all of some sides, and who beyond all of them."""
        between = beyond = self._language.everybody
        for side in chosen:
            between, beyond = between & side.between, beyond & side.beyond
        return between, beyond

    def three(self, effort: Effort) -> Sum | None:
        """A plan of three queries, of the kinds that can be found where two do not suffice."""
        for side in self.sides:
            for box in self.by((side,), self._least - 1, effort):
                found = next(self._completed(side, box), None)
                if found is not None:
                    return found
        return self._two_values(effort)

    def _completed(self, side: Difference, box: Box) -> Iterator[Sum]:
        """The narrower query is one record short of enough: what it would show, otherwise."""
        wider = [(1, _with(box, side.axis, side.wider))]
        axis = self._language.axes[side.axis]
        if side.wider is not None:
            low, high = side.wider
            other = (high, axis.last) if low == 0 else (0, low)
            across = [
                (1, _with(box, side.axis, other)),
                (-1, _with(box, side.axis, (0, axis.last))),
            ]
            yield from self._answered([*wider, *across])
        small = _with(box, side.axis, side.narrower)
        for larger, rest in self._neighbours(small, side.axis):
            yield from self._answered([*wider, (-1, larger), (1, rest)])

    def _neighbours(self, small: Box, besides: int) -> Iterator[tuple[Box, Box]]:
        """Queries that are a small one and a rest, with the rest."""
        for number, (low, high) in small.items():
            axis = self._language.axes[number]
            if number == besides:
                continue
            if not axis.ordered:
                yield from self._with_one_more_value(small, number)
                continue
            if low > 0:
                yield _with(small, number, (0, high)), _with(small, number, (0, low - 1))
            if high < axis.last:
                last = axis.last
                yield _with(small, number, (low, last)), _with(small, number, (high + 1, last))

    def _with_one_more_value(self, small: Box, number: int) -> Iterator[tuple[Box, Box]]:
        """Without an equality, if there is a single other value that this lets in."""
        larger = _with(small, number, None)
        more = self._language.members(larger) & ~self._language.members(small)
        for place in range(self._language.axes[number].last + 1):
            rest = _with(small, number, (place, place))
            if more and self._language.members(rest) == more:
                yield larger, rest

    def _answered(self, plan: Sum) -> Iterator[Sum]:
        """The plan, if every query of it is large enough."""
        if all(self._language.members(box).bit_count() >= self._least for _, box in plan):
            yield plan

    def _two_values(self, effort: Effort) -> Sum | None:
        """All, less two values of a column that everybody else has."""
        everybody = self._language.everybody
        for one, two in islice(combinations(self.sides, 2), MOST_LOOKED_AT):
            if one.axis != two.axis or self._language.axes[one.axis].ordered:
                continue
            axes = [number for number in range(len(self._language.axes)) if number != one.axis]
            strangers = everybody & ~(one.beyond | two.beyond | self._own)
            friends = [Friends(one.beyond, self._least), Friends(two.beyond, self._least)]
            boxes = Boxes(self._language, self._target, axes, effort)
            for box in boxes.around(strangers, friends):
                parts = [(-1, _with(box, each.axis, each.narrower)) for each in (one, two)]
                return [(1, box), *parts]
        return None


def _with(box: Box, axis: int, span: Span | None) -> Box:
    """The box with another condition, or none, on one axis."""
    others = {number: each for number, each in box.items() if number != axis}
    return others if span is None else {**others, axis: span}


def _signed(chosen: Sequence[Difference], box: Box) -> Sum:
    """Every choice of the wider or the narrower condition of each side, narrower ones negative."""
    plan: Sum = []
    for narrow in product((False, True), repeat=len(chosen)):
        query = box
        for side, is_narrow in zip(chosen, narrow, strict=True):
            query = _with(query, side.axis, side.narrower if is_narrow else side.wider)
        plan.append(((-1) ** sum(narrow), query))
    return plan
