"""Equations known by sums: is this one new, and whose value does it give away?

The same question as `exact.RowSpace` answers, for equations that nobody writes out. An equation
comes as the total of secret random fingerprints of its unknowns, which a database adds up beside
the answer; single coefficients are asked for where they are needed: on the pivots of earlier
equations, and on the candidates for a new pivot.

Guarantee  That of `exact.PivotBasis` modulo each of two random secret primes; an unknown counts as
           determined when either says so. Both see the same fingerprints, so a coincidence among
           those (about 2^-50 a test, for fingerprints of more bits than the primes) can take a
           new equation for one that follows; nothing is missed otherwise.
Cost       As for `exact.RowSpace`, and whatever it takes to look up the coefficients asked for.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from casemate.exact import (
    PRIME_COUNT,
    WIDE_PRIME_BITS,
    Added,
    Pivot,
    PivotBasis,
    RandomBytes,
    RankStep,
    Vector,
    random_primes,
    weighted_sum,
)

Names = NDArray[np.int64]
"""Unknowns, each by a number of its own."""


class Summed(Protocol):
    """An equation that is known by its total."""

    @property
    def total(self) -> int:
        """The sum of coefficients times fingerprints."""

    def on(self, names: Names) -> NDArray[Any]:
        """Its coefficients of these unknowns."""


Sum = TypeVar("Sum", bound=Summed)
Sum_contra = TypeVar("Sum_contra", bound=Summed, contravariant=True)


@dataclass(frozen=True, eq=False)
class CandidateUnknowns:
    """Some unknowns, with their coefficients in a new equation and in each of the kept ones."""

    names: Names
    own: NDArray[Any]
    kept: NDArray[Any]  # unknowns x equations

    def only(self, place: int) -> "CandidateUnknowns":
        """One of them."""
        one = slice(place, place + 1)
        return CandidateUnknowns(self.names[one], self.own[one], self.kept[one])


class Combined(NamedTuple):
    """A combination of kept equations, by their slots, modulo a prime."""

    slots: NDArray[np.int64]
    weights: NDArray[np.uint64]
    prime: int


class Unknowns(Protocol[Sum_contra]):
    """What is asked about: fingerprints, and a way through all of the unknowns."""

    def fingerprint(self, name: int) -> int:
        """The secret random number of an unknown."""

    def candidates(
        self, asked: Sum_contra, kept: Sequence[Sum_contra], turn: int, combined: Combined
    ) -> Iterator[CandidateUnknowns]:
        """All unknowns in which the equation may differ from what is combined, the likely first.

        They come in batches. `turn` counts the pivots so far: whoever begins elsewhere each time
        meets fewer of them.
        """


class SummedSpace(Generic[Sum]):
    """The combinations of the equations added so far."""

    def __init__(
        self,
        unknowns: Unknowns[Sum],
        random: RandomBytes | None = None,
        primes: tuple[int, ...] | None = None,
    ) -> None:
        self._unknowns = unknowns
        self._views = tuple(
            _View(each) for each in primes or random_primes(PRIME_COUNT, WIDE_PRIME_BITS, random)
        )
        self._kept: list[Sum] = []
        self._last: tuple[Sum, list[RankStep]] | None = None

    @property
    def rank(self) -> int:
        """How many of the equations are independent."""
        return max(view.basis.rank for view in self._views)

    @property
    def determined(self) -> tuple[int, ...]:
        """Every unknown determined so far."""
        return tuple(sorted({name for view in self._views for name in view.basis.determined}))

    @property
    def pivots(self) -> Names:
        """The unknowns whose coefficients are asked for in every further equation."""
        return np.unique(np.concatenate([view.pivots for view in self._views]))

    def would_determine(self, equation: Sum) -> tuple[int, ...]:
        """The further unknowns that would be determined if this equation were added."""
        return self._newly(self._steps(equation))

    def add(self, equation: Sum) -> Added:
        """Add an equation and say what it did."""
        steps = self._steps(equation)
        determined = self._newly(steps)
        for view, step in zip(self._views, steps, strict=True):
            view.commit(step, len(self._kept))
        new = any(step.new for step in steps)
        if new:
            self._kept.append(equation)
        self._last = None
        return Added(new, determined)

    def copy(self) -> "SummedSpace[Sum]":
        """Another one with the same equations, which goes its own way from here."""
        twin = copy(self)
        twin._views = tuple(view.copy() for view in self._views)
        twin._kept, twin._last = list(self._kept), None
        return twin

    def _steps(self, equation: Sum) -> list[RankStep]:
        """What each view makes of it; an equation asked about and then added is looked at once."""
        if self._last is None or self._last[0] is not equation:
            asked = _SpaceProbe(equation, self._kept, self._unknowns)
            self._last = equation, [view.consider(asked) for view in self._views]
        return self._last[1]

    def _newly(self, steps: list[RankStep]) -> tuple[int, ...]:
        found = {name for step in steps for name in step.determined}
        return tuple(sorted(found.difference(self.determined))) if found else ()


class _SpaceProbe(Generic[Sum]):
    """An equation beside the kept ones; what one view has found is tried first by the next."""

    def __init__(self, equation: Sum, kept: Sequence[Sum], unknowns: Unknowns[Sum]) -> None:
        self.equation, self.unknowns = equation, unknowns
        self._kept = kept
        self._on: tuple[Names, NDArray[Any]] | None = None
        self._found: CandidateUnknowns | None = None

    def on(self, names: Names) -> NDArray[Any]:
        if self._on is None or not np.array_equal(self._on[0], names):
            self._on = names, self.equation.on(names)
        return self._on[1]

    def candidates(self, turn: int, combined: Combined) -> Iterator[CandidateUnknowns]:
        if self._found is not None:
            yield self._found
        yield from self.unknowns.candidates(self.equation, self._kept, turn, combined)

    def take(self, found: CandidateUnknowns) -> None:
        self._found = found


class _View:
    """The equations as one prime sees them."""

    def __init__(self, prime: int) -> None:
        self.basis = PivotBasis(prime)
        self.pivots: Names = np.zeros(0, np.int64)
        self._slots = np.zeros(0, np.int64)  # which of the kept equations are independent here

    def consider(self, asked: _SpaceProbe[Sum]) -> RankStep:
        def find(combination: Vector) -> Pivot:
            return self._differing(asked, combination)

        return self.basis.consider(asked.equation.total, asked.on(self.pivots), find)

    def commit(self, step: RankStep, slot: int) -> None:
        self.basis.commit(step)
        if step.pivot is not None:
            self.pivots = np.append(self.pivots, step.pivot.column)
            self._slots = np.append(self._slots, slot)

    def copy(self) -> "_View":
        twin = copy(self)
        twin.basis = self.basis.copy()
        return twin

    def _differing(self, asked: _SpaceProbe[Sum], combination: Vector) -> Pivot:
        """Look for an unknown where the equation is not this combination of the kept ones."""
        weights = combination.astype(np.uint64)
        combined = Combined(self._slots, weights, self.basis.prime)
        for batch in asked.candidates(self.basis.rank, combined):
            lines = batch.kept[:, self._slots]
            made = weighted_sum(lines, weights)
            for place, (own, other) in enumerate(zip(batch.own.tolist(), made, strict=True)):
                if (own - other) % self.basis.prime:
                    asked.take(batch.only(place))
                    name = int(batch.names[place])
                    return Pivot(name, asked.unknowns.fingerprint(name), own, lines[place])
        raise ValueError("the equation differs from the kept ones at no unknown")
