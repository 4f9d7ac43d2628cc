"""What unit propagation leaves of maxima and minima, as satisfiability."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from casemate.solve.order_clauses import BOTTOM, TOP, Clauses, Propagation
from casemate.solve.order_limit import Clock
from casemate.solve.order_maximiser import Settled, settle
from casemate.solve.order_moves import Moves
from casemate.solve.order_parts import parts
from casemate.solve.order_verdict import Findings


class LiteralModel:
    """One connected part of the clauses that are still open, as a model of its literals."""

    def __init__(
        self, clauses: Clauses, propagation: Propagation, open_clauses: list[int], integer: bool
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
    findings: Findings, clauses: Clauses, propagation: Propagation, moves: Moves, clock: Clock
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
    findings: Findings, model: LiteralModel, wanted: list[int], moves: Moves, clock: Clock
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


def any_table(clauses: Clauses, propagation: Propagation, clock: Clock) -> NDArray[Any] | None:
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
