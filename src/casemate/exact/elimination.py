"""Elimination modulo a small prime for many equations at once: the work of BLAS, exactly.

Residues are whole numbers kept as doubles; products of matrices do most of the work, compiled loops
the rest, on a few rows at a time.

Source     Source document 002, "Which records are exposed?"; arithmetic modulo a prime inside dgemm
           after Dumas, Giorgi and Pernet, "Dense Linear Algebra over Word-Size Prime Fields: the
           FFLAS and FFPACK packages", arXiv:cs/0601133.
Method     Batches of 384 rows, in the order given; what is kept so far is subtracted from each by
           products of matrices, then 96 rows at a time are reduced by a compiled loop. Residues lie
           between -p/2 and p/2, and 384 (2^22)^2 < 2^53, so each product is exact in double
           precision. As soon as a batch holds a row that depends on the kept ones, random null
           vectors of those say which of the rows to come do: these cost nothing.
           The kept rows are the greedy ones: the kept rows of every prefix span that prefix. A row
           is taken for dependent wrongly with probability below 2^-60.
Cost       About r^2 (n - r / 3) floating-point operations at rank r; 8 n r bytes.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.exact.modular import NARROW_PRIME_BITS, RandomBytes
from casemate.exact.system import System

PANEL_ROWS = 96
BATCH_ROWS = 4 * PANEL_ROWS
_TILE_COLUMNS = 512  # columns multiplied at a time
_DEPENDENCE_BITS = 61  # bits of null vectors that decide that a row is dependent
_HALF_FACTOR = 2.0**12
_EXACT_TERMS = 2**17  # so many products of 23 and 12 bits add up exactly

Residues = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Panel:
    """A block of pivots: where it starts, how many, and the combinations of rows that made it."""

    start: int
    size: int
    combinations: Residues

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
        vectors = null_vectors(self.packed, self.panels, self.prime, count, random)
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
            block = np.mod(left[:, panel.places] @ panel.combinations, self.prime)
            left[:, panel.places] = block
            subtract(left[:, earlier], block, self.packed[panel.places, earlier], self.prime)
        return np.mod(left, self.prime).astype(np.int64)


def null_vectors(
    packed: Residues,
    panels: Sequence[Panel],
    prime: int,
    count: int,
    random: RandomBytes | None = None,
) -> Residues:
    """Random solutions of an echelon form, one a column, in the order of its columns."""
    rank, width = packed.shape
    vectors: Residues = np.zeros((width, count))
    drawn = np.frombuffer((random or os.urandom)(8 * (width - rank) * count), np.uint64)
    vectors[rank:] = (drawn % np.uint64(prime)).reshape(width - rank, count)
    for panel in reversed(panels):
        combinations = modular_product(
            packed[panel.places, panel.after], vectors[panel.after], prime
        )
        vectors[panel.places] = np.mod(-combinations, prime)
    return vectors


def modular_product(matrix: Residues, vectors: Residues, prime: int) -> Residues:
    """A product of residues of any length modulo a prime of at most 23 bits, exactly.

    It is taken 2^17 terms at a time, one factor cut in halves of 12 bits.
    """
    total = np.zeros((len(matrix), vectors.shape[1]))
    for start in range(0, len(vectors), _EXACT_TERMS):
        some, part = matrix[:, start : start + _EXACT_TERMS], vectors[start : start + _EXACT_TERMS]
        high = np.floor(part / _HALF_FACTOR)
        shifted = np.mod(some @ high, prime) * _HALF_FACTOR
        total = np.mod(total + shifted + some @ (part - high * _HALF_FACTOR), prime)
    return total


def eliminate(system: System, prime: int, rows: NDArray[np.int64] | None = None) -> Elimination:
    """Eliminate all equations, or those of `rows`, modulo a prime of at most 23 bits."""
    if prime.bit_length() > NARROW_PRIME_BITS:
        raise ValueError(
            f"elimination in doubles needs a prime of at most {NARROW_PRIME_BITS} bits"
        )
    work = _Work(ResidueRows.of(system, prime, rows), prime)
    while work.take_batch():
        pass
    places = np.array(work.kept, np.int64)
    return Elimination(
        prime,
        places if rows is None else rows[places],
        work.order,
        work.matrix[: len(places)],
        tuple(work.panels),
    )


def subtract(target: Residues, one: Residues, other: Residues, prime: int) -> None:
    """Subtract a product from the target modulo the prime, a tile at a time to stay in cache."""
    space = np.empty(min(BATCH_ROWS, len(target)) * min(_TILE_COLUMNS, target.shape[1]))
    for start in range(0, len(target), BATCH_ROWS):
        for left in range(0, target.shape[1], _TILE_COLUMNS):
            tile = target[start : start + BATCH_ROWS, left : left + _TILE_COLUMNS]
            product = space[: tile.size].reshape(tile.shape)
            np.matmul(
                one[start : start + BATCH_ROWS], other[:, left : left + _TILE_COLUMNS], out=product
            )
            reduce_into(tile, product, float(prime))


@dataclass(frozen=True, eq=False)
class ResidueRows:
    """The chosen rows of a system, entry by entry, with residues for coefficients."""

    count: int
    columns: int
    starts: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: Residues

    @classmethod
    def of(cls, system: System, prime: int, rows: NDArray[np.int64] | None) -> "ResidueRows":
        """The rows in the order given, modulo the prime."""
        chosen = np.arange(system.rows) if rows is None else rows
        place = np.full(system.rows, -1, np.int64)
        place[chosen] = np.arange(len(chosen))
        row = place[system.row]
        order = np.argsort(row, kind="stable")[np.count_nonzero(row < 0) :]
        values = np.mod(system.value[order], prime).astype(np.float64)
        values[values > prime / 2] -= prime
        starts = np.searchsorted(row[order], np.arange(len(chosen) + 1))
        return cls(len(chosen), system.columns, starts, row[order], system.column[order], values)

    def fill(self, target: Residues, rows: NDArray[np.int64], place: NDArray[np.int64]) -> None:
        """Write some rows densely, each column where `place` says."""
        target[:] = 0
        for line, row in zip(target, rows.tolist(), strict=True):
            entries = slice(self.starts[row], self.starts[row + 1])
            line[place[self.column[entries]]] = self.value[entries]

    def vanishing_rows(self, vectors: Residues, prime: int) -> NDArray[np.bool_]:
        """Which rows are zero on every vector; the vectors are columns."""
        vanish = np.ones(self.count, np.bool_)
        for vector in vectors.T:
            terms = np.mod(self.value * vector[self.column], prime)  # factors below 2^23
            totals = np.bincount(self.row, weights=terms, minlength=self.count)
            vanish &= np.mod(totals, prime) == 0
        return vanish


class _Work:
    """The kept rows on their way to echelon form, and those that wait."""

    def __init__(self, lines: ResidueRows, prime: int) -> None:
        self.prime, self._lines = prime, lines
        self._pending_rows = np.arange(lines.count)
        self._place = np.arange(lines.columns)  # where each column stands
        self.order = np.arange(lines.columns)
        self.matrix = np.empty((min(lines.count, lines.columns) + BATCH_ROWS, lines.columns))
        self.kept: list[int] = []
        self.panels: list[Panel] = []
        self._batches: list[list[Panel]] = []

    def take_batch(self) -> bool:
        """Take in the next rows, less what is kept already; False when no row is left."""
        rows, self._pending_rows = self._pending_rows[:BATCH_ROWS], self._pending_rows[BATCH_ROWS:]
        if not len(rows):
            return False
        start = len(self.kept)
        batch = self.matrix[start : start + len(rows)]
        self._lines.fill(batch, rows, self._place)
        for panels in self._batches:
            self._subtract(batch, panels)
        first = len(self.panels)
        while len(rows):
            rows = self._take_panel(rows)
        self._batches.append(self.panels[first:])
        if len(self.kept) < start + len(batch):
            self._leave_out_dependent()
        return True

    def _subtract(self, batch: Residues, panels: Sequence[Panel]) -> None:
        """Subtract the panels of an earlier batch: one by one among themselves, then at once."""
        span = slice(panels[0].start, panels[-1].after.start)
        for panel in panels[:-1]:
            inner = slice(panel.after.start, span.stop)
            known = self.matrix[panel.places, inner]
            subtract(batch[:, inner], batch[:, panel.places], known, self.prime)
        known = self.matrix[span, span.stop :]
        subtract(batch[:, span.stop :], batch[:, span], known, self.prime)

    def _take_panel(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Eliminate with the first block of a batch; the rows of the batch that are left."""
        left, taken = len(self.kept), len(rows[:PANEL_ROWS])
        batch, combinations = self.matrix[left : left + len(rows)], np.eye(taken)
        pivots = reduce_panel(batch[:taken], left, float(self.prime), combinations)
        good = np.flatnonzero(pivots >= 0)
        batch[: len(good)] = batch[good]
        batch[len(good) : len(good) + len(rows) - taken] = batch[taken:]
        self.kept += rows[good].tolist()
        self.panels.append(Panel(left, len(good), combinations[np.ix_(good, good)]))
        self._bring_forward(pivots[good], left, left + len(good) + len(rows) - taken)
        panel = self.panels[-1]
        below = batch[len(good) : len(good) + len(rows) - taken]
        known = self.matrix[panel.places, panel.after]
        subtract(below[:, panel.after], below[:, panel.places], known, self.prime)
        return rows[taken:]

    def _bring_forward(self, pivots: NDArray[np.int64], left: int, bottom: int) -> None:
        """Exchange columns so that the pivots stand at `left` and after, in their order."""
        places = pivots.tolist()
        for k, place in enumerate(places):
            moved = {left + k: place}
            places[k + 1 :] = [moved.get(each, each) for each in places[k + 1 :]]
        ones, others = np.arange(left, left + len(places)), np.array(places, np.int64)
        swap_columns(self.matrix[:bottom], ones, others)
        swap_columns(self.order[None, :], ones, others)
        self._place[self.order] = np.arange(len(self.order))

    def _leave_out_dependent(self) -> None:
        """Drop the waiting rows that random null vectors of the kept ones annul."""
        kept = self.matrix[: len(self.kept)]
        count = -(-_DEPENDENCE_BITS // self.prime.bit_length())
        vectors = null_vectors(kept, self.panels, self.prime, count)
        vanish = self._lines.vanishing_rows(vectors[self._place], self.prime)
        self._pending_rows = self._pending_rows[~vanish[self._pending_rows]]


# Compiled loops ---------------------------------------------------------------------------------
# Rounding the quotient may leave a residue a few units beyond p/2; zero is always 0, and every
# intermediate stays below 2^53.


@compiled
def reduce_into(target: Residues, product: Residues, prime: float) -> None:
    """Subtract a product from the target modulo the prime."""
    inverse = 1.0 / prime
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            number = target[i, j] - product[i, j]
            target[i, j] = number - np.rint(number * inverse) * prime


@compiled
def _subtract(target: Residues, factor: float, source: Residues, prime: float) -> None:
    inverse = 1.0 / prime
    for j in range(target.shape[0]):
        number = target[j] - factor * source[j]
        target[j] = number - np.rint(number * inverse) * prime


@compiled
def _inverse_of(number: float, prime: float) -> float:
    """By Fermat: the (p-2)-th power."""
    modulus = np.int64(prime)
    base, exponent, power = np.int64(number) % modulus, modulus - 2, np.int64(1)
    while exponent:
        if exponent & 1:
            power = power * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return float(power)


@compiled
def _leading_entry(row: Residues, start: int) -> int:
    for j in range(start, row.shape[0]):
        if row[j] != 0.0:
            return j
    return -1


@compiled
def reduce_panel(
    rows: Residues, left: int, prime: float, combinations: Residues
) -> NDArray[np.int64]:
    """Bring a few rows to reduced echelon form in place; the pivot of each, or -1 where none.

    `combinations` starts as the identity and becomes the combinations of rows that were taken.
    """
    pivots = np.full(rows.shape[0], -1, np.int64)
    for i in range(rows.shape[0]):
        row = rows[i]
        for a in range(i):
            if pivots[a] >= 0 and row[pivots[a]] != 0.0:
                factor = row[pivots[a]]
                _subtract(row[left:], factor, rows[a, left:], prime)
                _subtract(combinations[i], factor, combinations[a], prime)
        found = _leading_entry(row, left)
        if found < 0:
            continue
        scale = 1.0 - _inverse_of(row[found], prime)  # x - (1 - 1/v) x = x/v
        _subtract(row[left:], scale, row[left:], prime)
        _subtract(combinations[i], scale, combinations[i], prime)
        for a in range(i):
            factor = rows[a, found]
            if pivots[a] >= 0 and factor != 0.0:
                _subtract(rows[a, left:], factor, row[left:], prime)
                _subtract(combinations[a], factor, combinations[i], prime)
        pivots[i] = found
    return pivots


@compiled
def swap_columns(
    matrix: Residues | NDArray[np.int64], ones: NDArray[np.int64], others: NDArray[np.int64]
) -> None:
    """Exchange pairs of columns, one pair after the other."""
    for i in range(matrix.shape[0]):
        for k in range(ones.shape[0]):
            kept = matrix[i, ones[k]]
            matrix[i, ones[k]] = matrix[i, others[k]]
            matrix[i, others[k]] = kept
