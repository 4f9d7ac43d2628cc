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
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from casemate.attack.plan_boxes import Boxes, Effort, Friends
from casemate.attack.plan_language import Axis, Bits, Box, Language, Span

MOST_CHOICES = 400
"""Combinations of sides that are tried, of so many that are looked at."""

MOST_LOOKED_AT = 20_000

Sum = list[tuple[int, Box]]
"""Queries, each with its coefficient, whose answers add up to a record's value."""


@dataclass(frozen=True)
class Side:
    """Two conditions on one axis: the record satisfies the wider one and not the narrower one."""

    axis: int
    wider: Span | None
    narrower: Span
    between: Bits  # who satisfies the wider one only
    beyond: Bits  # who satisfies both


def sides(language: Language, target: int, least: int) -> list[Side]:
    """Every side of a record with so many beyond it, those with the fewest others between first."""
    found = [
        Side(number, wider, narrower, *_sets(language, number, wider, narrower))
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

    def by(self, chosen: Sequence[Side], least: int, effort: Effort) -> Iterator[Box]:
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

    def _choices(self, number: int) -> list[tuple[Side, ...]]:
        """Sides on different axes with enough records beyond all, those that leave fewest first."""
        usable = [side for side in self.sides if side.beyond.bit_count() >= self._least]
        found: list[tuple[int, int, tuple[Side, ...]]] = []
        for chosen in islice(combinations(usable, number), MOST_LOOKED_AT):
            if len({side.axis for side in chosen}) < number:
                continue
            between, beyond = self._meeting(chosen)
            if beyond.bit_count() >= self._least:
                found.append((between.bit_count(), len(found), chosen))
        return [chosen for _, _, chosen in sorted(found)[:MOST_CHOICES]]

    def _meeting(self, chosen: Sequence[Side]) -> tuple[Bits, Bits]:
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

    def _completed(self, side: Side, box: Box) -> Iterator[Sum]:
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


def _signed(chosen: Sequence[Side], box: Box) -> Sum:
    """Every choice of the wider or the narrower condition of each side, narrower ones negative."""
    plan: Sum = []
    for narrow in product((False, True), repeat=len(chosen)):
        query = box
        for side, is_narrow in zip(chosen, narrow, strict=True):
            query = _with(query, side.axis, side.narrower if is_narrow else side.wider)
        plan.append(((-1) ** sum(narrow), query))
    return plan
