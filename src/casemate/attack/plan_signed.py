"""A short plan of given queries that are only added and subtracted, by integer programming.

The shortest plan of this kind is found, or a good one when the time is over. Plans with other
coefficients may be shorter, so nothing is proved about those.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_fewest import different_columns

Signs = dict[int, int]
"""Rows with +1 or -1, which add up to one column."""


def signed_plan(
    matrix: NDArray[np.bool_],
    target: int,
    seconds: float,
    random: np.random.Generator,
    most: int | None = None,
) -> Signs | None:
    """At most so many rows of a 0/1 matrix that add up to a column; None if none were found."""
    from ortools.sat.python import cp_model

    if seconds <= 0:
        return None
    model, rows = cp_model.CpModel(), range(len(matrix))
    added = [model.new_bool_var(f"added {row}") for row in rows]
    taken = [model.new_bool_var(f"taken {row}") for row in rows]
    others = np.delete(matrix, target, axis=1)
    others = others[:, np.sort(different_columns(others, random)[0])].T
    for column, total in ((matrix[:, target], 1), *((each, 0) for each in others)):
        used = np.flatnonzero(column).tolist()
        model.add(sum(added[i] - taken[i] for i in used) == total)
    size = sum(added) + sum(taken)
    if most is not None:
        model.add(size <= most)
    model.minimize(size)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers, solver.parameters.random_seed = 1, 0
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    signs = {i: solver.value(added[i]) - solver.value(taken[i]) for i in rows}
    return {i: sign for i, sign in signs.items() if sign}
