"""Plans by differences: two queries that differ in one record, and trackers that do so in steps.

A side of a record on a column is a pair of conditions, a wider and a narrower one, between which
the record lies: `age <= 40` and `age < 40`, or nothing and `sex = 'male'` for a woman. If a box on
the other columns keeps everybody else out who lies between the two, then the wider query less the
narrower one is the record. With two sides on two columns, four queries do the same and each of
them may be much larger (inclusion and exclusion: the general tracker against a rule that refuses
small queries); with j sides, 2^j. Almost every plan comes down to a box that contains one record,
some friends, and no strangers: strangers have to be kept out by conditions on other columns, and so
many friends have to stay that the query, or what is left of it without the record, is large enough
to be answered.

Source     Denning, Denning and Schwartz, "The tracker: a threat to statistical database security"
           (1979), for the idea; there complements and unions are part of the language.
Method     Of the search for boxes: take a stranger that is still inside. Some condition of the box
           keeps it out: on each column there is one weakest condition that does, and the box
           satisfies at least one of them. Branch over them, the one that keeps most friends first;
           the stranger with the fewest ways out is taken first; and what was tried in one branch is
           forbidden in the next, so that no box is met twice. A branch with too few friends is
           given up.
Guarantee  Two queries suffice iff some single side and box do: where the wider query has all of the
           narrower one and one record more, one condition of the narrower one alone excludes the
           record, and may be widened to a side. If the search for boxes ends by itself, every box
           that there is lies inside one that was given, so no box given means that there is none.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import NamedTuple

from casemate.attack.plan.language import Axis, Bits, Box, Language, Span, lowest

MOST_STRANGERS_COMPARED = 6
"""How many strangers are looked at for the one with the fewest ways out."""


class Unfinished(Exception):
    """A search was given up before its end."""


@dataclass
class Effort:
    """How many steps a search may still take, and until when (by the monotonic clock)."""

    steps: int
    until: float = math.inf

    def step(self, steps: int = 1) -> None:
        """Take some steps, or give up."""
        if self.steps <= 0 or time.monotonic() > self.until:
            raise Unfinished
        self.steps -= steps

    @property
    def seconds_left(self) -> float:
        """Seconds before the time is over."""
        return max(0.0, self.until - time.monotonic())


class _Node(NamedTuple):
    """A box so far: what it has to let through, and the strangers and friends still inside.

    `kept` has the values of each axis that its condition must contain; None where it may have no
    condition any more.
    """

    box: Box
    kept: Mapping[int, Span | None]
    strangers: Bits
    friends: Bits


class _Way(NamedTuple):
    """A condition that keeps a stranger out, the records inside it, and the friends that stay."""

    axis: int
    span: Span
    inside: Bits
    friends: Bits


class Boxes:
    """The search for boxes around one record, over the axes that are free to have conditions."""

    def __init__(
        self, language: Language, target: int, axes: Sequence[int], effort: Effort
    ) -> None:
        self._language, self._effort = language, effort
        own = {number: int(language.axes[number].places[target]) for number in axes}
        self._own = {number: place for number, place in own.items() if place >= 0}

    def around(self, strangers: Bits, friends: Bits, least: int) -> Iterator[Box]:
        """Boxes with enough friends and no stranger, each as wide as its strangers let it be."""
        kept = {number: (own, own) for number, own in self._own.items()}
        open_ = [_Node({}, kept, strangers, friends)] if friends.bit_count() >= least else []
        while open_:
            self._effort.step()
            node = open_.pop()
            if node.strangers:
                open_ += reversed(list(self._branches(node, least)))
            else:
                yield node.box

    def _branches(self, node: _Node, least: int) -> Iterator[_Node]:
        """The ways to keep one stranger out, each without those before it."""
        stranger, ways = self._hardest(node, least)
        kept = dict(node.kept)
        for way in sorted(ways, key=lambda each: -each.friends.bit_count()):
            box = {**node.box, way.axis: way.span}
            yield _Node(box, dict(kept), node.strangers & way.inside, way.friends)
            axis, now = self._language.axes[way.axis], kept[way.axis]
            place = int(axis.places[stranger])
            if place < 0 or not axis.ordered or now is None:
                kept[way.axis] = None
            else:
                kept[way.axis] = min(now[0], place), max(now[1], place)

    def _hardest(self, node: _Node, least: int) -> tuple[int, list[_Way]]:
        """The stranger with the fewest ways out, of the first few, and those ways."""
        found: list[tuple[int, list[_Way]]] = []
        strangers = node.strangers
        while strangers and len(found) < MOST_STRANGERS_COMPARED:
            stranger = lowest(strangers)
            strangers &= strangers - 1
            found.append((stranger, list(self._ways(stranger, node, least))))
            if len(found[-1][1]) < 2:
                break
        return min(found, key=lambda each: len(each[1]))

    def _ways(self, stranger: int, node: _Node, least: int) -> Iterator[_Way]:
        """The weakest condition on each axis that keeps a stranger out and enough friends in."""
        for number, must in node.kept.items():
            span = self._without(stranger, number, node.box.get(number))
            if span is None or must is None or span[0] > must[0] or span[1] < must[1]:
                continue
            inside = self._language.between(number, span)
            friends = node.friends & inside
            if friends.bit_count() >= least:
                yield _Way(number, span, inside, friends)

    def _without(self, stranger: int, number: int, now: Span | None) -> Span | None:
        """The condition on an axis, as wide as can be, that a stranger does not satisfy."""
        axis, own = self._language.axes[number], self._own[number]
        place = int(axis.places[stranger])
        if place == own:
            return None
        if not axis.ordered:
            return own, own
        low, high = now or (0, axis.last)
        if place < 0:
            return low, high
        return (place + 1, high) if place < own else (low, place - 1)


# Sides, and the differences they make -----------------------------------------------------------


MOST_TRIED_COMBINATIONS = 400
"""Combinations of sides that are tried, of so many that are looked at."""

MOST_SIDE_COMBINATIONS = 20_000

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

    @classmethod
    def of(cls, language: Language, axis: int, wider: Span | None, narrower: Span) -> "Difference":
        """A side, and whom it concerns."""
        beyond = language.between(axis, narrower)
        whole = language.everybody if wider is None else language.between(axis, wider)
        return cls(axis, wider, narrower, whole & ~beyond, beyond)


def sides(language: Language, target: int, least: int) -> list[Difference]:
    """Every side of a record with so many beyond it, those with the fewest others between first."""
    found = [
        Difference.of(language, number, wider, narrower)
        for number, axis in enumerate(language.axes)
        for wider, narrower in _pairs(axis, target)
        if axis.count(narrower) >= max(1, least)
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


class Differences:
    """Plans for one record by sides, every query with at least `least` records."""

    def __init__(self, language: Language, target: int, least: int) -> None:
        self._language, self._target, self._least = language, target, least
        self._sides = sides(language, target, least)

    def plan(self, number: int, effort: Effort) -> Sum | None:
        """A plan with so many sides; None if there is none."""
        axes = range(len(self._language.axes))
        for between, beyond, chosen in self._choices(number):
            free = [axis for axis in axes if all(axis != side.axis for side in chosen)]
            boxes = Boxes(self._language, self._target, free, effort)
            strangers = between & ~(1 << self._target)
            for box in boxes.around(strangers, beyond, self._least):
                return _inclusion_exclusion(chosen, box)
        return None

    def _choices(self, number: int) -> list[tuple[Bits, Bits, tuple[Difference, ...]]]:
        """Sides on different axes with enough records beyond all, those that leave fewest first.

        With who lies between all of them, and who beyond all of them. Single sides are all tried,
        because what they cannot do is then proved.
        """
        found = []
        looked_at, most = (
            (None, None) if number == 1 else (MOST_SIDE_COMBINATIONS, MOST_TRIED_COMBINATIONS)
        )
        for chosen in islice(combinations(self._sides, number), looked_at):
            if len({side.axis for side in chosen}) < number:
                continue
            between = beyond = self._language.everybody
            for side in chosen:
                between, beyond = between & side.between, beyond & side.beyond
            if beyond.bit_count() >= self._least:
                found.append((between, beyond, chosen))
        return sorted(found, key=lambda each: each[0].bit_count())[:most]


def _inclusion_exclusion(chosen: Sequence[Difference], box: Box) -> Sum:
    """Every choice of the wider or the narrower condition of each side, narrower ones negative."""
    plan: Sum = []
    for narrow in product((False, True), repeat=len(chosen)):
        query = dict(box)
        for side, is_narrow in zip(chosen, narrow, strict=True):
            span = side.narrower if is_narrow else side.wider
            if span is not None:
                query[side.axis] = span
        plan.append(((-1) ** sum(narrow), query))
    return plan
