"""Equations known by sums, against the same equations written out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import exact_rank
import numpy as np
from exact_rank import generated
from numpy.typing import NDArray

from casemate.audit.online.summed_space import (
    CandidateUnknowns,
    Combined,
    Names,
    Summed,
    SummedSpace,
)
from casemate.exact import WIDE_PRIME_BITS, RowSpace, System, equations, random_primes


@dataclass(frozen=True, eq=False)
class Line:
    """An equation that answers what is asked of it, from its coefficients."""

    coefficients: list[int]
    total: int

    def on(self, names: Names) -> NDArray[Any]:
        return np.array([self.coefficients[name] for name in names.tolist()], object)


class Everybody:
    """Unknowns of which the first few are tried first; the rest only where those are all alike."""

    def __init__(self, size: int, few: int, rng: Random) -> None:
        self._fingerprints = [rng.getrandbits(56) for _ in range(size)]
        self._few, self._size = few, size
        self.searches = 0

    def line(self, coefficients: list[int]) -> Line:
        products = zip(coefficients, self._fingerprints, strict=True)
        return Line(coefficients, sum(value * each for value, each in products))

    def fingerprint(self, name: int) -> int:
        return self._fingerprints[name]

    def candidates(
        self, asked: Summed, kept: Sequence[Summed], turn: int, _combined: Combined
    ) -> Iterator[CandidateUnknowns]:
        few = [(turn + each) % self._few for each in range(self._few)]
        yield _batch(few, asked, kept)
        self.searches += 1
        yield _batch(range(self._few, self._size), asked, kept)


def _batch(names: Sequence[int], asked: Summed, kept: Sequence[Summed]) -> CandidateUnknowns:
    chosen = np.array(names, np.int64)
    lines = [each.on(chosen) for each in kept]
    return CandidateUnknowns(
        chosen, asked.on(chosen), np.array(lines, object).reshape(len(kept), len(names)).T
    )


def test_it_says_of_every_equation_what_the_space_of_written_equations_says() -> None:
    """Fifty systems: 0/1, weights, huge weights, repeated and empty equations."""
    rng, searches = Random(0), 0
    for _ in range(50):
        matrix = generated(rng)
        size = len(matrix[0])
        unknowns = Everybody(size, rng.randint(0, min(2, size)), rng)
        summed, written = SummedSpace(unknowns, rng.randbytes), RowSpace(size, rng.randbytes)
        for coefficients, equation in zip(matrix, equations(System.of(matrix)), strict=True):
            line = unknowns.line(coefficients)
            assert summed.would_determine(line) == written.would_determine(equation)
            assert summed.add(line) == written.add(equation)
        assert (summed.rank, summed.determined) == (written.rank, written.determined)
        assert list(summed.determined) == exact_rank.determined(matrix)
        searches += unknowns.searches
    assert searches > 10


def test_a_prime_that_divides_a_minor_is_outvoted_by_the_other() -> None:
    """Modulo the first the second equation is the first again; not so modulo the other."""
    rng = Random(3)
    primes = random_primes(2, WIDE_PRIME_BITS, rng.randbytes)
    unknowns = Everybody(2, 2, rng)
    space = SummedSpace(unknowns, primes=primes)
    space.add(unknowns.line([1, 1]))
    assert space.add(unknowns.line([1, 1 + primes[0]])).determined == (0, 1)
    assert SummedSpace(unknowns, primes=primes[:1]).add(unknowns.line([1, 1])).new
