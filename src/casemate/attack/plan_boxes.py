"""Boxes that keep records out: queries that contain one record, some friends, and no strangers.

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

from casemate.attack.plan_language import Bits, Box, Language, Span, lowest

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
