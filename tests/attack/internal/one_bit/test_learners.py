"""What every one-bit learner promises: a block is its queries one by one, and errors fall."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pytest
from oracles.one_bit_play import play

from casemate.attack.one_bit import AutomaticKalman, EdgeKalman, OneBitKalman
from casemate.attack.one_bit.laws import (
    Exponential,
    Gaussian,
    Laplace,
    Law,
    MixtureLaw,
    Shifted,
    Truncated,
    Uniform,
)
from casemate.attack.one_bit.oracle import AnswerTrail, Floats, OneBitLearner
from casemate.attack.one_bit.streams import Stream, generic, near_basis, subsets

HUMPS = MixtureLaw((Shifted(Gaussian(1.2), -3.0), Shifted(Gaussian(1.2), 3.0)), (0.5, 0.5))
SKEWED = MixtureLaw((Shifted(Uniform(0.8), -0.8), Shifted(Uniform(1.2), 1.2)), (0.5, 0.5))
CUT = Truncated(Gaussian(1.0), -2.0, 2.0)


class Learner(OneBitLearner, Protocol):
    def follow(self, coordinates: Floats, noisy: Floats, /) -> AnswerTrail: ...


Make = Callable[[Floats, np.random.Generator], Learner]


def kalman(scale: float | None, shift: float = 0.0, symmetric: bool = False) -> Make:
    return lambda basis, random: OneBitKalman(
        basis.shape[1], basis, scale, shift=shift, symmetric=symmetric, random=random
    )


def edge(law: Law) -> Make:
    return lambda basis, random: EdgeKalman(basis.shape[1], law, basis, random=random)


def automatic(basis: Floats, random: np.random.Generator) -> Learner:
    return AutomaticKalman(basis.shape[1], basis, random=random)


@dataclass(frozen=True)
class Case:
    """A learner, the noise it meets, and how many queries it follows before it is looked at."""

    make: Make
    law: Law | None
    before: int = 0
    count: int = 1_200
    misled: bool = False  # it is told a wrong law


CASES = {
    "known scale": Case(kalman(1.5), Gaussian(1.5)),
    "no noise": Case(kalman(0.0), None, count=60),  # then bits end in rounding
    "unknown scale": Case(kalman(None), Gaussian(1.5)),
    "shift": Case(kalman(1.5, shift=2.0), Gaussian(1.5)),
    "unknown scale and shift": Case(kalman(None, shift=2.0), Gaussian(1.5)),
    "symmetric": Case(kalman(None, symmetric=True), HUMPS, before=12_000),
    "edge": Case(edge(Uniform(2.0)), Uniform(2.0)),
    "edge too near": Case(edge(Uniform(1.9)), Uniform(2.0), misled=True),
    "edge too far": Case(edge(Uniform(2.2)), Uniform(2.0), misled=True),
    "edge of a table": Case(edge(CUT), CUT),
    "one edge": Case(edge(Exponential(1.0)), Exponential(1.0)),
    "an edge where none is": Case(edge(Uniform(1.0)), Laplace(1.0), misled=True),
    "edge and no noise": Case(edge(Uniform(1e-9)), Uniform(1e-9)),
    "automatic, edge": Case(automatic, Uniform(2.0), count=4_000),
    "automatic, none": Case(automatic, Laplace(1.0), count=4_000),
    "automatic, skewed": Case(automatic, SKEWED, before=4_500),
}
ALL = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@dataclass(frozen=True)
class Replay:
    """An oracle whose noisy answers are given."""

    noisy: Iterator[float]

    def above(self, q: Floats, threshold: float) -> bool:  # noqa: ARG002 - as oracles have it
        return next(self.noisy) > threshold


def world(case: Case, kind: object = generic) -> tuple[Stream, Floats, Floats]:
    """A stream, the true answers, and the noisy ones."""
    assert callable(kind)
    random = np.random.default_rng(11)
    stream, w = kind(random, 6, 2, case.before + case.count), random.random(6)
    truth = stream.coordinates @ (stream.basis @ w)
    noise = 0.0 if case.law is None else case.law.sample(random, len(stream))
    return stream, truth, truth + noise


def learner(case: Case, stream: Stream) -> Learner:
    return case.make(stream.basis, np.random.default_rng(1))


@ALL
@pytest.mark.parametrize("kind", [near_basis, subsets])
def test_a_compiled_stream_is_one_bit_after_the_other(case: Case, kind: object) -> None:
    stream, _, noisy = world(case, kind)
    one, other = (learner(case, stream) for _ in range(2))
    for each in (one, other):
        each.follow(stream.coordinates[: case.before], noisy[: case.before])
    rest = noisy[case.before :]
    slow = play(one, Replay(iter(rest.tolist())), stream.queries[case.before :])
    fast = other.follow(stream.coordinates[case.before :], rest)
    assert fast.above.tolist() == slow.above.tolist()
    assert fast.answers == pytest.approx(slow.answers, rel=1e-7, abs=1e-7)
    assert fast.thresholds == pytest.approx(slow.thresholds, rel=1e-7, abs=1e-7)
    for state in ("alarmed", "at_edge", "settled"):
        assert getattr(one, state, None) == getattr(other, state, None)


@ALL
def test_a_stream_may_come_in_parts(case: Case) -> None:
    stream, _, noisy = world(case)
    whole = learner(case, stream).follow(stream.coordinates, noisy)
    parts, found = learner(case, stream), []
    for rows in np.array_split(np.arange(len(stream)), 7):
        found.append(parts.follow(stream.coordinates[rows], noisy[rows]).answers)
    assert np.concatenate(found).tolist() == whole.answers.tolist()


@ALL
def test_errors_fall_and_end_below_those_of_answering_one_half(case: Case) -> None:
    """The second half of a stream errs less than the first, and than half of everything."""
    stream, truth, noisy = world(case)
    off = np.abs(learner(case, stream).follow(stream.coordinates, noisy).answers - truth)
    blind = np.abs(stream.queries.sum(axis=1) / 2 - truth).mean()
    first, second = np.array_split(off, 2)
    assert case.misled or second.mean() < first.mean()
    assert second.mean() < blind


def test_the_cases_reach_what_they_are_about() -> None:
    def after(name: str) -> Learner:
        stream, _, noisy = world(CASES[name])
        made = learner(CASES[name], stream)
        made.follow(stream.coordinates, noisy)
        return made

    assert [getattr(after(name), "alarmed", None) for name in ("edge", "edge too near")] == [0, 1]
    assert getattr(after("automatic, edge"), "at_edge", None)
    assert getattr(after("automatic, skewed"), "at_edge", None)
    assert getattr(after("symmetric"), "settled", None)
