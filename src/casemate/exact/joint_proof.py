"""One proof for everybody: derived equations among determined unknowns only, as many as those.

Guarantee  Exact. Each derived equation is a sum of multiples of equations, checked in integers, in
           which every other unknown cancels. If their matrix is invertible modulo some prime then
           it is invertible, and all its unknowns are determined. No step relies on chance.
Why        A thousand unknowns may be determined only jointly. Then a certificate for one of them
           has thousands of terms with hundreds of digits, while the derived equations have a few
           terms with coefficients like 1 and -1.
Method     Of the independent equations I take J, independent already on the other unknowns. Each of
           the rest is there a combination of J; the difference is a derived equation.
Cost       One elimination of the equations on the other unknowns, one on the determined ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.exact.certificate import Certificate, IntegerRows, Target, certify, certify_targets
from casemate.exact.primes import RandomBytes
from casemate.exact.system import System
from casemate.exact.unknowns import independent


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

    def certificates(
        self,
        columns: Sequence[int],
        digits: int | None = None,
        random: RandomBytes | None = None,
    ) -> Iterator[Certificate]:
        """Certificates of single unknowns in terms of the original equations, one by one."""
        place = {column: k for k, column in enumerate(self.columns)}
        block, system = independent(self._system(), random), self._system()
        wanted = [place[column] for column in columns if column in place]
        for each in certify(system, block, wanted, digits):
            yield self._spelled_out(each)

    def _spelled_out(self, over_derived: Certificate) -> Certificate:
        """Replace derived equations by the original ones they are made of."""
        total: dict[int, int] = {}
        parts = [(weight, self.derived[k]) for k, weight in over_derived.coefficients.items()]
        scale = int(np.lcm.reduce(np.array([part.divisor for _, part in parts], object)))
        for weight, part in parts:
            factor = weight * (scale // part.divisor)
            for i, coefficient in part.coefficients.items():
                total[i] = total.get(i, 0) + factor * coefficient
        column = self.columns[over_derived.column]
        named = {i: total[i] for i in sorted(total) if total[i]}
        return Certificate({column: 1}, named, over_derived.divisor * scale)

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
    derived = tuple(_derived(system, rows, determined, random))
    proof = JointProof(columns, derived)
    return proof if proof.holds(system, random) else None


def _derived(
    system: System,
    rows: NDArray[np.int64],
    determined: NDArray[np.bool_],
    random: RandomBytes | None,
) -> Iterator[Certificate]:
    """The equations among determined unknowns that follow from the independent ones."""
    lines = IntegerRows(system)
    others = _part(system, rows, ~determined)
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


def _part(system: System, rows: NDArray[np.int64], chosen: NDArray[np.bool_]) -> System:
    """The given equations on the chosen columns, both renumbered."""
    row_place = np.full(system.rows, -1, np.int64)
    row_place[rows] = np.arange(len(rows))
    column_place = np.cumsum(chosen) - 1
    inside = (row_place[system.row] >= 0) & chosen[system.column]
    return System(
        len(rows),
        int(chosen.sum()),
        row_place[system.row[inside]],
        column_place[system.column[inside]],
        system.value[inside],
    )
