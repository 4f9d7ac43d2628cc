"""What every one-bit learner promises: a block is its queries one by one, and errors fall.

A learner is added to `CASES`; how near to the limit it comes is a row of `ACCURACIES`, with a twin
that must miss it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pytest
from attack.one_bit_streams import (
    CUT,
    Streams,
    World,
    errors,
    median_limit,
    skewed,
    two_humps,
    world,
)
from chance import assert_rate_at_most
from oracles.one_bit_play import play

from casemate.attack.one_bit import (
    AutomaticKalman,
    EdgeKalman,
    OneBitKalman,
    OneBitLearner,
    OnlineBisection,
    effective_scale,
    generic,
    near_basis,
    parse_law,
)
from casemate.attack.one_bit.bisection import PRINTED, BisectionConstants, Errata
from casemate.attack.one_bit.bisection_simulation import feed
from casemate.attack.one_bit.edge import EdgeFilter
from casemate.attack.one_bit.laws import Exponential, Gaussian, Laplace, Law, Uniform
from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.attack.one_bit.streams import Stream, subsets


class Learner(OneBitLearner, Protocol):
    def follow(self, coordinates: Floats, noisy: Floats, /) -> AnswerTrail: ...


Make = Callable[[Floats, np.random.Generator], Learner]


class FoundBasis(OneBitKalman):
    """A filter that finds its basis: it is given whole queries, in a basis that it is not told."""

    def __init__(self, basis: Floats, random: np.random.Generator) -> None:
        super().__init__(basis.shape[1], shift=1.0, random=random)
        self._untold = basis

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        return self.follow_queries(coordinates @ self._untold, noisy)


class CompiledBisection(OnlineBisection):
    """OnlineBisection, whose compiled form is a function beside it."""

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        return feed(self.search, coordinates, noisy)[0]

    @property
    def box(self) -> dict[str, list[float]]:
        return {name: held.tolist() for name, held in vars(self.search.box).items()}


def kalman(scale: float | None, shift: float = 0.0, symmetric: bool = False) -> Make:
    return lambda basis, random: OneBitKalman(
        basis.shape[1], basis, scale, shift=shift, symmetric=symmetric, random=random
    )


def edge(law: Law) -> Make:
    return lambda basis, random: EdgeKalman(basis.shape[1], law, basis, random=random)


def unguarded(law: Law) -> Make:
    def make(basis: Floats, random: np.random.Generator) -> Learner:
        learner = EdgeKalman(basis.shape[1], law, basis, random=random)
        assert isinstance(learner.stage, EdgeFilter)
        learner.stage.guard.alarm = math.nan  # no wealth is ever that much
        return learner

    return make


def automatic(basis: Floats, random: np.random.Generator) -> Learner:
    return AutomaticKalman(basis.shape[1], basis, random=random)


def bisection(constants: BisectionConstants, horizon: int | None, reading: Errata) -> Make:
    return lambda basis, _: CompiledBisection(
        basis.shape[1],
        Uniform(0.2),
        basis=basis,
        horizon=horizon,
        reading=reading,
        constants=constants,
    )


# The protocol -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A learner, the noise it meets, and how many queries it follows before it is looked at."""

    make: Make
    law: Law | None
    before: int = 0
    count: int = 1_200
    misled: bool = False  # it is told a wrong law
    streams: Streams = generic
    rounding: float = 1e-7  # by which the two forms may differ


def bisecting(
    constants: BisectionConstants, horizon: int | None = 4_000, reading: Errata | None = None
) -> Case:
    make = bisection(constants, horizon, reading or Errata())
    return Case(make, Uniform(0.2), count=4_000, streams=near_basis, rounding=1e-12)


QUICK = BisectionConstants(observations=2.0, exact_gap=True)
ALONE = BisectionConstants(observations=2.0, exact_gap=True, shrink_together=False)
HUMPS = two_humps(Gaussian(1.2), 3.0)

BISECTIONS = {
    "bisection": bisecting(PRINTED),
    "quick bisection": bisecting(QUICK),
    "bisection without a horizon": bisecting(QUICK, None),
    "bisection on its own": bisecting(ALONE),
    "bisection on its own without a horizon": bisecting(ALONE, None),
    "bisection with short queries": bisecting(QUICK, reading=Errata(short_queries_left_out=False)),
}
CASES = {
    "known scale": Case(kalman(1.5), Gaussian(1.5)),
    "no noise": Case(kalman(0.0), None, count=60),  # then bits end in rounding
    "unknown scale": Case(kalman(None), Gaussian(1.5)),
    "shift": Case(kalman(1.5, shift=2.0), Gaussian(1.5)),
    "unknown scale and shift": Case(kalman(None, shift=2.0), Gaussian(1.5)),
    "unknown basis, scale and shift": Case(FoundBasis, Gaussian(1.0)),
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
    "automatic, skewed": Case(automatic, skewed(-1.6, 2.4), before=4_500),
    **BISECTIONS,
}
PRINTED_TEXT = {"bisection as printed": bisecting(QUICK, reading=Errata.as_printed())}  # it loses w
ALL = {**CASES, **PRINTED_TEXT}


@dataclass(frozen=True)
class Replay:
    """An oracle whose noisy answers are given."""

    noisy: Iterator[float]

    def above(self, q: Floats, threshold: float) -> bool:  # noqa: ARG002 - as oracles have it
        return next(self.noisy) > threshold


def case_world(case: Case, streams: Streams) -> World:
    random = np.random.default_rng(11)
    return world(streams(random, 6, 2, case.before + case.count), case.law, random)


def learner(case: Case, stream: Stream) -> Learner:
    return case.make(stream.basis, np.random.default_rng(1))


def state(made: Learner) -> list[Any]:
    return [getattr(made, name, None) for name in ("alarmed", "at_edge", "settled", "box")]


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
@pytest.mark.parametrize("streams", [near_basis, subsets])
def test_a_compiled_stream_is_one_bit_after_the_other(case: Case, streams: Streams) -> None:
    at = case_world(case, streams)
    one, other = (learner(case, at.stream) for _ in range(2))
    for each in (one, other):
        each.follow(at.stream.coordinates[: case.before], at.noisy[: case.before])
    rest = at.noisy[case.before :]
    slow = play(one, Replay(iter(rest.tolist())), at.stream.queries[case.before :])
    fast = other.follow(at.stream.coordinates[case.before :], rest)
    assert fast.above.tolist() == slow.above.tolist()
    for said, plain in ((fast.answers, slow.answers), (fast.thresholds, slow.thresholds)):
        assert said == pytest.approx(plain, rel=case.rounding, abs=case.rounding)
    assert state(one) == state(other)


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_a_stream_may_come_in_parts(case: Case) -> None:
    at = case_world(case, case.streams)
    whole = learner(case, at.stream).follow(at.stream.coordinates, at.noisy)
    parts, found = learner(case, at.stream), []
    for rows in np.array_split(np.arange(len(at.stream)), 7):
        found.append(parts.follow(at.stream.coordinates[rows], at.noisy[rows]).answers)
    assert np.concatenate(found).tolist() == whole.answers.tolist()


@pytest.mark.parametrize("case", ALL.values(), ids=ALL)
def test_to_answer_changes_nothing(case: Case) -> None:
    at = case_world(case, case.streams)
    made, queries = learner(case, at.stream), at.stream.queries
    made.follow(at.stream.coordinates[:40], at.noisy[:40])
    before = [made.answer(q) for q in queries[:20]]
    for q in queries[40:60]:
        made.answer(q), made.threshold(q)
    assert [made.answer(q) for q in queries[:20]] == before


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_errors_fall_and_end_below_those_of_answering_one_half(case: Case) -> None:
    """The second half of a stream errs less than the first, and than half of everything."""
    at = case_world(case, case.streams)
    first, second = np.array_split(errors(learner(case, at.stream), at), 2)
    blind = np.abs(at.stream.queries.sum(axis=1) / 2 - at.truth).mean()
    assert case.misled or second.mean() < first.mean()
    assert second.mean() < blind


def test_the_cases_reach_what_they_are_about() -> None:
    def after(name: str) -> Any:
        at = case_world(ALL[name], ALL[name].streams)
        made = learner(ALL[name], at.stream)
        made.follow(at.stream.coordinates, at.noisy)
        return made

    assert [after(name).alarmed for name in ("edge", "edge too near")] == [False, True]
    assert after("automatic, edge").at_edge and after("automatic, skewed").at_edge
    assert after("symmetric").settled
    assert all(after(name).search.shrinks > 1 for name in {**BISECTIONS, **PRINTED_TEXT})


# How near the errors come to the limit ------------------------------------------------------------

Claim = Callable[[Floats], None]
"""About each run's average error, over the limit of thresholds at the median."""


def mean_between(least: float, most: float) -> Claim:
    def check(ratios: Floats) -> None:
        assert least < ratios.mean() < most

    return check


def rarely_above(ratio: float, rate: float) -> Claim:
    def check(ratios: Floats) -> None:
        assert_rate_at_most(int((ratios > ratio).sum()), len(ratios), rate)

    return check


@dataclass(frozen=True)
class Accuracy:
    """What is claimed of a learner; the first claim is one that its twin misses."""

    make: Make
    law: Law
    claims: tuple[Claim, ...]
    twin: Make | None = None
    streams: Streams = generic
    shape: tuple[int, int] = (64, 4)
    queries: int = 5_000
    runs: int = 60


def known_scale(law: Law, streams: Streams = generic) -> Accuracy:
    claims = mean_between(0.8, 1.3), rarely_above(1.8, 0.1)
    return Accuracy(kalman(effective_scale(law)), law, claims, kalman(100.0), streams)


def unknown_scale(law: Law) -> Accuracy:
    claims, guess = (mean_between(0, 1.35),), kalman(effective_scale(law) / 12)
    return Accuracy(kalman(None), law, claims, guess, shape=(32, 4), queries=20_000, runs=6)


def unknown_offset(law: Law) -> Accuracy:
    make, claims = kalman(None, symmetric=True), (mean_between(0, 1.35),)
    return Accuracy(make, law, claims, kalman(0.2), queries=50_000, runs=10)


def at_edge(told: float, twin: Make | None, claims: tuple[Claim, ...], *size: int) -> Accuracy:
    make, law = edge(Uniform(16.0 * told)), Uniform(16.0)
    return Accuracy(make, law, claims, twin, near_basis, (16, 2), *size)


def not_told(noise: Law, *claims: Claim, runs: int = 8) -> Accuracy:
    return Accuracy(automatic, noise, claims, shape=(16, 2), queries=60_000, runs=runs)


AT_EDGE, GUARDED = (rarely_above(0.35, 0.05),), (rarely_above(2.5, 0.05), mean_between(0, 1.5))
AS_MEDIAN = rarely_above(3, 0.05), mean_between(0.75, 1.6)
ACCURACIES = {
    "known scale, uniform": known_scale(Uniform(6.4)),
    "known scale, gaussian": known_scale(Gaussian(6.4)),
    "known scale, laplace": known_scale(Laplace(6.4)),
    "known scale, cauchy": known_scale(parse_law("cauchy:6.4")),
    "known scale, near a basis": known_scale(Gaussian(6.4), near_basis),
    "known scale, subsets": known_scale(Gaussian(6.4), subsets),
    "unknown scale, uniform": unknown_scale(Uniform(3.0)),
    "unknown scale, laplace": unknown_scale(Laplace(3.0)),
    "unknown scale, logistic": unknown_scale(parse_law("logistic:3")),
    "unknown scale, triangular": unknown_scale(parse_law("triangular:3")),
    "symmetric, gaussian": unknown_offset(Gaussian(6.4)),
    "symmetric, laplace": unknown_offset(Laplace(6.4)),
    "symmetric, two humps": Accuracy(
        kalman(None, symmetric=True),
        HUMPS,
        (mean_between(0, 0.38),),
        kalman(None),  # at the median
        queries=100_000,
        runs=16,
    ),
    "edge": at_edge(1.0, edge(Uniform(64.0)), AT_EDGE, 20_000, 30),
    "edge far too near": at_edge(0.8, unguarded(Uniform(0.8 * 16)), GUARDED, 50_000, 20),
    "edge a little too near": at_edge(0.97, None, GUARDED, 50_000, 20),
    "edge far too far": at_edge(1.2, unguarded(Uniform(1.2 * 16)), GUARDED, 50_000, 20),
    "automatic, edge": not_told(Uniform(16.0), mean_between(0, 0.75), runs=16),
    "automatic, gaussian": not_told(Gaussian(8.0), *AS_MEDIAN),  # the twins of the one before
    "automatic, exponential": not_told(Exponential(8.0), *AS_MEDIAN),
    "automatic, cut": not_told(parse_law("gaussian:8[-16:16]"), *AS_MEDIAN),
    "automatic, skewed": not_told(skewed(-12.8, 19.2), rarely_above(3, 0.05)),
}


def ratios(of: Accuracy, make: Make, seed: int) -> Floats:
    found = []
    for run in range(of.runs):
        random = np.random.default_rng([seed, run])
        at = world(of.streams(random, *of.shape, of.queries), of.law, random)
        made = make(at.stream.basis, random)
        found.append(errors(made, at).mean() / median_limit(at.stream, of.law))
    return np.array(found)


@pytest.mark.parametrize("of", ACCURACIES.values(), ids=ACCURACIES)
def test_errors_come_as_near_to_the_limit_as_is_claimed(of: Accuracy, seed: int) -> None:
    found = ratios(of, of.make, seed)
    for claim in of.claims:
        claim(found)


@pytest.mark.parametrize(
    "of", [pytest.param(each, id=name) for name, each in ACCURACIES.items() if each.twin]
)
def test_which_the_twin_of_a_learner_does_not(of: Accuracy, seed: int) -> None:
    assert of.twin is not None
    missed = ratios(of, of.twin, seed)
    with pytest.raises(AssertionError):
        of.claims[0](missed)
