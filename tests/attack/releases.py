"""Releases to be scored, and a plain reconstruction of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.features import Features
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.reconstruct.reconstruction import Reconstruction, Solver
from casemate.attack.score.leave_one_out import solve_squares
from casemate.exact import Floats


@dataclass(frozen=True, eq=False)
class Release:
    """What was published, what is public, and what is true."""

    problem: Problem
    features: Features
    truth: Floats


BIT = Prior(low=0.0, high=1.0, whole=True)


def subsets(count: int, queries: int, truth: Floats, rng: np.random.Generator) -> Release:
    """Exact sums over random tenths, and public columns that say nothing of the bits."""
    matrix = (rng.random((queries, count)) < 0.1).astype(np.float64)
    public = {"town": rng.integers(0, 4, count), "sex": rng.integers(0, 2, count)}
    return Release(Problem.of(matrix, matrix @ truth, BIT), Features.from_arrays(public), truth)


def independent(count: int, rng: np.random.Generator) -> Release:
    """Everybody is determined, and one in four has the bit, whatever is public."""
    truth = (rng.random(count) < 0.25).astype(np.float64)
    return subsets(count, 2 * count, truth, rng)


def harmless(count: int, rng: np.random.Generator) -> Release:
    """The bit follows from two public columns, and each of their cells has its total."""
    town, sex = rng.integers(0, 5, count), rng.integers(0, 2, count)
    truth = ((town + sex) % 3 == 0).astype(np.float64)
    cells = town * 2 + sex
    matrix = (np.arange(10)[:, None] == cells).astype(np.float64)
    features = Features.from_arrays({"town": town, "sex": sex})
    return Release(Problem.of(matrix, matrix @ truth, BIT), features, truth)


def reconstruct_problem(problem: Problem, half: float = 0.4) -> Reconstruction:
    """The least squares, and intervals of a fixed width."""
    values = solve_squares(problem)
    unsure: NDArray[np.float64] = np.full(len(values), np.nan)
    return Reconstruction(
        Solver.BOX, values, values - half, values + half, unsure, 0.9, 0.0, 1, 0.0
    )
