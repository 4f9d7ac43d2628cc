"""The shipped code has the law whose loss is computed, and so its privacy."""

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from bit_tree import Choose, walk, walk_paths
from numpy.typing import NDArray
from oracles.sparse_vector_loss import RunLaw, RunOutput, privacy_loss

from casemate.errors import PositivesSpent
from casemate.privacy.mechanisms import (
    AboveThreshold,
    Calibration,
    GapSparseVector,
    NumericSparse,
    Positive,
    accuracy_share,
)
from casemate.privacy.noise import Noise, discrete_laplace
from casemate.privacy.noise.noise import silence
from casemate.privacy.noise.tape import Bits

ONE = Fraction(1)
Mechanism = AboveThreshold | GapSparseVector | NumericSparse
Answers = tuple[Positive | int | None, ...]


@cache
def mass(x: int, scale: Fraction) -> float:
    p = math.exp(-1 / scale)
    return (1 - p) / (1 + p) * p ** abs(x)


def law_of_the_code(
    make: Callable[[Noise], Mechanism], values: list[int], reach: int
) -> dict[Answers, float]:
    """Run the code on every sequence of noises within `reach`, weighted by their probability."""
    masses: dict[Answers, float] = defaultdict(float)
    reached = range(-reach, reach + 1)

    def program(choose: Choose) -> Answers:
        def noise(scale: Fraction, size: int) -> NDArray[Any]:
            assert size == 1
            return np.array([choose([mass(x, scale) for x in reached]) - reach])

        return _answers(make(noise), values)

    for answers, weights in walk_paths(program):
        masses[answers] += math.prod(weights)
    return masses


def _answers(mechanism: Mechanism, values: list[int]) -> Answers:
    answers: list[Positive | int | None] = []
    for value in values:
        try:
            answers.append(mechanism.ask(value, threshold=1))
        except PositivesSpent:
            break
    return tuple(answers)


@pytest.mark.parametrize("runs", [1, 2])
def test_the_code_has_exactly_the_law_that_the_loss_is_computed_from(runs: int) -> None:
    calibration, values = Calibration(Fraction(1, 2), Fraction(1, 2)), [0, 1, 1]
    law = RunLaw(calibration.threshold, calibration.query, 3, 50)

    def computed(answers: Answers) -> float:
        total, quiet = 0.0, list[int]()
        for value, answer in zip(values, answers, strict=False):
            if isinstance(answer, Positive):
                output = RunOutput(tuple(quiet), gaps=(value - 1 - answer.gap,))
                total, quiet = total + law.log_probability(output).lower, []
            else:
                quiet.append(value - 1)
        return math.exp(total + law.log_probability(RunOutput(tuple(quiet))).lower)

    found = law_of_the_code(partial(GapSparseVector, calibration, runs), values, reach=4)
    missing = 1 - math.fsum(found.values())
    assert missing < 1e-3, "almost every path is within reach"
    assert len(found) > 10
    for answers, weight in found.items():
        assert weight - 1e-12 <= computed(answers) <= weight + missing


def test_numeric_sparse_adds_an_independent_number_to_that_law() -> None:
    values = [0, 1]

    def make(noise: Noise) -> NumericSparse:
        return NumericSparse(1, Fraction(10), noise)

    sparse = make(silence)
    law = RunLaw(sparse.calibration.threshold, sparse.calibration.query, 2, 2)
    found = law_of_the_code(make, values, reach=6)
    missing = 1 - math.fsum(found.values())
    assert missing < 0.01
    for answers, weight in found.items():
        quiet = tuple(v - 1 for v, answer in zip(values, answers, strict=False) if answer is None)
        value, number = values[len(answers) - 1], answers[-1]
        output = RunOutput(quiet) if number is None else RunOutput(quiet, above=(value - 1,))
        exact = math.exp(law.log_probability(output).lower)
        if isinstance(number, int):
            exact *= mass(number - value, sparse.answer_scale)
        assert weight - 1e-12 <= exact <= weight + missing


def test_the_whole_tree_of_random_bits_agrees_with_the_computed_law() -> None:
    """From bits to answer, with real noise: the bounds are proved, not sampled."""
    calibration = Calibration(ONE, ONE)

    def program(bits: Bits) -> bool:
        run = AboveThreshold(calibration, partial(discrete_laplace, bits=bits))
        return run.ask(0, threshold=1) is not None

    masses, undecided = walk(program, depth=14)
    law = RunLaw(calibration.threshold, calibration.query, 1, 1)
    for fired, output in ((True, RunOutput(above=(-1,))), (False, RunOutput(below=(-1,)))):
        exact = law.log_probability(output)
        assert masses[fired] <= math.exp(exact.upper)
        assert math.exp(exact.lower) <= masses[fired] + undecided
    assert undecided < 0.45


@pytest.mark.theorem("003: NumericSparse (privacy)")
@pytest.mark.parametrize("positives", [1, 10])
def test_numeric_sparse_loses_at_most_its_epsilon(positives: int) -> None:
    """Runs and numbers are independent given the answers so far, so their losses add up."""
    sparse = NumericSparse(positives, ONE, silence)
    far = math.ceil(10 * sparse.calibration.query)
    run = privacy_loss(sparse.calibration, 5, (-far, far))
    number = 1 / sparse.answer_scale  # log of mass(x) / mass(x + 1)
    assert positives * (run.upper + number) <= sparse.cost.epsilon <= 1
    assert positives * (run.lower + number) > 0.999


def test_a_sequence_of_runs_with_gaps_loses_at_most_its_cost() -> None:
    calibration = Calibration.of(Fraction(1, 10), accuracy_share(1000, 0.05, runs=10))
    run = privacy_loss(calibration, 5, (-200, 200), gaps=True)
    assert 10 * run.upper <= GapSparseVector(calibration, 10, silence).cost.epsilon <= 1
