"""Which unknowns a whole system of equations determines.

Source     Source document 002, "Which records are exposed?".
Guarantee  An unknown is missed only if several random secret primes all divide a minor: two of 50
           bits for a small system, three of 23 bits for a large one (below 1e-6 in the worst case
           for 5,000 equations with 0/1 coefficients). One claimed wrongly has no certificate.
Choice     A small system goes through the incremental form in Python's integers and never waits for
           a compiler. Any other is eliminated in blocks, which is faster at every size as long as
           its dense form fits in memory; past that the incremental form works without it.

Random solutions of A z = 0 modulo a prime: what they have in common is what is determined.

An unknown is determined iff z is zero there for every solution z; two unknowns determine each other
iff their values are in one proportion in every solution. A few random solutions decide both, except
with probability about 1 / p^vectors.

Short certificates: few equations with small coefficients, for a reader to check by hand.

Method     Least total |coefficient|: min |y|_1 with y A = t. Its dual, max t.x with |A x| <= 1,
           has the equations as they stand as constraints and the coefficients as multipliers, and
           only the objective changes from one target to the next, so each starts where the last
           one ended. Floating point proposes the equations; the coefficients are then solved for
           and checked in integers on those equations alone.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact.certificate import Certificate, PivotBlock, Target, certify_targets
from casemate.exact.elimination import Elimination, ResidueRows, eliminate
from casemate.exact.modular import SMALL
from casemate.exact.primes import (
    NARROW,
    WIDE,
    RandomBytes,
    random_below,
    random_prime,
    random_primes,
)
from casemate.exact.rank import PivotBasis, PrimeView, RowSpace
from casemate.exact.system import Equation, System, equations

VECTORS = 3


@dataclass(frozen=True, eq=False)
class NullVectors:
    """Random solutions of A z = 0 modulo a prime, one a row of non-negative int64."""

    prime: int
    rank: int
    vectors: NDArray[np.int64]

    def zero(self) -> NDArray[np.bool_]:
        """Where all of them vanish: the columns determined modulo this prime."""
        return np.asarray(~self.vectors.any(axis=0), np.bool_)


def through_basis(
    basis: PivotBasis,
    kept: list[Equation],
    columns: int,
    random: RandomBytes | None = None,
    vectors: int = VECTORS,
) -> NullVectors:
    """Null vectors of the equations a basis keeps: free columns at random, pivots to match."""
    free = np.setdiff1d(np.arange(columns), basis.pivots)
    found = np.zeros((vectors, columns), np.int64)
    for vector in found:
        vector[free] = [random_below(basis.prime, random) for _ in free]
        totals = [-equation.total(vector.astype(np.uint64)) for equation in kept]
        vector[basis.pivots] = basis.inverse_times(residues(totals, basis.prime)).astype(np.int64)
    return NullVectors(basis.prime, basis.rank, found)


def residues(numbers: list[int], prime: int) -> NDArray[Any]:
    """Integers of any size modulo the prime."""
    return np.array([number % prime for number in numbers], np.int64)


def annuls(system: System, null: NullVectors) -> bool:
    """Whether A z = 0 modulo the prime for every vector and every equation of the system."""
    lines = ResidueRows.of(system, null.prime, None)
    return bool(lines.annulled(null.vectors.T.astype(np.float64), null.prime).all())


# Exposure ---------------------------------------------------------------------------------------


BLOCKED_PRIMES = 3
MOST_ENTRIES = 2**29
"""Entries of the dense form, 8 bytes each, up to which a system is eliminated in blocks."""


@dataclass(frozen=True, eq=False)
class Exposure:
    """What a system determines, and what is needed to prove it and to look further."""

    rank: int
    determined: NDArray[np.bool_]
    null: tuple[NullVectors, ...]  # for each prime, random solutions of A z = 0
    block: PivotBlock  # the greedy independent equations, and how to solve with them


def determined(system: System, random: RandomBytes | None = None) -> NDArray[np.bool_]:
    """Which columns the system determines.

    >>> determined(System.of([[1, 1, 1], [0, 1, 1]])).tolist()
    [True, False, False]
    """
    return exposure(system, random).determined


def exposure(system: System, random: RandomBytes | None = None) -> Exposure:
    """Decide which columns the system determines, by the form that suits its size."""
    return incremental(system, random) if _one_by_one(system) else blocked(system, random)


def independent(system: System, random: RandomBytes | None = None) -> PivotBlock:
    """Independent equations modulo one random prime, which are independent whatever the prime."""
    if not _one_by_one(system):
        return eliminate(system, random_prime(NARROW, random))
    space = RowSpace(system.columns, random, (random_prime(WIDE, random),))
    for line in equations(system):
        space.add(line)
    return ViewBlock.of(space, space.views[0])


def _one_by_one(system: System) -> bool:
    """Whether a system is so small, or so large, that it goes equation by equation."""
    small = min(system.rows, system.columns) <= SMALL
    return small or system.rows * system.columns > MOST_ENTRIES


def incremental(system: System, random: RandomBytes | None = None) -> Exposure:
    """Equation by equation, modulo two primes of 50 bits."""
    lines = list(equations(system))
    space = RowSpace(system.columns, random)
    for line in lines:
        space.add(line)
    blocks = [ViewBlock.of(space, view) for view in space.views]
    null = [block.null_vectors(lines, system.columns, random) for block in blocks]
    return _agreed(null, max(blocks, key=lambda block: len(block.rows)))


def blocked(
    system: System, random: RandomBytes | None = None, primes: tuple[int, ...] | None = None
) -> Exposure:
    """All equations at once, modulo three primes of 23 bits."""
    first, *others = primes or random_primes(BLOCKED_PRIMES, NARROW, random)
    best = eliminate(system, first)
    null = [_null_vectors(best, random)]
    for prime in others:
        best, further = _confirm(system, prime, best, random)
        null.append(further)
    return _agreed(null, best)


def more_null_vectors(
    system: System, found: Exposure, count: int, random: RandomBytes | None = None
) -> NullVectors:
    """So many random null vectors modulo the prime of the pivot block, without eliminating again.

    >>> rows = System.of([[1, 1, 1]])
    >>> more_null_vectors(rows, exposure(rows), 5).vectors.shape
    (5, 3)
    """
    block = found.block
    if isinstance(block, Elimination):
        return NullVectors(block.prime, block.rank, block.null_vectors(count, random))
    if not isinstance(block, ViewBlock):
        raise TypeError("null vectors need the pivot block that `exposure` gave")
    lines = list(equations(system))
    return block.null_vectors(lines, system.columns, random, count)


def _confirm(
    system: System, prime: int, best: Elimination, random: RandomBytes | None
) -> tuple[Elimination, NullVectors]:
    """Eliminate again, the rows found independent only, unless another row is too after all."""
    again = eliminate(system, prime, best.rows)
    null = _null_vectors(again, random)
    if not annuls(system, null):
        again = eliminate(system, prime)
        null = _null_vectors(again, random)
    return (again if again.rank >= best.rank else best), null


def _null_vectors(elimination: Elimination, random: RandomBytes | None) -> NullVectors:
    vectors = elimination.null_vectors(VECTORS, random)
    return NullVectors(elimination.prime, elimination.rank, vectors)


def _agreed(null: list[NullVectors], block: PivotBlock) -> Exposure:
    """Determined is what any prime of full rank says: a rank too low is known to be wrong."""
    rank = max(each.rank for each in null)
    sound = [each.zero() for each in null if each.rank == rank]
    return Exposure(rank, reduce(np.logical_or, sound), tuple(null), block)


@dataclass(frozen=True, eq=False)
class ViewBlock:
    """The pivot block of an incremental row space, as certificates need it."""

    basis: PivotBasis
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, space: RowSpace, view: PrimeView) -> "ViewBlock":
        """The block of one of the two views of a row space."""
        return cls(view.basis, np.array(space.kept_equations, np.int64)[view.slots])

    @property
    def prime(self) -> int:
        """The modulus."""
        return self.basis.prime

    @property
    def pivots(self) -> NDArray[np.int64]:
        """The pivot columns."""
        return np.array(self.basis.pivots, np.int64)

    def solve(self, targets: NDArray[Any]) -> NDArray[Any]:
        """Y with Y A[rows, pivots] = targets modulo the prime."""
        solved = [self.basis.times_inverse(target).astype(np.int64) for target in targets]
        return np.array(solved, np.int64).reshape(targets.shape)

    def null_vectors(
        self,
        lines: list[Equation],
        columns: int,
        random: RandomBytes | None,
        count: int = VECTORS,
    ) -> NullVectors:
        """Random solutions of A z = 0."""
        kept = [lines[i] for i in self.rows.tolist()]
        return through_basis(self.basis, kept, columns, random, count)


# Shortest ---------------------------------------------------------------------------------------


_USED = 1e-7  # a multiplier below this is taken for zero; a wrong guess fails the exact check


def short(
    system: System, targets: Sequence[Target], seconds: float, random: RandomBytes | None = None
) -> Iterator[Certificate | None]:
    """A short certificate for each target; None where the time is over or doubles do not help."""
    deadline = time.monotonic() + seconds
    program, plain = None, system.value.dtype != object  # larger integers are beyond doubles
    for target in targets:
        found = None
        if plain and time.monotonic() < deadline:
            program = program or _Program(system)
            rows = program.equations_for(target, deadline)
            found = on_equations(system, rows, target, random)
        yield found


def on_equations(
    system: System, rows: Sequence[int], target: Target, random: RandomBytes | None = None
) -> Certificate | None:
    """A certificate that uses no other equations than these, if they determine the target."""
    part, columns = restricted(system, rows)
    if not set(target).issubset(columns):
        return None
    renamed = {columns.index(column): weight for column, weight in target.items()}
    found = next(certify_targets(part, incremental(part, random).block, [renamed]), None)
    if found is None:
        return None
    named = {rows[i]: weight for i, weight in found.coefficients.items()}
    return Certificate(target, named, found.divisor)


def restricted(system: System, rows: Sequence[int]) -> tuple[System, list[int]]:
    """The chosen equations over the columns they touch, and which columns those are."""
    place = np.full(system.rows, -1, np.int64)
    place[list(rows)] = np.arange(len(rows))
    chosen = place[system.row] >= 0
    columns, renumbered = np.unique(system.column[chosen], return_inverse=True)
    part = System(
        len(rows), len(columns), place[system.row[chosen]], renumbered, system.value[chosen]
    )
    return part, columns.tolist()


class _Program:
    """max t.x with |A x| <= 1, for one target t after another."""

    def __init__(self, system: System) -> None:
        import highspy

        self._highs: Any = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, "presolve": "off"}.items():
            self._highs.setOptionValue(name, value)
        self._highs.setOptionValue("simplex_strategy", 4)  # primal: only the objective changes
        self._highs.passModel(_model(system, highspy))
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._last: Target = {}

    def equations_for(self, target: Target, deadline: float) -> list[int]:
        """The equations that float arithmetic proposes; none if the time is over."""
        for column in self._last:
            self._highs.changeColCost(column, 0.0)
        for column, weight in target.items():
            self._highs.changeColCost(column, -float(weight))
        self._last = target
        left = max(0.0, deadline - time.monotonic())
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left)
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            return []
        multipliers = np.abs(np.array(self._highs.getSolution().row_dual))
        return np.flatnonzero(multipliers > _USED).tolist()


def _model(system: System, highspy: Any) -> Any:
    order = np.argsort(system.row, kind="stable")
    starts: NDArray[np.int64] = np.searchsorted(system.row[order], np.arange(system.rows + 1))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = system.columns, system.rows
    model.col_cost_ = np.zeros(system.columns)
    model.col_lower_ = np.full(system.columns, -highspy.kHighsInf)
    model.col_upper_ = np.full(system.columns, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = -np.ones(system.rows), np.ones(system.rows)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = system.column[order].astype(np.int32)
    model.a_matrix_.value_ = system.value[order].astype(np.float64)
    return model
