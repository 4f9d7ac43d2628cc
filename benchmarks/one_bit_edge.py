"""Claim: thresholds at the edge of bounded noise leave far smaller errors than at its median.

And a wrong bound, or a law that has nothing to do with the assumed one, costs little: the guard
falls back on the median. A learner that is not told the law finds even noise itself. Shown is the
average error over the limit of thresholds at the median.
"""

import time
from dataclasses import dataclass

import numpy as np

from benchmarks.claims import Claim, show
from casemate.attack.one_bit import AutomaticKalman, EdgeKalman
from casemate.attack.one_bit.laws import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    MixtureLaw,
    Shifted,
    Truncated,
    Uniform,
)
from casemate.attack.one_bit.limit import MEAN_ABSOLUTE, Precision, box_covariance
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import near_basis

SIZE, DIMENSIONS, BOUND = 16, 2, 16.0  # D, d, and U = D u for u = 1
RUNS, LONG_RUNS = 40, 6


@dataclass(frozen=True)
class Case:
    what: str
    law: Law
    assumed: Law | None  # None: the learner is not told
    asked: str
    queries: int = 100_000
    runs: int = RUNS


RIGHT = Uniform(BOUND)
CUT = Truncated(Gaussian(BOUND / 2), -BOUND, BOUND)
SKEWED = MixtureLaw((Shifted(Uniform(6.4), -6.4), Shifted(Uniform(9.6), 9.6)), (0.5, 0.5))
CASES = [
    Case("uniform, 1e5", RIGHT, RIGHT, "<= .12"),
    Case("uniform, 1e6", RIGHT, RIGHT, "<= .05", 1_000_000, LONG_RUNS),
    *(
        Case(f"bound wrong by {part:+.0%}", RIGHT, Uniform(BOUND * (1 + part)), "<= 1.3")
        for part in (-0.1, -0.03, -0.01, 0.01, 0.03, 0.1)
    ),
    Case("Gaussian cut at 2 deviations, by table", CUT, CUT, "about .44"),
    Case("exponential, by table", Exponential(8.0), Exponential(8.0), "about .052"),
    Case("Gaussian, by table", Gaussian(8.0), Gaussian(8.0), "about 1.03"),
    *(
        Case(f"taken for uniform: {law}", law, RIGHT, "")
        for law in (Gaussian(5.0), Gaussian(60.0), Laplace(4.0), Laplace(16.0), Cauchy(5.0))
    ),
    Case("not told: uniform, 1e6", RIGHT, None, "", 1_000_000, LONG_RUNS),
    *(
        Case(f"not told: {law}", law, None, "")
        for law in (RIGHT, SKEWED, CUT, Gaussian(8.0), Laplace(8.0), Cauchy(5.0), Exponential(8.0))
    ),
]


@dataclass(frozen=True)
class Run:
    error: float
    limit: float
    at_edge: bool
    decades: list[float]  # the error of each factor 10 of the stream, summed
    seconds: float


def learner(case: Case, basis: Floats, random: np.random.Generator) -> EdgeKalman | AutomaticKalman:
    if case.assumed is None:
        return AutomaticKalman(SIZE, basis, random=random)
    return EdgeKalman(SIZE, case.assumed, basis, random=random)


def run(case: Case, seed: int) -> Run:
    random = np.random.default_rng(seed)
    stream = near_basis(random, SIZE, DIMENSIONS, case.queries)
    truth = stream.coordinates @ (stream.basis @ random.random(SIZE))
    noisy = truth + case.law.sample(random, case.queries)
    edge = learner(case, stream.basis, random)
    edge.follow(stream.coordinates[:0], noisy[:0])  # compiled before the clock starts
    start = time.process_time()
    errors = np.abs(edge.follow(stream.coordinates, noisy).answers - truth)
    seconds = time.process_time() - start
    information = 4 * case.law.density_at_median**2
    limit = Precision(box_covariance(stream.basis), information).add(stream.coordinates)
    ends = [10**power for power in range(3, 7) if 10 ** (power + 1) <= case.queries]
    decades = [float(errors[end : 10 * end].sum()) for end in ends]
    return Run(errors.mean(), MEAN_ABSOLUTE * limit.mean(), edge.at_edge, decades, seconds)


def measured(case: Case) -> Claim:
    runs = [run(case, seed) for seed in range(case.runs)]
    errors, limits = np.array([r.error for r in runs]), np.array([r.limit for r in runs])
    ratio, spread = errors.mean() / limits.mean(), np.std(errors / limits) / np.sqrt(len(runs))
    kept = sum(r.at_edge for r in runs)
    what = f"{ratio:.3f} (+- {spread:.3f}), law or edge kept in {kept} of {len(runs)}"
    return Claim(case.what, case.asked, what)


def growth() -> Claim:
    case = CASES[1]
    runs = [run(case, 100 + seed) for seed in range(LONG_RUNS)]
    decades = np.mean([r.decades for r in runs], axis=0) / (DIMENSIONS * BOUND)
    shown = ", ".join(f"{number:.1f}" for number in decades)
    return Claim("error summed over each decade, in dU", "11 +- 2", shown)


def speed() -> Claim:
    fastest = max(CASES[0].queries / run(CASES[0], seed).seconds for seed in range(3))
    return Claim("queries a second, d = 2", "", f"{fastest / 1e6:.1f} M")


def main() -> None:
    show([*(measured(case) for case in CASES), growth(), speed()])


if __name__ == "__main__":
    main()
