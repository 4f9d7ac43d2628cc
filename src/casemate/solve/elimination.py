"""Elimination modulo a small prime for many equations at once: the work of BLAS, exactly.

Source     Source document 002, "Which records are exposed?"; arithmetic modulo a prime inside dgemm
           after Dumas, Giorgi and Pernet, "Dense Linear Algebra over Word-Size Prime Fields: the
           FFLAS and FFPACK packages", arXiv:cs/0601133.
Method     Blocks of 96 independent rows, in the order given, each reduced by a compiled loop and
           subtracted from the rest by one product of matrices. 96 (2^23)^2 < 2^53, so each product
           is exact in double precision. The kept rows are the greedy ones: the kept rows of every
           prefix span that prefix.
Cost       About 2 m n r - (m + n) r^2 + 2 r^3 / 3 floating-point operations; 8 m n bytes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.solve.primes import NARROW, RandomBytes, random_below
from casemate.solve.system import System

BLOCK = 96
_CHUNK = 1024  # rows multiplied at a time, to keep the product small
_MOST_ZERO = 0.15  # share of vanished rows that is worth moving the others together
_HALF = 2.0**12
_TERMS = 2**17  # so many products of 23 and 12 bits add up exactly

Residues = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Panel:
    """A block of pivots: where it starts, how many, and the combinations of rows that made it."""

    start: int
    size: int
    made: Residues

    @property
    def places(self) -> slice:
        """Where its rows and columns are."""
        return slice(self.start, self.start + self.size)

    @property
    def after(self) -> slice:
        """Where those that follow are."""
        return slice(self.start + self.size, None)


@dataclass(frozen=True, eq=False)
class Elimination:
    """The independent rows of a system modulo a prime, and how to solve with them.

    `packed` holds, for the rows kept and the columns in `order`, multipliers below the blocks on
    the diagonal and the echelon form above them; its first `rank` columns are the pivots.
    """

    prime: int
    rows: NDArray[np.int64]  # the independent ones, ascending
    order: NDArray[np.int64]  # all columns, the pivots first
    packed: Residues
    panels: tuple[Panel, ...]

    @property
    def rank(self) -> int:
        """How many rows are independent."""
        return len(self.rows)

    @property
    def pivots(self) -> NDArray[np.int64]:
        """The pivot columns, in the order of the kept rows."""
        return self.order[: self.rank]

    def null_vectors(self, count: int, random: RandomBytes | None = None) -> NDArray[np.int64]:
        """Random vectors z with A z = 0 modulo the prime, one a row."""
        free = len(self.order) - self.rank
        vectors: Residues = np.zeros((len(self.order), count))
        drawn = [random_below(self.prime, random) for _ in range(free * count)]
        vectors[self.rank :] = np.array(drawn, float).reshape(free, count)
        for panel in reversed(self.panels):
            made = self._times(self.packed[panel.places, panel.after], vectors[panel.after])
            vectors[panel.places] = np.mod(-made, self.prime)
        result = np.empty((count, len(self.order)), np.int64)
        result[:, self.order] = vectors.T.astype(np.int64)
        return result

    def solve(self, targets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Y with Y A[rows, pivots] = targets modulo the prime, one solution a row."""
        left: Residues = np.mod(targets, self.prime).astype(np.float64)
        for panel in self.panels:
            later = slice(panel.start + panel.size, self.rank)
            block = left[:, panel.places]
            subtract(left[:, later], block, self.packed[panel.places, later], self.prime)
        for panel in reversed(self.panels):
            earlier = slice(0, panel.start)
            block = np.mod(left[:, panel.places] @ panel.made, self.prime)
            left[:, panel.places] = block
            subtract(left[:, earlier], block, self.packed[panel.places, earlier], self.prime)
        return left.astype(np.int64)

    def _times(self, matrix: Residues, vectors: Residues) -> Residues:
        """A product of any length: 2^17 terms at a time, one factor cut in halves of 12 bits."""
        total = np.zeros((len(matrix), vectors.shape[1]))
        for start in range(0, len(vectors), _TERMS):
            some, part = matrix[:, start : start + _TERMS], vectors[start : start + _TERMS]
            high = np.floor(part / _HALF)
            shifted = np.mod(some @ high, self.prime) * _HALF
            total = np.mod(total + shifted + some @ (part - high * _HALF), self.prime)
        return total


def eliminate(system: System, prime: int, rows: NDArray[np.int64] | None = None) -> Elimination:
    """Eliminate all equations, or those of `rows`, modulo a prime of at most 23 bits."""
    if prime.bit_length() > NARROW:
        raise ValueError(f"elimination in doubles needs a prime of at most {NARROW} bits")
    work = _Work(residues(system, prime, rows), prime)
    while work.take_panel():
        pass
    kept = np.array(work.kept, np.int64)
    places = work.number[kept]
    return Elimination(
        prime,
        places if rows is None else rows[places],
        work.order,
        work.matrix[kept],
        tuple(work.panels),
    )


def residues(system: System, prime: int, rows: NDArray[np.int64] | None) -> Residues:
    """The chosen rows as a dense matrix modulo the prime."""
    count = system.rows if rows is None else len(rows)
    place = np.full(system.rows, -1, np.int64)
    place[np.arange(system.rows) if rows is None else rows] = np.arange(count)
    chosen = place[system.row] >= 0
    matrix = np.zeros((count, system.columns))
    values = np.mod(system.value[chosen], prime).astype(np.float64)
    matrix[place[system.row[chosen]], system.column[chosen]] = values
    return matrix


def subtract(target: Residues, one: Residues, other: Residues, prime: int) -> NDArray[np.bool_]:
    """Subtract a product from the target modulo the prime; which rows are left non-zero."""
    from casemate.solve.elimination_kernel import reduce_into

    nonzero = np.zeros(len(target), np.bool_)
    if not target.size:
        return nonzero
    narrow, wide = np.ascontiguousarray(one), np.ascontiguousarray(other)
    space = np.empty(min(_CHUNK, len(target)) * target.shape[1])
    for start in range(0, len(target), _CHUNK):
        lines = target[start : start + _CHUNK]
        product = space[: lines.size].reshape(lines.shape)
        np.matmul(narrow[start : start + _CHUNK], wide, out=product)
        reduce_into(lines, product, float(prime), nonzero[start : start + _CHUNK])
    return nonzero


class _Work:
    """The matrix on its way to echelon form."""

    def __init__(self, matrix: Residues, prime: int) -> None:
        self.matrix, self.prime = matrix, prime
        self.number = np.arange(len(matrix))  # which row of the system each place holds
        self.order = np.arange(matrix.shape[1])
        self.kept: list[int] = []
        self.panels: list[Panel] = []
        self._top, self._bottom = 0, len(matrix)
        self._nonzero: NDArray[np.bool_] = np.asarray(matrix.any(axis=1), np.bool_)

    def take_panel(self) -> bool:
        """Eliminate with the next block of rows; False when no row is left."""
        from casemate.solve.elimination_kernel import reduce_panel

        rows = self._top + np.flatnonzero(self._nonzero[self._top : self._bottom])[:BLOCK]
        if not len(rows):
            return False
        left, made = len(self.kept), np.eye(len(rows))
        pivots = reduce_panel(self.matrix, rows, left, float(self.prime), made)
        good = pivots >= 0
        self._bring_forward(pivots[good], left)
        self.kept += rows[good].tolist()
        self.panels.append(Panel(left, int(good.sum()), made[np.ix_(good, good)]))
        self._top = int(rows[-1]) + 1
        self._update(rows[good], left)
        return True

    def _bring_forward(self, pivots: NDArray[np.int64], left: int) -> None:
        """Exchange columns so that the pivots stand at `left` and after, in their order."""
        from casemate.solve.elimination_kernel import swap_columns

        places = pivots.tolist()
        for k, place in enumerate(places):
            moved = {left + k: place}
            places[k + 1 :] = [moved.get(each, each) for each in places[k + 1 :]]
        ones, others = np.arange(left, left + len(places)), np.array(places, np.int64)
        swap_columns(self.matrix, ones, others)
        swap_columns(self.order[None, :], ones, others)

    def _update(self, rows: NDArray[np.int64], left: int) -> None:
        """Subtract the panel from the rows below it."""
        right = left + len(rows)
        below = slice(self._top, self._bottom)
        self._nonzero[below] = subtract(
            self.matrix[below, right:],
            self.matrix[below, left:right],
            self.matrix[rows, right:],
            self.prime,
        )
        live = self._top + np.flatnonzero(self._nonzero[below])
        if len(live) < (1 - _MOST_ZERO) * (self._bottom - self._top):
            self._close_up(live)

    def _close_up(self, live: NDArray[np.int64]) -> None:
        """Move the rows that have not vanished together."""
        from casemate.solve.elimination_kernel import move_up

        move_up(self.matrix, self._top, live)
        self._bottom = self._top + len(live)
        self.number[self._top : self._bottom] = self.number[live]
        self._nonzero[self._top : self._bottom] = True
