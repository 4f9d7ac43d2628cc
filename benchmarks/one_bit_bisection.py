"""Claims: OnlineBisection's error, box and speed, what its errata do, and what its theorems say.

Streams near a basis of equal groups (source document 000, Theorem 2.1's setting), uniform noise on
[-D u, D u], an even secret. Queries a second are of the simulator alone, coordinates given, on one
core, noise drawn beforehand and also with it.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.claims import Claim, show
from casemate.attack.one_bit.bisection import (
    CORRECTED,
    PRINTED,
    TIGHT,
    BisectionConstants,
    BisectionSearch,
    Errata,
    concentrated_basis,
    phases,
    principal_basis,
)
from casemate.attack.one_bit.bisection_simulation import BisectionRun, feed, simulate
from casemate.attack.one_bit.laws import Uniform
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import group_basis, near_basis, printed_angle
from casemate.papers import StreamSetting, batch_claim, error_bound, loss_bound

BLOCK = 1 << 18


@dataclass(frozen=True)
class Case:
    """One setting: D, d, u and T."""

    dimension: int
    directions: int
    u: float
    horizon: int

    def __str__(self) -> str:
        return f"({self.dimension}, {self.directions}, {self.u:g}, 1e{math.log10(self.horizon):g})"

    @property
    def law(self) -> Uniform:
        return Uniform(self.dimension * self.u)

    def coordinates(self, rng: np.random.Generator, factor: float = 1.0) -> Iterator[Floats]:
        for start in range(0, self.horizon, BLOCK):
            count = min(BLOCK, self.horizon - start)
            yield factor * near_basis(rng, self.dimension, self.directions, count).coordinates

    def search(self, reading: Errata, constants: BisectionConstants) -> BisectionSearch:
        return BisectionSearch(
            self.dimension,
            self.directions,
            self.law,
            horizon=self.horizon,
            reading=reading,
            constants=constants,
        )

    def run(
        self,
        seed: int,
        reading: Errata = CORRECTED,
        constants: BisectionConstants = PRINTED,
        factor: float = 1.0,
    ) -> BisectionRun:
        rng = np.random.default_rng(seed)
        secret = group_basis(self.dimension, self.directions) @ rng.random(self.dimension)
        search = self.search(reading, constants)
        return simulate(search, self.coordinates(rng, factor), secret, self.law, rng)


def figures() -> list[Claim]:
    """Shrinks, sides and errors of long streams."""
    runs = [Case(16, 2, 0.1, 10**6).run(seed) for seed in range(5)]
    shrinks = sorted({len(run.shrinks) for run in runs})
    error = np.mean([run.error for run in runs])
    long = Case(64, 4, 0.1, 10**7).run(0)
    stop = [Case(2, 1, 0.01, 10**5).run(seed).shrinks[-1] for seed in range(10)]
    return [
        Claim(
            "(16, 2, .1, 1e6), 5 runs: shrinks, side", "10, .4505", f"{shrinks}, {runs[0].side:.4f}"
        ),
        Claim("  average error", ".155 +- .02", f"{error:.4f}"),
        Claim(
            "(64, 4, .1, 1e7): shrinks, side", "10, .9010", f"{len(long.shrinks)}, {long.side:.4f}"
        ),
        Claim("(2, 1, .01, 1e5), 10 runs: stops at", "27000..32000", f"{min(stop)}..{max(stop)}"),
    ]


def slopes() -> list[Claim]:
    """How fast the error falls with the length of the stream."""
    made = []
    for setting in ((4, 2, 0.1), (16, 2, 0.1), (64, 4, 0.01)):
        lengths = [10**5, 10**6, 10**7]
        errors = [
            np.mean([Case(*setting, length).run(seed).error for seed in range(2)])
            for length in lengths
        ]
        slope = np.polyfit(np.log(lengths), np.log(errors), 1)[0]
        made.append(Claim(f"{setting}: slope over 1e5..1e7, 2 runs", "-.55..-.40", f"{slope:.3f}"))
    return made


def constants() -> list[Claim]:
    """The tight constants beside the printed ones."""
    made = []
    for case in (Case(16, 2, 0.1, 10**6), Case(16, 2, 1.0, 10**6), Case(64, 4, 0.1, 10**6)):
        errors = [
            np.mean([case.run(seed, constants=each).error for seed in range(3)])
            for each in (PRINTED, TIGHT)
        ]
        made.append(Claim(f"{case}: tight / printed", "<= .30", f"{errors[1] / errors[0]:.3f}"))
    return made


def lost(case: Case, runs: int, reading: Errata = CORRECTED, factor: float = 1.0) -> str:
    count = sum(case.run(seed, reading, factor=factor).lost for seed in range(runs))
    return f"{count} of {runs}"


def errata() -> list[Claim]:
    """What the printed text does."""
    case, quiet = Case(16, 2, 0.1, 10**5), Case(16, 2, 0.01, 20_000)
    threshold = Errata(threshold_in_the_middle=False)
    length = Errata(short_queries_left_out=False)
    errors = [case.run(0, reading).error for reading in (CORRECTED, threshold)]
    stream = near_basis(np.random.default_rng(0), 64, 4, 2_000)
    angle = printed_angle(4)
    found = concentrated_basis(stream.queries[:256], 4, angle)
    bases = [found, principal_basis(stream.queries, 4)]
    within = [
        np.mean(
            stream.queries @ basis.T
            >= math.cos(angle) * np.linalg.norm(stream.queries, axis=1)[:, None]
        )
        * 4
        for basis in bases
        if basis is not None
    ]
    return [
        Claim(f"{case}: w lost", "0 of 100", lost(case, 100)),
        Claim("  threshold as printed: w lost", "all", lost(case, 20, threshold)),
        Claim("  error, corrected and as printed", "stated", f"{errors[0]:.3f}, {errors[1]:.3f}"),
        Claim(
            "lengths .014 to .028 as printed: w lost", "about half", lost(quiet, 100, length, 0.01)
        ),
        Claim(
            "lengths .004 to .008 as printed: w lost", "nearly all", lost(quiet, 100, length, 0.003)
        ),
        Claim("  corrected: w lost", "none", lost(quiet, 100, factor=0.003)),
        Claim(
            "(64, 4): queries within the angle, clusters and principal components",
            "stated",
            f"{within[0]:.1%}, {within[1]:.1%}",
        ),
    ]


def theorems() -> list[Claim]:
    """Theorem 2.1 with constants, and Corollary 2.1 where its premise holds and where not."""
    made = []
    for case in (Case(16, 2, 0.1, 10**6), Case(64, 4, 0.1, 10**6)):
        longest = math.sqrt(case.dimension / case.directions) * 1.001
        share = 1 / case.directions
        shape = case.dimension, case.directions, case.horizon
        found = tuple(phases(*shape, case.law, PRINTED))
        setting = StreamSetting(*shape, share, found, longest)
        bound, error = error_bound(setting), case.run(0).error
        made.append(
            Claim(
                f"{case}: Theorem 2.1, error and its bound",
                "error <= bound",
                f"{error:.3f}, {bound:.2f}",
            )
        )
        made.append(Claim("  chance of losing w", "stated", f"<= {loss_bound(setting):.1g}"))
    for case in (
        Case(2, 1, 0.01, 10**5),
        Case(16, 2, 1.0, 10**5),
        Case(64, 4, 0.1, 10**5),
        Case(64, 4, 1.0, 10**5),
    ):
        claim = batch_claim(case.dimension, case.horizon)
        made.append(
            Claim(
                f"{case}: Corollary 2.1, final error", f"<= {claim:.3f}", f"{batch_error(case):.3f}"
            )
        )
    return made


def batch_error(case: Case) -> float:
    """The mean error of the final hypothesis on fresh queries."""
    rng = np.random.default_rng(0)
    secret = group_basis(case.dimension, case.directions) @ rng.random(case.dimension)
    search = case.search(CORRECTED, PRINTED)
    simulate(search, case.coordinates(rng), secret, case.law, rng)
    fresh = near_basis(rng, case.dimension, case.directions, 10_000).coordinates
    return float(np.abs(fresh @ (search.box.middle - secret)).mean())


def speed() -> list[Claim]:
    """Queries a second of the simulator at d = 4."""
    case, rng = Case(64, 4, 0.1, 2_000_000), np.random.default_rng(0)
    coordinates = near_basis(rng, 64, 4, case.horizon).coordinates
    secret = group_basis(64, 4) @ rng.random(64)
    noisy = coordinates @ secret + case.law.sample(rng, case.horizon)
    alone, drawn = [], []
    for _ in range(4):  # the first compiles
        search = case.search(CORRECTED, PRINTED)
        start = time.process_time()
        feed(search, coordinates, noisy)
        alone.append(time.process_time() - start)
        search = case.search(CORRECTED, PRINTED)
        start = time.process_time()
        simulate(search, coordinates, secret, case.law, rng)
        drawn.append(time.process_time() - start)
    return [
        Claim(
            f"d = 4: million queries a second, {what}",
            ">= 10",
            f"{case.horizon / min(taken) / 1e6:.1f}",
        )
        for what, taken in (("noise given", alone), ("noise drawn", drawn))
    ]


def main() -> None:
    show([*figures(), *slopes(), *constants(), *errata(), *theorems(), *speed()])


if __name__ == "__main__":
    main()
