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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case, name_of
from casemate.audit.classes.facts import LinearFact, NumberFacts, facts_of, middle_pair
from casemate.audit.region.collapse import collapse
from casemate.audit.repair.stakes import Stakes
from casemate.audit.repair.statements import AuditedStatements, RowEvidence
from casemate.audit.result import Withheld
from casemate.exact import Equation, System, certify, determine
from casemate.query.records import Cut

HITTING_SET_TIME_LIMIT_SECONDS = 5.0
"""How long the search for a smallest set of rows may take each time."""

Rows = frozenset[Withheld]
Ways = frozenset[Rows]


@dataclass(frozen=True)
class RowProof:
    """Rows that expose somebody when all are published, and those of them that had best go."""

    rows: Rows
    key: Rows


class Proofs:
    """The proofs found so far, of which each is a set of rows that may not all be published.

    A proof can be given as `Ways` to meet it: one of some sets of rows has to go as a whole.
    """

    def __init__(self, rows: Mapping[Withheld, RowEvidence]) -> None:
        self._rows = list(rows)
        numbers = np.array([len({name for _, name in e.cells}) for e in rows.values()], np.float64)
        sizes = np.array([len(shown.records) for shown in rows.values()], np.float64)
        # one number more is worse than any number of people more; of the same people the last goes
        share, order = 1 / (4 + 4 * sizes.sum()), np.arange(len(rows), 0, -1)
        weights = numbers + share * sizes + order / (4 + 4 * order.sum())
        self._weights = dict(zip(rows, weights.tolist(), strict=True))
        self._statements: dict[int, list[Withheld]] = {}
        for row in rows:
            self._statements.setdefault(row.query, []).append(row)
        self._found: set[Ways] = set()
        self._wanted: set[Ways] = set()
        self._last: set[Withheld] = set()

    def add(self, proofs: Iterable[RowProof]) -> bool:
        """Add proofs; whether there was any."""
        new = [proof for proof in proofs if proof.rows]
        self._found |= {_one_of(proof.rows) for proof in new}
        self.guess(_one_of(proof.key) for proof in new)
        return bool(new)

    def add_ways(self, ways: Iterable[Ways]) -> None:
        """Add proofs by the ways to meet each."""
        new = set(ways)
        self._found |= new
        self._wanted |= new

    def guess(self, ways: Iterable[Ways]) -> None:
        """Let one of the sets of each go without a proof that it has to."""
        wanted = self._wanted.union(ways)
        self._wanted = {each for each in wanted if not any(other < each for other in wanted)}

    def hitting_set(self) -> set[Withheld]:
        """As few rows as can be found that meet every proof, of few people and not whole tables."""
        chosen = self._smallest() or {row for ways in self._wanted for some in ways for row in some}
        for row in sorted(chosen, key=self._weights.__getitem__, reverse=True):
            if _is_needless(row, chosen, self._wanted):
                chosen.remove(row)
        self._last = set(chosen)
        return chosen

    def doubtful(self, withheld: set[Withheld]) -> list[Withheld]:
        """The rows of these that no proof shows to be needed, those of most people first."""
        largest = sorted(withheld, key=self._weights.__getitem__, reverse=True)
        return [row for row in largest if _is_needless(row, withheld, self._found)]

    def _smallest(self) -> set[Withheld]:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        used = {row for ways in self._wanted for some in ways for row in some}
        rows = [row for row in self._rows if row in used]
        if not rows:
            return set()
        sets = {some for ways in self._wanted for some in ways if len(some) > 1}
        several = sorted(sets, key=lambda some: sorted(map(rows.index, some)))
        place = {some: i for i, some in enumerate([*(frozenset({r}) for r in rows), *several])}
        single = {row: place[frozenset({row})] for row in rows}
        sums = sorted((1, sorted((place[some], 1) for some in ways)) for ways in self._wanted)
        sums += [(0, [(single[row], 1), (place[some], -1)]) for some in several for row in some]
        whole = [own for own in self._statements.values() if used.issuperset(own)]
        for number, own in enumerate(whole, start=len(place)):  # 1 where nothing would be left
            sums.append((1 - len(own), [(number, 1), *((single[row], -1) for row in own)]))
        which = np.repeat(np.arange(len(sums)), [len(each) for _, each in sums])
        column, value = np.array([pair for _, each in sums for pair in each]).T
        matrix, lows = csr_array((value, (which, column))), [low for low, _ in sums]
        stay = 1 / (4 + 4 * len(self._rows))  # of as few rows those of before
        costs = [self._weights[row] + (row not in self._last) * stay for row in rows]
        costs += [0.0] * len(several) + [1 / (4 + 4 * len(whole))] * len(whole)
        found = milp(
            costs,
            integrality=np.ones(len(costs), np.int64),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, lb=lows),
            options={"time_limit": HITTING_SET_TIME_LIMIT_SECONDS},
        )
        if found.x is None:
            return set()
        return {row for row, taken in zip(rows, found.x.tolist(), strict=False) if taken > 0.5}


def _one_of(rows: Rows) -> Ways:
    return frozenset(frozenset({row}) for row in rows)


def _is_needless(row: Withheld, chosen: set[Withheld], proofs: Iterable[Ways]) -> bool:
    """Whether the others that are chosen meet all of the proofs."""
    others = chosen - {row}
    return all(any(some <= others for some in ways) for ways in proofs)


# Who has an extreme -----------------------------------------------------------------------------


MAX_CAPS = 5
"""So many extremes at most are withheld for somebody to have another."""


@dataclass(frozen=True, eq=False)
class _Extreme:
    """A published extreme of some records, upwards: a minimum of numbers is a maximum below 0."""

    shown: Withheld
    unit: NDArray[np.int64]
    level: int


class Attainers:
    """The extremes that somebody has alone, and how others could have them instead.

    Who is in an extreme cannot have it while a lower one is published that they are in too. If
    that is so for all others in it, everybody knows who has it: either the extreme goes, or all
    that keep another away from it. `medians` are those that somebody's value is in the middle of,
    and `empty` are numbers that say by themselves who has no value.
    """

    def __init__(self, case: Case, statements: AuditedStatements) -> None:
        self._of: dict[int, list[tuple[_Extreme, dict[int, list[_Extreme]]]]] = {}
        self.medians: dict[int, list[Withheld]] = {}
        self.empty: set[Ways] = set()
        absent = (each.column for each in case.equations.unknowns if each.category == Cut(None))
        for name in dict.fromkeys([*map(name_of, case.publication.ordered), *absent]):
            facts = facts_of(case, name)
            if facts is not None:
                for kind in ("max", "min", "median"):
                    self._note(facts, kind, statements)
                self.empty |= {
                    _one_of(frozenset({statements.listed[each.place.query].unit(each.place)}))
                    for each in facts.linear
                    if _says_nobody_has_one(each)
                }

    def _note(self, facts: NumberFacts, kind: str, statements: AuditedStatements) -> None:
        extremes: list[_Extreme] = []
        inside: dict[int, list[_Extreme]] = {}
        for fact in (each for each in facts.order if each.kind == kind):
            shown = statements.listed[fact.place.query].unit(fact.place)
            there = facts.present[fact.unit]
            values = facts.number[fact.unit[there]] * (-1 if kind == "min" else 1)
            if kind == "median":
                middle = middle_pair(values, fact.times[there])
                for unit in fact.unit[there][np.isin(values, middle)].tolist():
                    self.medians.setdefault(unit, []).append(shown)
                continue
            extremes.append(_Extreme(shown, fact.unit, int(values.max())))
            for unit in fact.unit.tolist():
                inside.setdefault(unit, []).append(extremes[-1])
            for unit in fact.unit[there][values == values.max()].tolist():
                self._of.setdefault(unit, []).append((extremes[-1], inside))

    @property
    def is_needed(self) -> bool:
        """Whether rank does not say everything."""
        return bool(self._of or self.medians or self.empty)

    def ways(self, place: int) -> Iterator[Ways]:
        """For each extreme that somebody has: it goes, or what keeps another away from it."""
        for extreme, inside in self._of.get(place, ()):
            others = (unit for unit in extreme.unit.tolist() if unit != place)
            caps = {
                frozenset(each.shown for each in inside[unit] if each.level < extreme.level)
                for unit in others
            }
            few = {frozenset({extreme.shown}), *(each for each in caps if len(each) <= MAX_CAPS)}
            if frozenset() not in caps:
                yield frozenset(each for each in few if not any(other < each for other in few))


def _says_nobody_has_one(fact: LinearFact) -> bool:
    return not fact.alpha.any() and fact.high == 0 and bool((fact.beta > 0).all())


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
