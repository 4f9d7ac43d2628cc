"""What unit propagation leaves of maxima and minima, as satisfiability.

Which records can differ from the truth, by maximising how many do at once.

Guarantee  The truth solves the model, so a search that starts from it always has a table to show.
           When no table moves any of the candidates, and that is proved, all of them are
           determined. A candidate that some table moves is struck off, and the rest go on.
Departure  A bound on how many candidates one table moves is no bound on how many are movable one
           at a time (three records of which any two must stay), so it is reported as what it is.
           `test_more_records_can_be_free_than_can_differ_in_one_table` shows the difference.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from casemate.audit.order.case import OrderFindings
from casemate.audit.order.clauses import BOTTOM, TOP, ExtremeClauses, UnitPropagation, parts
from casemate.audit.order.moves import Moves
from casemate.audit.time_limit import Clock


@dataclass(frozen=True)
class Settled:
    """Those that no table moves, those left undecided, and how many of these move together."""

    unmovable: NDArray[np.int64]
    undecided: NDArray[np.int64]
    together: int


def settle(
    model: cp_model.CpModel,
    moved: Mapping[int, cp_model.LiteralT],
    accept: Callable[[cp_model.CpSolver], NDArray[np.bool_]],
    clock: Clock,
    patience: float = math.inf,
) -> Settled:
    """Decide every record of `moved`, whose literal is true only where the record has moved.

    One maximisation may take `patience`, as long as each still finds somebody.
    `accept` takes a solution as a witness and says, in the order of `moved`, which records have
    been shown to be movable so far.
    """
    records = np.array(list(moved), np.int64)
    literals = list(moved.values())
    candidates, together = np.arange(len(records)), len(records)
    while len(candidates) and not clock.over:
        model.maximize(sum(literals[each] for each in candidates))
        solver = clock.solver(patience)
        status = solver.solve(model)
        clock.spent(solver)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        if status == cp_model.OPTIMAL and round(solver.objective_value) == 0:
            return Settled(records[candidates], records[:0], 0)
        # A bound for these candidates holds for the fewer that the next turn looks at, too.
        together = min(together, math.floor(solver.best_objective_bound + 1e-6))
        kept = candidates[~accept(solver)[candidates]]
        if len(kept) == len(candidates):
            break
        candidates = kept
    return Settled(records[:0], records[candidates], min(together, len(candidates)))


def values_of(
    solver: cp_model.CpSolver, variables: Mapping[int, cp_model.IntVar]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The records and values of a solution."""
    values = [solver.value(variable) for variable in variables.values()]
    return np.array(list(variables), np.int64), np.array(values, np.int64)


# Order literals ---------------------------------------------------------------------------------


class LiteralModel:
    """One connected part of the clauses that are still open, as a model of its literals."""

    def __init__(
        self,
        clauses: ExtremeClauses,
        propagation: UnitPropagation,
        open_clauses: list[int],
        integer: bool,
    ) -> None:
        self.model = cp_model.CpModel()
        self._clauses, self._forced = clauses, propagation.forced
        self._literal: dict[tuple[int, int], cp_model.IntVar] = {}
        self.records: list[int] = []
        for clause in open_clauses:
            side = int(clauses.side[clause])
            members = [each for each in clauses.records_of(clause) if not self._forced[each]]
            self.model.add_bool_or([self.literal(each, side) for each in members])
        gap = clauses.high - clauses.low
        for record in self.records:
            ends = [self.literal(record, TOP), self.literal(record, BOTTOM)]
            exactly = integer and gap[record] == 1
            (self.model.add_exactly_one if exactly else self.model.add_at_most_one)(ends)

    def literal(self, record: int, side: int) -> cp_model.IntVar:
        """The literal "this record is at this end"."""
        if (record, side) not in self._literal:
            for end in (TOP, BOTTOM):
                self._literal[record, end] = self.model.new_bool_var("")
            self.records.append(record)
        return self._literal[record, side]

    def hint(self, place: NDArray[np.int64]) -> None:
        """Start the search from where each record stands."""
        for (record, side), literal in self._literal.items():
            self.model.add_hint(literal, bool(place[record] == side))

    def sides(self, solver: cp_model.CpSolver) -> NDArray[np.int64]:
        """Where a solution puts each of the part's records; 0 where it is at neither end."""
        return np.array(
            [
                solver.value(self.literal(each, TOP)) - solver.value(self.literal(each, BOTTOM))
                for each in self.records
            ],
            np.int64,
        )


def settle_literals(
    findings: OrderFindings,
    clauses: ExtremeClauses,
    propagation: UnitPropagation,
    moves: Moves,
    clock: Clock,
) -> None:
    """Decide the records that small moves did not free, one connected part at a time."""
    for part in parts(clauses, propagation):
        wanted = {
            record
            for clause in part
            for record in clauses.records_of(clause)
            if moves.wanted[record] and not propagation.forced[record]
        }
        if wanted:
            model = LiteralModel(clauses, propagation, part, findings.case.integer)
            settled = _settle_part(findings, model, sorted(wanted), moves, clock)
            findings.expose(settled.unmovable, "order")
            findings.give_up(settled.together)


def _settle_part(
    findings: OrderFindings, model: LiteralModel, wanted: list[int], moves: Moves, clock: Clock
) -> Settled:
    # A record that is wanted stands at an end that clauses need; it has moved once it left that.
    moved = {each: ~model.literal(each, int(moves.place[each])) for each in wanted}
    model.hint(moves.at_end)
    records, asked = np.array(model.records), np.array(wanted)

    def accept(solver: cp_model.CpSolver) -> NDArray[np.bool_]:
        sides = model.sides(solver)
        left = (sides != moves.place[records]) & (moves.place[records] != 0)
        # Whoever leaves an end may as well go to the other: no clause minds.
        sides = np.where(left & (sides == 0), -moves.place[records], sides)
        goes = sides != 0
        findings.offer(records[goes], moves.values(records[goes], sides[goes]))
        loose: NDArray[np.bool_] = findings.loose[asked]
        return loose

    return settle(model.model, moved, accept, clock)


def any_table(
    clauses: ExtremeClauses, propagation: UnitPropagation, clock: Clock
) -> NDArray[Any] | None:
    """A table that satisfies all the clauses; None if there is none.

    Whoever need not be at an end is put halfway, so the ends are even numbers. Raises
    TimeoutError if the limit comes first.
    """
    sides = propagation.forced.copy()
    for part in parts(clauses, propagation):
        model = LiteralModel(clauses, propagation, part, integer=False)
        solver = clock.solver(math.inf)
        status = solver.solve(model.model)
        clock.spent(solver)
        if status == cp_model.INFEASIBLE:
            return None
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise TimeoutError("no table was found within the limit")
        sides[model.records] = model.sides(solver)
    inner = (clauses.low + clauses.high) // 2
    return np.where(sides == TOP, clauses.high, np.where(sides == BOTTOM, clauses.low, inner))
