"""Claim: how much noise protects a column of bits against somebody who solves equations.

n people with a bit each, m = 4 n sums over random halves of them, Gaussian noise of deviation
c sqrt(n). Least squares and rounding is right for a fraction Phi(0.5 / (1.155 c)) of the people:
the deviation of an estimate is c sqrt(n) sqrt(4 / (m - n)) = 1.155 c. The default counts the
possible values and does better. With some answers replaced by junk and no other noise, everybody
is recovered.
"""

import argparse
import math
import time
from statistics import NormalDist, fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims import Claim, show
from casemate.attack.reconstruct.problem import NoiseLaw, Prior, Problem
from casemate.attack.reconstruct.reconstruction import Solver
from casemate.attack.reconstruct.run import reconstruct_problem
from casemate.exact import Floats, Rows
from casemate.published.predicates import BitRows

SEEDS = 20
NOISES = (0.1, 0.2, 0.3, 0.5, 1.0)
JUNK = (0.02, 0.1, 0.25)
SLOWEST = 1024
"""The largest size at which the default is measured on all seeds."""


def halves(n: int, random: np.random.Generator) -> Rows:
    """4 n random halves of n people."""
    inside = np.unpackbits(random.integers(0, 256, (4 * n, n // 8), np.uint8), axis=1)
    row, column = np.nonzero(inside)
    starts = np.searchsorted(row, np.arange(4 * n + 1))
    return Rows(starts.astype(np.int64), column.astype(np.uint32), None, n)


def bits(n: int, random: np.random.Generator) -> Floats:
    return random.integers(0, 2, n).astype(np.float64)


def theory(noise: float) -> float:
    """The fraction that least squares gets right."""
    return NormalDist().cdf(0.5 / (1.155 * noise))


def right(
    problem: Problem, truth: Floats, solver: Solver | None, random: np.random.Generator
) -> tuple[float, str]:
    found = reconstruct_problem(
        problem, solver=solver, confidence=None, tolerance=1e-4, random=random
    )
    return float((found.values == truth).mean()), found.solver


def published(
    rows: Rows, noise: Floats, truth: Floats, law: NoiseLaw | None, dense: bool
) -> Problem:
    answers = rows.lengths * rows.times(truth) + noise
    return Problem.of(BitRows.of(rows) if dense else rows, answers, Prior(0.0, 1.0, True), law)


def gaussian(n: int, seeds: int) -> list[Claim]:
    squares: dict[float, list[float]] = {noise: [] for noise in NOISES}
    counted: dict[float, list[float]] = {noise: [] for noise in NOISES}
    spent = {"squares": 0.0, "default": 0.0}
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        rows, truth = halves(n, random), bits(n, random)
        for noise in NOISES:
            scale = noise * math.sqrt(n)
            drawn = random.normal(0, scale, rows.height)
            law = NoiseLaw("gaussian", scale)
            start = time.process_time()
            found, _ = right(
                published(rows, drawn, truth, law, dense=True), truth, Solver.LEAST_SQUARES, random
            )
            squares[noise].append(found)
            spent["squares"] += time.process_time() - start
            if n > SLOWEST and seed >= 2:
                continue
            start = time.process_time()
            found, _ = right(published(rows, drawn, truth, law, dense=False), truth, None, random)
            counted[noise].append(found)
            spent["default"] += time.process_time() - start
    solves = len(NOISES) * seeds
    claims = [
        Claim(
            f"n = {n}, c = {noise}: least squares, mean of {seeds}",
            f"{theory(noise):.3f} +- .01",
            f"{fmean(squares[noise]):.3f}",
        )
        for noise in NOISES
    ]
    claims += [
        Claim(
            f"n = {n}, c = {noise}: the default, mean of {len(counted[noise])}",
            f">= {theory(noise) - 0.01:.3f}",
            f"{fmean(counted[noise]):.3f}",
        )
        for noise in NOISES
    ]
    each = len(counted[NOISES[0]]) * len(NOISES)
    claims.append(
        Claim(
            f"n = {n}: CPU seconds of one solve",
            "-",
            f"{spent['squares'] / solves:.2f} least squares, {spent['default'] / each:.2f} default",
        )
    )
    return claims


def junk(n: int, seeds: int) -> list[Claim]:
    claims = []
    for share in JUNK:
        found, solvers = [], set()
        for seed in range(seeds):
            random = np.random.default_rng(1000 + seed)
            rows, truth = halves(n, random), bits(n, random)
            wrong: NDArray[np.bool_] = random.random(rows.height) < share
            noise = np.where(wrong, random.uniform(-n / 2, n / 2, rows.height), 0.0)
            fraction, solver = right(
                published(rows, noise, truth, None, dense=False), truth, None, random
            )
            found.append(fraction)
            solvers.add(str(solver))
        claims.append(
            Claim(
                f"n = {n}, {share:.0%} junk: the default, worst of {seeds}",
                "1.000, robust",
                f"{min(found):.3f}, {', '.join(sorted(solvers))}",
            )
        )
    return claims


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[512, 1024, 2048, 4096])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    asked = parser.parse_args()
    for n in asked.sizes:
        show(gaussian(n, asked.seeds))
    show(junk(512, asked.seeds))


if __name__ == "__main__":
    main()
