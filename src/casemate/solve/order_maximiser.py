"""Which records can differ from the truth, by maximising how many do at once.

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

from casemate.solve.order_limit import Clock


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
