"""Proofs of exposure as sets of rows, and the fewest rows that meet all of them.

A proof is a set of rows that expose somebody when all of them are published, whatever else is. So a
repair meets every proof there is, and a smallest set of rows that meets those found so far is no
larger than the smallest repair: if nothing is exposed without it, it is one, and none of its rows
could be given back alone.

Source     Implicit hitting sets: Moreno-Centeno and Karp, "The implicit hitting set approach to
           solve combinatorial optimization problems" (2013).
Departure  What is found without a proof is left to the caller; the hitting set is the best that
           a time limit allows, made irreducible.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from casemate.audit.region.collapse import collapse
from casemate.audit.repair.stakes import Stakes
from casemate.audit.repair.statements import RowEvidence
from casemate.audit.result import Withheld
from casemate.exact import Equation, System, certify, determine

HITTING_SET_TIME_LIMIT_SECONDS = 5.0
"""How long the search for a smallest set of rows may take each time."""

Rows = frozenset[Withheld]


@dataclass(frozen=True)
class RowProof:
    """Rows that expose somebody when all are published, and those of them that had best go."""

    rows: Rows
    key: Rows


class Proofs:
    """The proofs found so far, of which each is a set of rows that may not all be published."""

    def __init__(self, rows: Mapping[Withheld, RowEvidence]) -> None:
        self._rows = list(rows)
        sizes = np.array([len(shown.records) for shown in rows.values()], np.float64)
        # one row more is worse than any number of people more
        self._weights = dict(zip(rows, 1 + sizes / (1 + sizes.sum()), strict=True))
        self._found: set[Rows] = set()
        self._keys: set[Rows] = set()

    def add(self, proofs: Iterable[RowProof]) -> bool:
        """Add proofs; whether there was any."""
        new = {proof for proof in proofs if proof.rows}
        self._found |= {proof.rows for proof in new}
        keys = self._keys | {proof.key for proof in new}
        self._keys = {key for key in keys if not any(other < key for other in keys)}
        return bool(new)

    def take(self, rows: Iterable[Withheld]) -> bool:
        """Withhold rows without a proof that they are needed; whether there was any."""
        alone = {frozenset({row}) for row in rows}
        self._keys = {key for key in self._keys if not any(row <= key for row in alone)} | alone
        return bool(alone)

    def hitting_set(self) -> set[Withheld]:
        """As few rows as can be found that meet the key of every proof, of few people."""
        chosen = self._smallest() or set().union(*self._keys)
        for row in sorted(chosen, key=self._weights.__getitem__, reverse=True):
            if _is_needless(row, chosen, self._keys):
                chosen.remove(row)
        return chosen

    def doubtful(self, withheld: set[Withheld]) -> list[Withheld]:
        """The rows of these that no proof shows to be needed, those of most people first."""
        largest = sorted(withheld, key=self._weights.__getitem__, reverse=True)
        return [row for row in largest if _is_needless(row, withheld, self._found)]

    def _smallest(self) -> set[Withheld]:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        rows = sorted(set().union(*self._keys), key=self._rows.index)
        if not rows:
            return set()
        place = {row: number for number, row in enumerate(rows)}
        entries = [(i, place[row]) for i, proof in enumerate(self._keys) for row in proof]
        which, column = np.array(entries).T
        matrix = csr_array((np.ones(len(entries)), (which, column)))
        found = milp(
            [self._weights[row] for row in rows],
            integrality=np.ones(len(rows), np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, lb=1),
            options={"time_limit": HITTING_SET_TIME_LIMIT_SECONDS},
        )
        return set() if found.x is None else {rows[i] for i in np.flatnonzero(found.x > 0.5)}


def _is_needless(row: Withheld, chosen: set[Withheld], sets: Iterable[Rows]) -> bool:
    """Whether the others that are chosen meet all of the sets that this row does."""
    return all(len(each & chosen) > 1 for each in sets if row in each)


# Proofs by rank, without an audit ---------------------------------------------------------------


class RankProofs:
    """What the sums of some rows determine by rank, as proofs."""

    def __init__(self, stakes: Stakes, rows: Mapping[Withheld, RowEvidence]) -> None:
        self._stakes = stakes
        self._owner = {number: row for row, shown in rows.items() for number in shown.equations}

    def of(self, kept: Collection[Withheld]) -> list[RowProof]:
        """A proof for everybody whose value follows by rank from these rows, where one is found."""
        published = set(kept)
        numbers = [
            number
            for number in range(len(self._stakes.lines))
            if self._stakes.is_exact(number)
            and (number not in self._owner or self._owner[number] in published)
        ]
        collapsed = collapse(_system([self._stakes.lines[n] for n in numbers], self._stakes))
        found = determine(collapsed.system)
        says = np.zeros(len(collapsed.sizes), np.bool_)
        says[collapsed.group] = self._stakes.alone & self._stakes.open
        wanted = np.flatnonzero(found.determined & says & (collapsed.sizes == 1)).tolist()
        certificates = certify(collapsed.system, found.block, wanted)
        used = ([numbers[i] for i in each.coefficients] for each in certificates)
        rows = (frozenset(self._owner[n] for n in each if n in self._owner) for each in used)
        return [RowProof(each, each) for each in rows]


def _system(lines: Sequence[Equation], stakes: Stakes) -> System:
    """Some equations as a system of their own."""
    lengths = [len(line.columns) for line in lines]
    return System(
        len(lines),
        stakes.columns,
        np.repeat(np.arange(len(lines), dtype=np.int64), lengths),
        np.concatenate([np.zeros(0, np.int64), *(line.columns for line in lines)]),
        np.concatenate([np.zeros(0, np.int64), *(line.values for line in lines)]),
    )
