"""The fewest queries that determine one record.

Where the language can select few different sets of records they are all enumerated: whether a
plan exists is then a question of rank, and the shortest is found by exhaustive search. Elsewhere
plans are differences (see `sides`): one query and two queries are decided, longer plans are
looked for and shortened.

Method     Of `ExhaustiveSearch`: a combination of m queries is the record iff, once m - 2 of them
           are eliminated, two of the others are parallel except in the record's own coordinate.
           So the search goes over m - 2 queries and finds the last two by sorting. The
           other coordinates are replaced by m + 4 random combinations of them modulo a prime: what
           is parallel stays so.
Guarantee  A plan of at most 14 queries that is there is missed only if m + 4 random combinations
           of a vector that is not 0 all are: below 1e-28 for each vector. For its coefficients are
           quotients of determinants of 0/1 matrices, which are below the prime. One that is found
           is solved for and checked in exact arithmetic.
Cost       About N^(m-2) / (m-2)! steps, each linear in the number N of queries.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.language import (
    Box,
    Language,
    Selections,
    choices_around,
    enumerate_selections,
    selections,
    unpack_bits,
)
from casemate.attack.plan.sides import Differences, Effort, Unfinished
from casemate.exact import System, certify_with, determined_columns, short_certificates

PROJECTION_PRIME = 65_521
"""Above every determinant of a 0/1 matrix with up to 14 rows; its inverses fit in a small table."""

EXTRA_COORDINATES = 4
"""Coordinates beyond the length of a plan."""

_HASH_WEIGHTS = np.array([PROJECTION_PRIME**k % 2**61 | 1 for k in range(1, 64)], np.int64)
Rows = NDArray[np.int64]


class ExhaustiveSearch:
    """Exhaustive search among the rows of a 0/1 matrix: queries by records."""

    def __init__(self, matrix: NDArray[np.bool_], random: np.random.Generator) -> None:
        self._first, self._kind = distinct_columns(matrix, random)
        self._sizes = np.bincount(self._kind)
        self._matrix, self._random = matrix, random

    def of(self, length: int, target: int, effort: Effort) -> dict[int, Fraction] | None:
        """Exactly so many rows, with coefficients, that add up to the target; None if none do.

        No fewer may do: ask for fewer first.
        """
        if length == 1:
            return self._single(target)
        rows = self._project_rows(length + EXTRA_COORDINATES, target)
        for chosen in self._pairs(rows, length, effort):
            found = self._solve(chosen, target)
            if found is not None:
                return found
        return None

    def steps(self, length: int) -> int:
        """How many steps a search takes at most."""
        return len(self._matrix) * math.comb(len(self._matrix), max(0, length - 2))

    def _single(self, target: int) -> dict[int, Fraction] | None:
        alone = self._matrix[:, target] & (self._matrix.sum(axis=1) == 1)
        return {int(np.flatnonzero(alone)[0]): Fraction(1)} if alone.any() else None

    def _project_rows(self, width: int, target: int) -> Rows:
        """Random combinations of the other columns, and the target's own column last."""
        kind = self._kind[target]
        others = self._first if self._sizes[kind] > 1 else np.delete(self._first, kind)
        weights = self._random.integers(0, PROJECTION_PRIME, (len(others), width))
        mixed = self._matrix[:, others].astype(np.int64) @ weights % PROJECTION_PRIME
        return np.column_stack([mixed, self._matrix[:, target].astype(np.int64)])

    def _pairs(self, rows: Rows, length: int, effort: Effort) -> Iterator[tuple[int, ...]]:
        """Rows that are a plan together, as far as the prime can tell."""
        effort.step(len(rows))
        if length == 2:
            yield from _parallel(rows)
            return
        for first in range(len(rows) - length + 1):
            line = rows[first]
            pivots = np.flatnonzero(line[:-1])
            if not len(pivots):
                continue  # it depends on those eliminated before
            pivot, later = int(pivots[0]), rows[first + 1 :]
            scaled = line * pow(int(line[pivot]), -1, PROJECTION_PRIME) % PROJECTION_PRIME
            reduced = (later - later[:, pivot, None] * scaled) % PROJECTION_PRIME
            for others in self._pairs(reduced, length - 1, effort):
                yield first, *(first + 1 + other for other in others)

    def _solve(self, rows: tuple[int, ...], target: int) -> dict[int, Fraction] | None:
        """The coefficients, if these rows are a plan."""
        system = as_system(self._matrix[list(rows)])
        found = certify_with(system, range(len(rows)), {target: 1})
        if found is None:
            return None
        weights = found.coefficients.items()
        return {rows[i]: Fraction(weight, found.divisor) for i, weight in weights}


def distinct_columns(
    matrix: NDArray[np.bool_], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One column of each kind of a 0/1 matrix, and the kind of each: told apart by random sums."""
    weights = random.integers(0, 2**64, len(matrix), np.uint64)
    sums = np.zeros(matrix.shape[1], np.uint64)
    for row, weight in zip(matrix, weights, strict=True):
        sums[row] += weight
    found = np.unique(sums, return_index=True, return_inverse=True)
    return found[1].astype(np.int64), found[2].astype(np.int64)


def _parallel(rows: Rows) -> Iterator[tuple[int, int]]:
    """Pairs of rows that are parallel except in the last coordinate."""
    places = np.flatnonzero(rows[:, :-1].any(axis=1))
    lines = rows[places]
    pivot = (lines[:, :-1] != 0).argmax(axis=1)
    leading = lines[np.arange(len(lines)), pivot]
    scaled = lines * _inverses()[leading][:, None] % PROJECTION_PRIME
    keys = scaled[:, :-1] @ _HASH_WEIGHTS[: scaled.shape[1] - 1]  # modulo 2^64
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order[:1]] - 1))
    head = np.repeat(starts, np.diff(starts, append=len(order)))
    others = np.flatnonzero(scaled[order, -1] != scaled[order[head], -1])
    others = others[np.unique(head[others], return_index=True)[1]]  # the first of each direction
    pairs = zip(places[order[head[others]]].tolist(), places[order[others]].tolist(), strict=True)
    yield from sorted(pairs)


@cache
def _inverses() -> Rows:
    """The inverse of each number modulo the prime; 0 has none."""
    return np.array(
        [0, *(pow(number, -1, PROJECTION_PRIME) for number in range(1, PROJECTION_PRIME))], np.int64
    )


# Queries that are only added and subtracted, by integer programming -----------------------------
#
# The shortest plan of this kind is found, or a good one when the time is over. Plans with other
# coefficients may be shorter, so nothing is proved about those.


Signs = dict[int, int]
"""Rows with +1 or -1, which add up to one column."""


def signed_plan(
    matrix: NDArray[np.bool_],
    target: int,
    seconds: float,
    random: np.random.Generator,
    most: int | None = None,
) -> Signs | None:
    """At most so many rows of a 0/1 matrix that add up to a column; None if none were found."""
    from ortools.sat.python import cp_model

    if seconds <= 0:
        return None
    model, rows = cp_model.CpModel(), range(len(matrix))
    added = [model.new_bool_var(f"added {row}") for row in rows]
    taken = [model.new_bool_var(f"taken {row}") for row in rows]
    others = np.delete(matrix, target, axis=1)
    others = others[:, np.sort(distinct_columns(others, random)[0])].T
    for column, total in ((matrix[:, target], 1), *((each, 0) for each in others)):
        used = np.flatnonzero(column).tolist()
        model.add(sum(added[i] - taken[i] for i in used) == total)
    size = sum(added) + sum(taken)
    if most is not None:
        model.add(size <= most)
    model.minimize(size)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers, solver.parameters.random_seed = 1, 0
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    signs = {i: solver.value(added[i]) - solver.value(taken[i]) for i in rows}
    return {i: sign for i, sign in signs.items() if sign}


# The shortest plan for each record --------------------------------------------------------------


Terms = tuple[tuple[Fraction, Box], ...]
"""Queries with their coefficients: what they add up to is the record's value."""

MOST_SEARCH_ROWS = 10_000_000
"""Rows looked at by one exhaustive search."""

TWO_QUERY_STEPS = 60_000
"""Steps to decide whether two queries suffice; further searches have a third of them."""

POOL_SELECTIONS = 300
"""Selections among which a plan is looked for, or made shorter, where all are too many."""

PROGRAM_TIME_LIMIT_SECONDS = 20.0
"""The most seconds for one integer or linear program."""

MOST_SIDES = 4
"""Sides of a plan by differences: 16 queries."""


@dataclass(frozen=True)
class ShortestPlan:
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
        return enumerate_selections(self.language, self.least)

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        """The records that some plan determines, or may: all but twins where that is not known."""
        if self.every is None:
            return unpack_bits(self.language.alone, self.language.count)
        if not self.every.sets:
            return np.zeros(self.language.count, np.bool_)
        return determined_columns(self.system, self._random.bytes)

    @cached_property
    def system(self) -> System:
        """Every selection as an equation."""
        return as_system(self._matrix)

    @cached_property
    def _matrix(self) -> NDArray[np.bool_]:
        every = self.every or Selections((), (), False)
        return every.matrix(self.language.count)

    @cached_property
    def _fewest(self) -> ExhaustiveSearch:
        return ExhaustiveSearch(self._matrix, self._random)

    def plan(self, target: int, most: int | None = None, seconds: float = 10.0) -> ShortestPlan:
        """The shortest plan that is found, of at most `most` queries."""
        until = time.monotonic() + seconds
        if not self.reachable[target]:
            return ShortestPlan(impossible=True)
        limit, bound = most or self.language.count, 1
        terms: Terms = ()
        if self.every is not None:
            lengths = range(1, limit + 1)
            terms, bound = _try_lengths(self.every, self._fewest, target, lengths, until)
        if not terms and bound <= limit:
            terms, bound = self._search(target, bound, until)
        kept = terms if len(terms) <= limit else ()
        added_first = sorted(kept, key=lambda term: term[0] < 0)
        return ShortestPlan(tuple(added_first), bound)

    def _search(self, target: int, bound: int, until: float) -> tuple[Terms, int]:
        """The shortest of the plans that the other searches find, and what is proved."""
        alone = isolating_box(self.language, target) if self.least == 1 else None
        if alone is not None:
            return ((Fraction(1), alone),), 1
        terms, bound = self._by_differences(target, max(2, bound), until)
        if len(terms) != bound and time.monotonic() < until:
            terms = self._from_pool(terms, target, bound, until) or terms
        return terms, bound

    def _by_differences(self, target: int, bound: int, until: float) -> tuple[Terms, int]:
        """A plan of 2, 4, 8 or 16 queries, and the length that is proved to be needed."""
        differences = Differences(self.language, target, self.least)
        for number in range(1 if bound == 2 else 2, MOST_SIDES + 1):
            try:
                steps = TWO_QUERY_STEPS if number == 1 else TWO_QUERY_STEPS // 3
                found = differences.plan(number, Effort(steps, until))
            except Unfinished:
                continue
            if found:
                return tuple((Fraction(sign), box) for sign, box in found), bound
            bound = max(bound, 3)
        return (), bound

    def _from_pool(self, terms: Terms, target: int, bound: int, until: float) -> Terms:
        """A shorter plan of other selections: of all, or of some with conditions that may help."""
        known = self.every
        if known is None:
            choices = choices_around(self.language, target, [box for _, box in terms])
            known = selections(self.language, choices, self.least, POOL_SELECTIONS)
            fewest = ExhaustiveSearch(known.matrix(self.language.count), self._random)
            lengths = range(bound, len(terms) or MOST_SIDES + 1)
            found, _ = _try_lengths(known, fewest, target, lengths, until)
            if found or terms:
                return found
        matrix = known.matrix(self.language.count)
        seconds = min(PROGRAM_TIME_LIMIT_SECONDS, (until - time.monotonic()) / 2)
        shorter = len(terms) - 1 if terms else None
        signs = signed_plan(matrix, target, seconds, self._random, shorter)
        if signs is not None:
            return tuple((Fraction(sign), known.boxes[i]) for i, sign in signs.items())
        return () if terms else self._by_program(known, as_system(matrix), target, until)

    def _by_program(self, known: Selections, system: System, target: int, until: float) -> Terms:
        """A combination with any coefficients, small ones in sum if the time allows it."""
        random, seconds = self._random.bytes, max(0.0, until - time.monotonic())
        seconds = min(PROGRAM_TIME_LIMIT_SECONDS, seconds)
        found = next(short_certificates(system, [{target: 1}], seconds, random))
        if found is None:
            found = certify_with(system, range(system.rows), {target: 1}, random)
        if found is None:
            return ()
        weights = found.coefficients.items()
        return tuple((Fraction(w, found.divisor), known.boxes[i]) for i, w in weights)


def _try_lengths(
    known: Selections, fewest: ExhaustiveSearch, target: int, lengths: range, until: float
) -> tuple[Terms, int]:
    """A plan of the first of these lengths that has one, and the length that is needed."""
    for length in lengths:
        if fewest.steps(length) > MOST_SEARCH_ROWS:
            return (), length
        try:
            chosen = fewest.of(length, target, Effort(2 * MOST_SEARCH_ROWS, until))
        except Unfinished:
            return (), length
        if chosen is not None:
            return tuple((weight, known.boxes[i]) for i, weight in chosen.items()), length
    return (), lengths.stop


def as_system(matrix: NDArray[np.bool_]) -> System:
    """A 0/1 matrix as equations."""
    row, column = np.nonzero(matrix)
    rows, columns = matrix.shape
    return System(rows, columns, row, column, np.ones(len(row), np.int64))


def isolating_box(language: Language, target: int) -> Box | None:
    """A query that selects one record alone, with few conditions; None if there is none."""
    box: dict[int, tuple[int, int]] = {}
    members, own = language.everybody, 1 << target
    axes = [(n, int(axis.places[target])) for n, axis in enumerate(language.axes)]
    while members != own:
        sets = [(members & language.between(n, (at, at)), n, at) for n, at in axes if at >= 0]
        nearest, number, place = min(
            sets, key=lambda each: each[0].bit_count(), default=(members, 0, 0)
        )
        if nearest == members:
            return None
        members, box[number] = nearest, (place, place)
    return box
