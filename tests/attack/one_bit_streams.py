"""Simulated streams for tests of the one-bit learners: laws, worlds, errors, and runs of bisection.

`once` is one run of OnlineBisection, as the tests of its figures and errata need it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from casemate.attack.one_bit.bisection import (
    CORRECTED,
    PRINTED,
    BisectionConstants,
    BisectionSearch,
    Errata,
    phases,
)
from casemate.attack.one_bit.bisection_simulation import BisectionRun, simulate
from casemate.attack.one_bit.laws import Gaussian, Law, MixtureLaw, Shifted, Truncated, Uniform
from casemate.attack.one_bit.limit import Precision, box_covariance
from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.attack.one_bit.streams import Stream, group_basis, near_basis
from casemate.papers import StreamSetting

Streams = Callable[[np.random.Generator, int, int, int], Stream]

CUT = Truncated(Gaussian(1.0), -2.0, 2.0)


def two_humps(law: Law, distance: float) -> MixtureLaw:
    """Noise of a law on either side of 0, at this distance."""
    return MixtureLaw((Shifted(law, -distance), Shifted(law, distance)), (0.5, 0.5))


def skewed(low: float, high: float) -> MixtureLaw:
    """Noise with median 0, even from `low` to 0 and even from 0 to `high`."""
    halves = (Shifted(Uniform(-low / 2), low / 2), Shifted(Uniform(high / 2), high / 2))
    return MixtureLaw(halves, (0.5, 0.5))


def dense(rng: np.random.Generator, size: int, dimensions: int, count: int) -> Stream:
    """Mixtures of random profiles that touch every coordinate: no groups at all."""
    if not 1 <= dimensions <= size:
        raise ValueError(f"need between 1 and {size} dimensions, got {dimensions}")
    shares = rng.dirichlet(np.ones(dimensions), count) * rng.uniform(0.5, 1.0, (count, 1))
    factor, triangle = np.linalg.qr(rng.random((dimensions, size)).T)
    return Stream(np.ascontiguousarray(factor.T), shares @ triangle.T)


class Follower(Protocol):
    """A learner that runs through a stream."""

    def follow(self, coordinates: Floats, noisy: Floats, /) -> AnswerTrail: ...


@dataclass(frozen=True, eq=False)
class World:
    """A stream, a secret, and what an oracle compares."""

    stream: Stream
    w: Floats
    truth: Floats
    noisy: Floats


def world(
    stream: Stream, law: Law | None, rng: np.random.Generator, w: Floats | None = None
) -> World:
    """The stream before an oracle with noise of a law; without a secret, an even one."""
    secret = rng.random(len(stream.basis.T)) if w is None else w
    truth = stream.coordinates @ (stream.basis @ secret)
    noise = 0.0 if law is None else law.sample(rng, len(stream))
    return World(stream, secret, truth, truth + noise)


def median_limit(stream: Stream, law: Law) -> float:
    """The limit with thresholds at the median."""
    information = 4 * law.density_at_median**2
    covariance = box_covariance(stream.basis)
    return math.sqrt(2 / math.pi) * float(
        Precision(covariance, information).add(stream.coordinates).mean()
    )


def errors(learner: Follower, at: World) -> Floats:
    """How far off each answer of a stream is."""
    return np.abs(learner.follow(at.stream.coordinates, at.noisy).answers - at.truth)


# OnlineBisection ----------------------------------------------------------------------------------

Settings = tuple[int, int, float, int]
"""D, d, u and T: noise is uniform on [-D u, D u]."""

BLOCK = 1 << 18


def stream_setting(
    settings: tuple[int, int, int],
    law: Law,
    share: float,
    constants: BisectionConstants = PRINTED,
    longest: float | None = None,
) -> StreamSetting:
    """A stream of D, d and T whose phases are those of the search."""
    found = tuple(phases(*settings, law, constants))
    return StreamSetting(*settings, share, found, longest)


def once(
    settings: Settings,
    random: list[int],
    *,
    reading: Errata = CORRECTED,
    constants: BisectionConstants = PRINTED,
    horizon: int | None = -1,
    factor: float = 1.0,
    law: Law | None = None,
    oracle: Law | None = None,
) -> BisectionRun:
    """A stream near its basis, an even secret; `factor` shortens queries; -1 tells the length."""
    dimension, directions, u, count = settings
    rng = np.random.default_rng(random)
    secret = group_basis(dimension, directions) @ rng.random(dimension)
    known = Uniform(dimension * u) if law is None else law
    search = BisectionSearch(
        dimension,
        directions,
        known,
        horizon=count if horizon == -1 else horizon,
        reading=reading,
        constants=constants,
    )
    blocks = (
        factor * near_basis(rng, dimension, directions, min(BLOCK, count - start)).coordinates
        for start in range(0, count, BLOCK)
    )
    return simulate(search, blocks, secret, oracle or known, rng)
