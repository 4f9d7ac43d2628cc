"""What equations too long to write down determine: a few records that stand for all, and sketches.

`core` finds the records that stand for all and `determine_sketched` proves what they determine;
where the equations are known by linear sketches, `SketchSearch` reads records out of those.

Source     Source document 002, "Which records are exposed?"; the l0-sketch of the literature on
           streams.
Method     Let A be equations x records, S some of the records, and one more column the total of
           random fingerprints over all the others. If every combination of equations that vanishes
           on S vanishes on that column too, S has the rank of A; determined records are pivots in
           every basis, so they are in S, and they are those determined in S and the column.
           S starts as a sample. A random combination that vanishes on S is evaluated at all
           records; some of those where it does not vanish join S, until there are none. Later
           rounds look only where the last one found something, so all rounds together cost little
           more than one pass.
Guarantee  Nothing is claimed on the strength of a fingerprint alone. Determined is what has a
           combination of equations, checked in integers on S, that was found to vanish at each of
           the other records in exact arithmetic. One is missed only if several random secret primes
           all divide a minor, or a random total of 38 bits is zero by chance.
Cost       Two passes over the records, and eliminations of equations x (about twice the rank).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.exact.certificate import Certificate, PivotBlock, certify, tipping_equations
from casemate.exact.determination import Determined, determine, independent
from casemate.exact.elimination import eliminate, modular_product
from casemate.exact.modular import NARROW_PRIME_BITS, RandomBytes, random_below, random_prime
from casemate.exact.proofs import JointProof, prove
from casemate.exact.system import System

Places = NDArray[np.int64]
"""Records, by their places."""

NOBODY: Places = np.zeros(0, np.int64)

Residues = NDArray[np.int64]
"""Numbers modulo a prime, one for each equation."""

Combination = Mapping[int, int]
"""Whole multiples of equations, by their numbers."""

SAMPLES_PER_EQUATION = 2
"""Records of the first sample, for each equation."""

MOST_WIDE_EQUATIONS = 4096
"""Equations whose multiples modulo a prime of 50 bits add up within 63 bits."""


@dataclass(frozen=True, eq=False)
class Vanishing:
    """The combinations of equations that vanish on some records, modulo a prime."""

    rows: NDArray[np.bool_]  # equations x those records
    block: PivotBlock

    @property
    def prime(self) -> int:
        """The modulus."""
        return self.block.prime

    def draw(self, random: RandomBytes | None = None) -> Residues:
        """One of them at random."""
        others = self._others
        weights = np.array([random_below(self.prime, random) for _ in others], object)
        drawn: Residues = self._complete(weights[None, :], others)[0]
        return drawn

    def basis(self) -> NDArray[np.int64]:
        """One for each equation that is no combination of the kept ones elsewhere, as rows."""
        others = self._others
        return self._complete(np.eye(len(others), dtype=np.int64), others)

    @cached_property
    def _others(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(len(self.rows)), self.block.rows)

    def _complete(self, weights: NDArray[Any], others: NDArray[np.int64]) -> NDArray[np.int64]:
        """Weights of the other equations, and those of the kept ones that go with them."""
        found = np.zeros((len(weights), len(self.rows)), np.int64)
        found[:, others] = weights
        if len(self.block.rows) and len(others):
            on_pivots = weights @ self.rows[np.ix_(others, self.block.pivots)].astype(np.int64)
            wanted = np.mod(-on_pivots, self.prime).astype(np.int64)
            found[:, self.block.rows] = self.block.solve(wanted)
        return found


class Search(Protocol):
    """Looks for records at which combinations do not vanish, each time within those before."""

    def differing(self, combinations: Vanishing, most: int) -> Places:
        """Up to `most` records at which some of the combinations are not zero; none if none is."""


class SketchedRecords(Protocol):
    """What the algebra asks of the data: never the records themselves, only sums and a few bits."""

    @property
    def equations(self) -> int:
        """How many equations there are."""

    def sample(self, size: int) -> Places:
        """Records drawn at random."""

    def rows(self, places: Places) -> NDArray[np.bool_]:
        """Which equations add up which of these records: equations x records."""

    def search(self) -> Search:
        """A search that begins with all records."""

    def rest(self, places: Places) -> NDArray[Any]:
        """For each equation the total of secret random numbers of all records but these."""

    def strays(self, combinations: Sequence[Combination], inside: Places) -> Places:
        """The records outside `inside` at which a combination is not zero, in exact integers."""


@dataclass(frozen=True, eq=False)
class Core:
    """Records that stand for all, the equations on them, and what those determine.

    The last column of the system is the total of all the other records.
    """

    places: Places
    system: System
    found: Determined


def core(
    records: SketchedRecords, random: RandomBytes | None = None, kept: Places = NOBODY
) -> Core:
    """Find records that stand for all; those of `kept` are among them."""
    places = records.sample(SAMPLES_PER_EQUATION * records.equations)
    while True:
        places = _grow(records, places, random)
        own = np.union1d(places, kept)
        system = with_rest_column(records.rows(own), records.rest(own))
        found = determine(system, random)
        if not found.determined[-1]:
            return Core(own, system, found)


def _grow(records: SketchedRecords, places: Places, random: RandomBytes | None) -> Places:
    """Records on which only those combinations vanish that vanish everywhere."""
    search, most = records.search(), SAMPLES_PER_EQUATION * records.equations
    while True:
        rows = records.rows(places)
        block = _independent(with_rest_column(rows), random)
        new = search.differing(Vanishing(rows, block), most)
        places = places[np.sort(block.pivots)]
        if not len(new):
            return places
        places = np.concatenate([places, np.setdiff1d(new, places)])


def _independent(system: System, random: RandomBytes | None) -> PivotBlock:
    """Independent equations modulo a prime so small that all of them add up within a word."""
    if system.rows <= MOST_WIDE_EQUATIONS:
        return independent(system, random)
    return eliminate(system, random_prime(NARROW_PRIME_BITS, random))


def with_rest_column(rows: NDArray[np.bool_], rest: NDArray[Any] | None = None) -> System:
    """The equations on some records, and the total of the others as one more column."""
    count, width = rows.shape
    row, column = np.nonzero(rows)
    value: NDArray[Any] = np.ones(len(row), np.int64)
    if rest is None:
        return System(count, width, row, column, value)
    others = np.flatnonzero(rest)
    return System(
        count,
        width + 1,
        np.concatenate([row, others]),
        np.concatenate([column, np.full(len(others), width)]),
        np.concatenate([value, rest[others]]),
    )


# Proofs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Proved:
    """What is determined, by place: with which equation it came, and how each follows.

    A record without a certificate is proved together with others: its own has too many digits.
    """

    core: Core
    by: Mapping[int, int]
    certificates: Mapping[int, Certificate]

    @property
    def rank(self) -> int:
        """How many of the equations are independent."""
        return self.core.found.rank


def determine_sketched(records: SketchedRecords, random: RandomBytes | None = None) -> Proved:
    """Whose values the equations determine, each proved in exact arithmetic over all records."""
    kept = NOBODY
    while True:
        found = core(records, random, kept)
        single, joint = _proofs(found, random)
        claims = [each.coefficients for each in (*single, *(joint.derived if joint else ()))]
        strays = records.strays(claims, found.places) if claims else NOBODY
        if not len(strays):
            return _collect(found, single, joint)
        kept = np.union1d(kept, strays)


def _proofs(found: Core, random: RandomBytes | None) -> tuple[list[Certificate], JointProof | None]:
    """Certificates, and one proof for all those who have none that can be read."""
    wanted = np.flatnonzero(found.found.determined).tolist()
    single = list(certify(found.system, found.found.block, wanted))
    seen = {each.column for each in single}
    if all(column in seen for column in wanted):
        return single, None
    agreed = np.sum([each.zero() for each in found.found.null], axis=0) > 1
    certain = found.found.determined & (agreed | np.isin(np.arange(len(agreed)), list(seen)))
    return single, prove(found.system, found.found.block.rows, certain, random)


def _collect(found: Core, single: list[Certificate], joint: JointProof | None) -> Proved:
    certificates = {int(found.places[each.column]): each for each in single}
    columns = sorted({each.column for each in single}.union(joint.columns if joint else ()))
    tipping = tipping_equations(found.found.block, columns)
    by = {int(found.places[column]): row for column, row in tipping.items()}
    return Proved(found, by, certificates)


# Many combinations in one number ----------------------------------------------------------------


@dataclass(frozen=True)
class SketchTask:
    """Weights of equations, below 2^63; the sum is zero, modulo 2^64 or `modulus`, or it is not."""

    weights: Mapping[int, int]
    modulus: int  # 0: 2^64


WORD_BITS = 63
_MODULUS_BITS = 40  # so that millions of weights add up within a word


def pack_combinations(combinations: Sequence[Combination]) -> Iterator[SketchTask]:
    """A few sums that are all zero exactly where all the combinations are.

    Each combination takes few values at a record, so several of them are the digits of one number.
    One that may be too large for a word is zero if it is so modulo enough numbers.
    """
    weights: dict[int, int] = {}
    scale = 1
    for each in combinations:
        reach = 1 + sum(abs(weight) for weight in each.values())
        if reach >> WORD_BITS:
            yield from _by_remainders(each, reach)
            continue
        if scale * reach >> WORD_BITS:
            yield SketchTask(weights, 0)
            weights, scale = {}, 1
        for equation, weight in each.items():
            weights[equation] = weights.get(equation, 0) + scale * weight
        scale *= reach
    if weights:
        yield SketchTask(weights, 0)


def _by_remainders(combination: Combination, reach: int) -> Iterator[SketchTask]:
    """Odd moduli that have no factor in common, and together are more than the sum can be."""
    covered, modulus = 1, 2**_MODULUS_BITS - 1
    while covered <= 2 * reach:
        if math.gcd(covered, modulus) == 1:
            yield SketchTask({e: weight % modulus for e, weight in combination.items()}, modulus)
            covered *= modulus
        modulus -= 2


# Records in the support of a combination, read out of sketches ----------------------------------
# Every record falls into one bucket, half of them on the first level, a quarter on the second, and
# so on; a bucket keeps the number of its members and the sums of pieces of their names. Sketches
# add up as equations do, so the sketch of a combination is the combination of sketches. A bucket in
# which one record is left has sums in the proportions of that record's name, and every piece of the
# quotient is within its limit. A bucket of several records passes for one by chance of about the
# product of limit / p; the name found is then looked up, and belongs to nobody.


@dataclass(frozen=True, eq=False)
class Sketches:
    """For each equation and bucket: how many records there are, and sums of pieces of their names.

    `sums[0]` counts, and `sums[i]` adds up the i-th piece, which is below limits[i - 1]; each is
    equations x buckets.
    """

    sums: tuple[NDArray[np.int64], ...]
    limits: tuple[int, ...]


Name = tuple[int, ...]
"""The pieces of a record's name."""


class Sketched(Protocol):
    """Records that are known by the totals and the sketches of equations, and a few one by one."""

    @property
    def totals(self) -> NDArray[Any]:
        """For each equation the total of secret random numbers of its records."""

    @property
    def sketches(self) -> Sketches:
        """The sketch of every equation."""

    def rows(self, places: Places) -> NDArray[np.bool_]:
        """Which equations add up which of these records: equations x records."""

    def lookup(self, wanted: Iterable[Name]) -> Places:
        """The records of these names; a name may be nobody's."""

    def scan(self, combination: Residues, prime: int, most: int) -> Places:
        """Some records at which a combination is not zero, found by evaluating it everywhere."""


class SketchSearch:
    """Looks for records at which combinations do not vanish: in sketches, and else by a scan."""

    def __init__(self, records: Sketched) -> None:
        self._records = records

    def differing(self, combinations: Vanishing, most: int) -> Places:
        """Up to `most` records at which some of the combinations are not zero; none if none is."""
        basis, prime = combinations.basis(), combinations.prime
        left = times(basis, self._records.totals[:, None], prime)[:, 0] != 0
        if not left.any():
            return np.zeros(0, np.int64)
        basis = basis[left]
        named = self._records.lookup(decode(basis, prime, self._records.sketches))
        there = times(basis, self._records.rows(named).astype(np.int64), prime)
        found = named[np.asarray(there != 0, np.bool_).any(axis=0)]
        if len(found):
            return found[:most]
        shortest = basis[np.argmin((basis != 0).sum(axis=1))]
        return self._records.scan(shortest, prime, most)


def decode(combinations: NDArray[np.int64], prime: int, sketches: Sketches) -> list[Name]:
    """The names in buckets where a combination (one a row) leaves a single record.

    >>> one = Sketches((np.array([[2], [1]]), np.array([[30], [10]])), (64,))
    >>> decode(np.array([[1, 100]]), 101, one)  # the first less the second: names 10 and 20
    [(20,)]
    """
    counts, *pieces = (times(combinations, each, prime) for each in sketches.sums)
    there = np.nonzero(counts)
    inverse = np.array([pow(int(each), -1, prime) for each in counts[there]], object)
    names = [np.asarray(each[there] * inverse % prime, object) for each in pieces]
    good = np.ones(len(inverse), np.bool_)
    for name, limit in zip(names, sketches.limits, strict=True):
        good &= (name < limit).astype(np.bool_)
    found = zip(*(name[good] for name in names), strict=True)
    return list(dict.fromkeys(tuple(int(piece) for piece in name) for name in found))


def times(residues: NDArray[np.int64], numbers: NDArray[np.int64], prime: int) -> NDArray[Any]:
    """A product of matrices modulo a prime: in doubles, exactly, where the prime is narrow."""
    reduced = np.mod(numbers, prime)
    if prime.bit_length() > NARROW_PRIME_BITS:
        return np.asarray(residues.astype(object) @ reduced.astype(object) % prime, object)
    product = modular_product(residues.astype(np.float64), reduced.astype(np.float64), prime)
    return product.astype(np.int64)
