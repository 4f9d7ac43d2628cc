"""Short simulated streams for tests and benchmarks of the one-bit filter."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from casemate.attack.one_bit.laws import Law
from casemate.attack.one_bit.limit import box_covariance, deviations
from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.attack.one_bit.streams import Stream

Streams = Callable[[np.random.Generator, int, int, int], Stream]


def dense(rng: np.random.Generator, size: int, dimensions: int, count: int) -> Stream:
    """Mixtures of random profiles that touch every coordinate: no groups at all."""
    if not 1 <= dimensions <= size:
        raise ValueError(f"need between 1 and {size} dimensions, got {dimensions}")
    shares = rng.dirichlet(np.ones(dimensions), count) * rng.uniform(0.5, 1.0, (count, 1))
    factor, triangle = np.linalg.qr(rng.random((dimensions, size)).T)
    return Stream(np.ascontiguousarray(factor.T), shares @ triangle.T)


class Follower(Protocol):
    """A filter that runs through a stream."""

    def follow(self, coordinates: Floats, noisy: Floats, /) -> AnswerTrail: ...


@dataclass(frozen=True, eq=False)
class World:
    """A stream, a secret, and what an oracle compares."""

    stream: Stream
    w: Floats
    truth: Floats
    noisy: Floats


def world(stream: Stream, law: Law | None, rng: np.random.Generator, w: Floats) -> World:
    truth = stream.coordinates @ (stream.basis @ w)
    noise = 0.0 if law is None else law.sample(rng, len(stream))
    return World(stream, w, truth, truth + noise)


def worlds(
    make: Streams, shape: tuple[int, int], law: Law | None, rng: np.random.Generator, runs: int
) -> list[World]:
    """Several streams with even secrets; `shape` is (size, dimensions), 5,000 queries each."""
    size, dimensions = shape
    return [
        world(make(rng, size, dimensions, 5_000), law, rng, rng.random(size)) for _ in range(runs)
    ]


def median_limit(stream: Stream, law: Law) -> float:
    """The limit with thresholds at the median."""
    information = 4 * law.density_at_median**2
    covariance = box_covariance(stream.basis)
    return math.sqrt(2 / math.pi) * float(
        deviations(stream.coordinates, covariance, information).mean()
    )


def error(learner: Follower, at: World) -> float:
    """The average error over a whole stream."""
    said = learner.follow(at.stream.coordinates, at.noisy).answers
    return float(np.abs(said - at.truth).mean())


def stuck(learner: Follower, at: World, scale: float, fresh: int = 100) -> bool:
    """Whether the last answers are still far beyond what the noise explains."""
    said = learner.follow(at.stream.coordinates, at.noisy).answers
    return bool(np.abs(said - at.truth)[-fresh:].mean() > 30 * scale)
