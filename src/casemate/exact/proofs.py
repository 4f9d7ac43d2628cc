"""Proofs that a reader can follow: one for many determined unknowns, and short certificates.

Guarantee  Exact: every sum of multiples of equations is checked in integers, and no step relies on
           chance.
Cost       A joint proof takes one elimination of the equations on the other unknowns, and one on
           the determined ones; a short certificate takes a linear program.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.exact.certificate import Certificate, IntegerRows, Target, certify_targets
from casemate.exact.determination import determine_incrementally, independent
from casemate.exact.linear_program import LinearProgram, Scaled, Status
from casemate.exact.modular import RandomBytes
from casemate.exact.region import Box, Region
from casemate.exact.system import System

# Joint proof ------------------------------------------------------------------------------------
# A thousand unknowns may be determined only jointly. Then a certificate for one of them has
# thousands of terms with hundreds of digits, while equations derived among determined unknowns
# only, as many as those, have a few terms with coefficients like 1 and -1. Of the independent
# equations I take J, independent already on the other unknowns. Each of the rest is there a
# combination of J; the difference is a derived equation, in which every other unknown cancels. If
# the matrix of these is invertible modulo some prime then it is invertible, and all its unknowns
# are determined.


@dataclass(frozen=True, eq=False)
class JointProof:
    """Derived equations (each a certificate whose target has determined unknowns only)."""

    columns: tuple[int, ...]  # the unknowns proved to be determined
    derived: tuple[Certificate, ...]

    def holds(self, system: System, random: RandomBytes | None = None) -> bool:
        """Check the proof against the system from nothing but its own contents."""
        known, lines = set(self.columns), IntegerRows(system)
        closed = all(known.issuperset(each.target) for each in self.derived)
        if not closed or not all(lines.proves(each) for each in self.derived):
            return False
        return len(independent(self._system(), random).rows) == len(self.columns)

    def _system(self) -> System:
        """The derived equations over the proved unknowns."""
        place = {column: k for k, column in enumerate(self.columns)}
        entries = [
            (i, place[column], value)
            for i, each in enumerate(self.derived)
            for column, value in each.target.items()
        ]
        values = np.empty(len(entries), object)
        values[:] = [value for _, _, value in entries]
        narrow = all(abs(value) < 2**62 for value in values)
        return System(
            len(self.derived),
            len(self.columns),
            np.array([i for i, _, _ in entries], np.int64),
            np.array([j for _, j, _ in entries], np.int64),
            values.astype(np.int64) if narrow else values,
        )


def prove(
    system: System,
    rows: NDArray[np.int64],
    determined: NDArray[np.bool_],
    random: RandomBytes | None = None,
) -> JointProof | None:
    """Prove that all of these unknowns are determined, given the independent equations."""
    columns = tuple(np.flatnonzero(determined).tolist())
    derived = tuple(_derive(system, rows, determined, random))
    proof = JointProof(columns, derived)
    return proof if proof.holds(system, random) else None


def _derive(
    system: System,
    rows: NDArray[np.int64],
    determined: NDArray[np.bool_],
    random: RandomBytes | None,
) -> Iterator[Certificate]:
    """The equations among determined unknowns that follow from the independent ones."""
    lines = IntegerRows(system)
    others = system.part(rows, np.flatnonzero(~determined))
    block = independent(others, random)
    rest = np.setdiff1d(np.arange(len(rows)), block.rows).tolist()
    on_others = IntegerRows(others)
    targets: list[Target] = [on_others.combine({i: 1}) for i in rest]
    place = {id(target): i for target, i in zip(targets, rest, strict=True)}
    for found in certify_targets(others, block, targets):
        own = place[id(found.target)]
        weights = {int(rows[k]): -weight for k, weight in found.coefficients.items()}
        weights[int(rows[own])] = found.divisor
        yield Certificate(lines.combine(weights), weights, 1)


# Short certificates -----------------------------------------------------------------------------
# Least total |coefficient|: min |y|_1 with y A = t. Its dual, max t.x with |A x| <= 1, has the
# equations as they stand as constraints and the coefficients as multipliers, and only the objective
# changes from one target to the next, so each starts where the last one ended. Floating point
# proposes the equations; the coefficients are then solved for and checked in integers on those
# equations alone.


_ZERO_MULTIPLIER = (
    1e-7  # a multiplier below this is taken for zero; a wrong guess fails the exact check
)


def short_certificates(
    system: System, targets: Sequence[Target], seconds: float, random: RandomBytes | None = None
) -> Iterator[Certificate | None]:
    """A short certificate for each target; None where the time is over or doubles do not help."""
    deadline = time.monotonic() + seconds
    program, plain = None, system.value.dtype != object  # larger integers are beyond doubles
    for target in targets:
        found = None
        if plain and time.monotonic() < deadline:
            program = program or _dual_program(system)
            rows = _propose_equations(program, target, deadline)
            found = certify_with(system, rows, target, random)
        yield found


def _dual_program(system: System) -> LinearProgram:
    """|A x| <= 1, over which t.x is made largest for one target t after another."""
    ends = (Fraction(1),) * system.rows
    region = Region(system, Box.of(system.columns), tuple(-end for end in ends), ends)
    return LinearProgram(Scaled.of(region))


def _propose_equations(program: LinearProgram, target: Target, deadline: float) -> list[int]:
    """The equations that float arithmetic proposes; none if the time is over."""
    objective = np.zeros(program.scaled.columns)
    objective[list(target)] = [-float(weight) for weight in target.values()]
    status, vertex = program.minimise(objective, deadline)
    if status is not Status.OPTIMAL:
        return []
    return np.flatnonzero(np.abs(vertex.multipliers) > _ZERO_MULTIPLIER).tolist()


def certify_with(
    system: System, rows: Sequence[int], target: Target, random: RandomBytes | None = None
) -> Certificate | None:
    """A certificate that uses no other equations than these, if they determine the target."""
    touched = np.unique(system.column[np.isin(system.row, rows)])
    part, columns = system.part(np.array(rows, np.int64), touched), touched.tolist()
    if not set(target).issubset(columns):
        return None
    renamed = {columns.index(column): weight for column, weight in target.items()}
    found = next(
        certify_targets(part, determine_incrementally(part, random).block, [renamed]), None
    )
    if found is None:
        return None
    coefficients = {rows[i]: weight for i, weight in found.coefficients.items()}
    return Certificate(target, coefficients, found.divisor)
