"""The fewest queries that determine one record.

Where the language can select few different sets of records they are all enumerated: whether a
plan exists is then a question of rank, and the shortest is found by exhaustive search. Elsewhere
plans are differences (see `plan_sides`): one query and two queries are decided, longer plans are
looked for and shortened.
"""

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_boxes import Effort, Unfinished
from casemate.attack.plan_fewest import Fewest
from casemate.attack.plan_language import Box, Language, unpacked
from casemate.attack.plan_selections import (
    Selections,
    choices_around,
    coarse_choices,
    every_selection,
    selections,
)
from casemate.attack.plan_sides import Differences
from casemate.attack.plan_signed import signed_plan
from casemate.solve.exposure import determined
from casemate.solve.shortest import on_equations, short
from casemate.solve.system import System

Terms = tuple[tuple[Fraction, Box], ...]
"""Queries with their coefficients: what they add up to is the record's value."""

ROWS = 10_000_000
"""Rows looked at by one exhaustive search."""

STEPS = 60_000
"""Steps to decide whether two queries suffice; further searches have a third of them."""

POOL = 300
"""Selections among which a plan is looked for, or made shorter, where all are too many."""

PROGRAM = 20.0
"""The most seconds for one integer or linear program."""

MOST_SIDES = 4
"""Sides of a plan by differences: 16 queries."""


@dataclass(frozen=True)
class Found:
    """The shortest plan found, and what is proved: no plan has fewer than `at_least` queries.

    Without terms there is no plan, which is proved where `impossible`, or none was found.
    """

    terms: Terms = ()
    at_least: int = 1
    impossible: bool = False


class Targets:
    """Plans for the records of one table, one after the other."""

    def __init__(self, language: Language, least: int, random: np.random.Generator) -> None:
        self.language, self.least = language, least
        self._random = random

    @cached_property
    def every(self) -> Selections | None:
        """Every selection of enough records; None if they are too many."""
        return every_selection(self.language, self.least)

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        """The records that some plan determines, or may: all but twins where that is not known."""
        if self.every is None:
            return unpacked(self.language.alone, self.language.count)
        if not self.every.sets:
            return np.zeros(self.language.count, np.bool_)
        return determined(self.system, self._random.bytes)

    @cached_property
    def system(self) -> System:
        """Every selection as an equation."""
        return as_system(self._matrix)

    @cached_property
    def _matrix(self) -> NDArray[np.bool_]:
        every = self.every or Selections((), (), False)
        return every.matrix(self.language.count)

    @cached_property
    def _fewest(self) -> Fewest:
        return Fewest(self._matrix, self._random)

    def plan(self, target: int, most: int | None = None, seconds: float = 10.0) -> Found:
        """The shortest plan that is found, of at most `most` queries."""
        effort = Effort(STEPS, time.monotonic() + seconds)
        if not self.reachable[target]:
            return Found(impossible=True)
        limit = most or self.language.count
        found = self._exhaustive(target, limit, effort)
        if not found.terms and found.at_least <= limit:
            found = self._searched(target, limit, found.at_least, effort)
        return replace(found, terms=tuple(sorted(found.terms, key=_added_first)))

    def _exhaustive(self, target: int, limit: int, effort: Effort) -> Found:
        """Longer and longer plans, as far as all of them can be tried."""
        if self.every is None:
            return Found()
        terms, length = _tried(self.every, self._fewest, target, range(1, limit + 1), effort)
        return Found(terms, length)

    def _searched(self, target: int, limit: int, at_least: int, effort: Effort) -> Found:
        """The shortest of the plans that the other searches find."""
        alone = isolated(self.language, target) if self.least == 1 else None
        if alone is not None:
            return Found(((Fraction(1), alone),), 1)
        terms, bound = self._by_differences(target, max(2, at_least), effort)
        if len(terms) != bound and effort.seconds_left:
            other = self._from_pool(terms, target, bound, effort)
            terms = min((each for each in (terms, other) if each), key=len, default=())
        fits = len(terms) <= limit
        return Found(terms if fits else (), bound)

    def _by_differences(self, target: int, bound: int, effort: Effort) -> tuple[Terms, int]:
        """A plan of 2, 3, 4, 8 or 16 queries, and the length that is proved to be needed."""
        differences = Differences(self.language, target, self.least)
        if bound == 2:
            try:
                two = differences.plan(1, effort.share(STEPS))
                bound = 2 if two else 3
            except Unfinished:
                two = None
            if two:
                return _exact(two), bound
        for number in range(1, MOST_SIDES + 1):
            left = effort.share(STEPS // 3)
            try:
                found = differences.plan(number, left) if number > 1 else differences.three(left)
            except Unfinished:
                continue
            if found:
                return _exact(found), bound
        return (), bound

    def _from_pool(self, terms: Terms, target: int, bound: int, effort: Effort) -> Terms:
        """A plan made of other selections: of all, or of some with conditions that may help."""
        known, shorter = self.every, len(terms) - 1 if terms else None
        if known is None:
            known = self._pool(terms, target)
            fewest = Fewest(known.matrix(self.language.count), self._random)
            lengths = range(bound, len(terms) or MOST_SIDES + 1)
            found, _ = _tried(known, fewest, target, lengths, effort)
            if found or terms:
                return found
        matrix = known.matrix(self.language.count)
        seconds = min(PROGRAM, effort.seconds_left / 2)
        signs = signed_plan(matrix, target, seconds, self._random, shorter)
        if signs is not None:
            return tuple((Fraction(sign), known.boxes[i]) for i, sign in signs.items())
        return () if terms else self._by_program(known, as_system(matrix), target, effort)

    def _pool(self, terms: Terms, target: int) -> Selections:
        """Selections by conditions like those of a plan, or by coarse ones around the record."""
        boxes = [box for _, box in terms]
        choices = choices_around(self.language, boxes, target) if boxes else {}
        choices = choices or coarse_choices(self.language, target)
        return selections(self.language, choices, self.least, POOL)

    def _by_program(self, known: Selections, system: System, target: int, effort: Effort) -> Terms:
        """A combination with any coefficients, small ones in sum if the time allows it."""
        random = self._random.bytes
        found = next(short(system, [{target: 1}], min(PROGRAM, effort.seconds_left), random))
        if found is None:
            found = on_equations(system, range(system.rows), {target: 1}, random)
        weights = {} if found is None else found.coefficients
        divisor = 1 if found is None else found.divisor
        return tuple((Fraction(w, divisor), known.boxes[i]) for i, w in weights.items())


def _tried(
    known: Selections, fewest: Fewest, target: int, lengths: range, effort: Effort
) -> tuple[Terms, int]:
    """A plan of the first of these lengths that has one, and the length that is needed."""
    for length in lengths:
        if fewest.steps(length) > ROWS:
            return (), length
        try:
            chosen = fewest.of(length, target, effort.share(2 * ROWS))
        except Unfinished:
            return (), length
        if chosen is not None:
            return tuple((weight, known.boxes[i]) for i, weight in chosen.items()), length
    return (), lengths.stop


def _added_first(term: tuple[Fraction, Box]) -> bool:
    return term[0] < 0


def _exact(plan: list[tuple[int, Box]] | None) -> Terms:
    return tuple((Fraction(sign), box) for sign, box in plan or ())


def as_system(matrix: NDArray[np.bool_]) -> System:
    """A 0/1 matrix as equations."""
    row, column = np.nonzero(matrix)
    rows, columns = matrix.shape
    return System(rows, columns, row, column, np.ones(len(row), np.int64))


def isolated(language: Language, target: int) -> Box | None:
    """A query that selects one record alone, with few conditions; None if there is none."""
    box: dict[int, tuple[int, int]] = {}
    left, own = language.everybody, 1 << target
    axes = [(n, int(axis.places[target])) for n, axis in enumerate(language.axes)]
    while left != own:
        sets = [
            (left & language.between(n, (place, place)), n, place)
            for n, place in axes
            if place >= 0
        ]
        nearest, number, place = min(
            sets, key=lambda each: each[0].bit_count(), default=(left, 0, 0)
        )
        if nearest == left:
            return None
        left, box[number] = nearest, (place, place)
    return box
