"""The law of a run and its exact privacy loss, and that the shipped code has this law."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from bit_tree import Choose, walk, walk_paths
from broken_sparse_vector import chen, lee_clifton, roth, stoddard
from exact_exponential import Bounds, geometric_bounds, laplace_bounds
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import sparse_vector_loss
from oracles.calibration import variance_share
from oracles.sparse_vector_loss import RunLaw, RunOutput, law_of, privacy_loss

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
small_values = st.lists(st.integers(-3, 3), max_size=2).map(tuple)
small_scales = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3, 2)])


Law = Callable[[int, Fraction], Bounds]
LAWS: dict[bool, Law] = {False: laplace_bounds, True: geometric_bounds}  # by being one-sided


def law_for(
    threshold: Fraction, query: Fraction, output: RunOutput, one_sided: bool = False
) -> RunLaw:
    return RunLaw(threshold, query, output.length, output.reach, one_sided)


@cache
def slow_law(law: Law, scale: Fraction, reach: int) -> dict[int, Bounds]:
    """The probabilities of -reach to reach in fractions, widened a little to keep them short."""
    unit = 2**200
    found = {x: law(x, scale) for x in range(-reach, reach + 1)}
    return {
        x: (Fraction(math.floor(low * unit), unit), Fraction(math.ceil(high * unit), unit))
        for x, (low, high) in found.items()
    }


def added(terms: Iterable[Bounds]) -> Bounds:
    lows, highs = zip((Fraction(0), Fraction(0)), *terms, strict=True)
    return sum(lows, Fraction(0)), sum(highs, Fraction(0))


def multiplied(factors: Iterable[Bounds]) -> Bounds:
    lows, highs = zip(*factors, strict=True)
    return math.prod(lows, start=Fraction(1)), math.prod(highs, start=Fraction(1))


@cache
def slow_below(law: Law, scale: Fraction, limit: int, reach: int) -> Bounds:
    """The probability of a number below `limit`; the upper bound takes all beyond `reach`."""
    low, high = added(bounds for x, bounds in slow_law(law, scale, reach).items() if x < limit)
    return low, high + 1 - added(slow_law(law, scale, reach).values())[0]


def slow_above(law: Law, scale: Fraction, limit: int, reach: int) -> Bounds:
    low, high = slow_below(law, scale, limit, reach)
    return 1 - high, 1 - low


def slow_probability(law: Law, threshold: Fraction, query: Fraction, output: RunOutput) -> Bounds:
    """Sum the law in fractions over a window; the upper bound takes all that is outside it."""
    reach, wide = 80, 84  # beyond it less than 1e-22; no value is larger than the difference
    noises = slow_law(law, threshold, reach)
    low, high = added(
        multiplied(
            [
                chance,
                *(slow_below(law, query, noise - value, wide) for value in output.below),
                *(slow_above(law, query, noise - value, wide) for value in output.above),
                *(slow_law(law, query, wide)[noise - value] for value in output.gaps),
            ]
        )
        for noise, chance in noises.items()
    )
    return low, high + 1 - added(noises.values())[0]


# The law itself -------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    small_scales,
    small_scales,
    st.builds(RunOutput, small_values, small_values, small_values),
    st.booleans(),
)
def test_the_law_agrees_with_a_slow_sum_in_fractions(
    threshold: Fraction, query: Fraction, output: RunOutput, one_sided: bool
) -> None:
    fast = law_for(threshold, query, output, one_sided).log_probability(output)
    slow = slow_probability(LAWS[one_sided], threshold, query, output)
    low, high = (math.log(bound) for bound in slow)
    assert fast.lower <= high + 1e-15
    assert low - 1e-15 <= fast.upper
    assert max(high, fast.upper) - min(low, fast.lower) < 1e-9


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=5),
    small_scales,
    st.integers(1, 9),
    st.booleans(),
)
def test_the_answers_to_any_questions_have_a_total_probability_of_one(
    values: list[int], threshold: Fraction, query: int, one_sided: bool
) -> None:
    law = RunLaw(threshold, Fraction(query), len(values), 40, one_sided)
    every = [
        law.log_probability(
            RunOutput(
                tuple(v for v, fired in zip(values, answers, strict=True) if not fired),
                tuple(v for v, fired in zip(values, answers, strict=True) if fired),
            )
        )
        for answers in product((False, True), repeat=len(values))
    ]
    assert math.fsum(math.exp(p.lower) for p in every) <= 1 + 1e-12
    assert math.fsum(math.exp(p.upper) for p in every) >= 1 - 1e-12


def test_the_gaps_of_a_positive_answer_add_up_to_it() -> None:
    law = RunLaw(Fraction(2), Fraction(4), 3, 300)
    whole = law.log_probability(RunOutput((5, 1), above=(3,)))
    parts = [law.log_probability(RunOutput((5, 1), gaps=(3 - gap,))) for gap in range(300)]
    assert math.fsum(math.exp(p.lower) for p in parts) <= math.exp(whole.upper)
    assert math.fsum(math.exp(p.upper) for p in parts) >= math.exp(whole.lower) * (1 - 1e-12)


@pytest.mark.parametrize("count", [2, 60])
def test_intervals_stay_narrow_when_probabilities_underflow(count: int) -> None:
    """The output's probability is near exp(-200 count), and 60 of them far below any double."""
    law = RunLaw(Fraction(2), Fraction(2), count, 400)
    found = law.log_probability(RunOutput(gaps=(-400, 400) * (count // 2)))
    assert found.upper < -190 * count
    assert found.upper - found.lower < 1e-9


@pytest.mark.parametrize(
    "output",
    [RunOutput((2, 2, 2)), RunOutput(above=(-3, -3)), RunOutput((1,), (0,), (-1,)), RunOutput()],
)
def test_a_window_that_is_too_small_widens_the_interval_and_keeps_the_truth(
    output: RunOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = law_for(Fraction(3), Fraction(5), output).log_probability(output)
    monkeypatch.setattr(sparse_vector_loss, "REACH", 1)
    part = law_for(Fraction(3), Fraction(5), output).log_probability(output)
    assert part.lower < whole.lower - 1e-6, "terms are missing, so that the test has a point"
    assert whole.upper <= part.upper


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_worst_neighbours_are_the_ones_that_are_tried(
    gaps: bool, monotone: bool, one_sided: bool
) -> None:
    """Against every integer neighbour of every pair of questions."""
    calibration = Calibration(Fraction(3, 2), Fraction(2), 1, 2, monotone, one_sided)
    law, values, worst = law_of(calibration, 2, 5), range(-3, 4), -math.inf
    for x, y in product(values, values):
        for dx, dy in product(range(-2, 3), repeat=2):
            if monotone and dx * dy < 0:
                continue
            for one, two in _all_outputs(x, y, x + dx, y + dy, gaps):
                worst = max(worst, law.log_ratio(one, two).upper)
    found = privacy_loss(calibration, 2, values, gaps=gaps)
    assert found.lower <= worst <= found.upper


def _all_outputs(x: int, y: int, u: int, v: int, gaps: bool) -> list[tuple[RunOutput, RunOutput]]:
    """What a run that halts at its first positive may answer to (x, y), and to (u, v)."""

    def fired(value: int) -> dict[str, tuple[int]]:
        return {"gaps" if gaps else "above": (value,)}

    return [
        (RunOutput((x, y)), RunOutput((u, v))),
        (RunOutput((x,), **fired(y)), RunOutput((u,), **fired(v))),
        (RunOutput((), **fired(x)), RunOutput((), **fired(u))),
        (RunOutput((x,)), RunOutput((u,))),
    ]


# What is shipped loses at most its epsilon ------------------------------------------------------

SHIPPED = {
    "the source's halves": (Calibration.of(ONE), 5, (-40, 0, 40)),
    "a small epsilon": (Calibration.of(Fraction(1, 10)), 5, (-400, 400)),
    "a large epsilon": (Calibration.of(Fraction(8)), 5, (-6, -3, 0, 3, 6)),
    "the share for accuracy": (Calibration.of(ONE, accuracy_share(1000, 0.05)), 5, (-16, 0, 16)),
    "the share for variance": (Calibration.of(ONE, variance_share()), 5, (-20, 0, 20)),
    "sensitivity 3": (Calibration.of(ONE, sensitivity=3), 5, (-120, 0, 120)),
    "two positives, no resampling": (
        Calibration.of(ONE, variance_share(positives=2), positives=2),
        8,
        (-30, 30),
    ),
    "three positives, no resampling": (
        Calibration.of(ONE, Fraction(1, 5), positives=3),
        9,
        (-40, 40),
    ),
    "monotone": (Calibration.of(ONE, monotone=True), 5, (-16, 0, 16)),
    "monotone, two positives": (
        Calibration.of(ONE, positives=2, monotone=True),
        8,
        (-24, 24),
    ),
    "a scale that was rounded up": (Calibration.of(Fraction(math.pi)), 5, (-12, 0, 12)),
    "one-sided": (Calibration.of(ONE, one_sided=True), 5, (-40, 0, 40)),
    "one-sided, a small epsilon": (Calibration.of(Fraction(1, 10), one_sided=True), 4, (-300, 300)),
    "one-sided, sensitivity 3": (
        Calibration.of(ONE, Fraction(2, 5), sensitivity=3, one_sided=True),
        5,
        (-120, 0, 120),
    ),
    "one-sided, two positives, no resampling": (
        Calibration.of(ONE, Fraction(2, 5), positives=2, one_sided=True),
        8,
        (-30, 30),
    ),
    "one-sided, monotone": (
        Calibration.of(ONE, monotone=True, one_sided=True),
        5,
        (-16, 0, 16),
    ),
}


@pytest.mark.theorem("003: AboveThreshold (privacy)")
@pytest.mark.parametrize("gaps", [False, True], ids=["index", "gap"])
@pytest.mark.parametrize("name", SHIPPED)
def test_a_run_loses_at_most_its_epsilon(name: str, gaps: bool) -> None:
    """One-sided noise loses exactly that much, so the enclosure of its loss holds it inside."""
    calibration, length, values = SHIPPED[name]
    loss = privacy_loss(calibration, length, values, gaps=gaps)
    enclosed = 1e-11 * calibration.epsilon if calibration.one_sided else 0
    assert loss.upper <= calibration.epsilon + enclosed
    assert loss.lower >= 0.999 * calibration.epsilon, "private, but the cost is overstated"


@given(st.integers(-30, 30), st.integers(-1, 1), st.sampled_from([1, -1]), st.integers(0, 3))
def test_a_two_sided_question_is_two_questions(
    value: int, change: int, sign: int, quiet: int
) -> None:
    """EITHER compares v and then -v; its neighbour compares v' and then -v'."""
    calibration = Calibration.of(ONE)
    law = RunLaw(calibration.threshold, calibration.query, 2 * quiet + 2, 31)

    def output(v: int) -> RunOutput:
        return RunOutput((v, -v) * quiet + ((v,) if sign < 0 else ()), above=(sign * v,))

    assert law.log_ratio(output(value), output(value + change)).upper <= calibration.epsilon


# What others published does not -----------------------------------------------------------------


@pytest.mark.parametrize(("positives", "loss"), [(1, 1.75), (4, 6.25)])
def test_query_noise_that_ignores_the_number_of_positives_is_flagged(
    positives: int, loss: float
) -> None:
    """Lee and Clifton: (1 + 6c)/4 in place of 1."""
    found = privacy_loss(lee_clifton(positives), 3 * positives, (-60, 60))
    assert found.lower > 1
    assert found == pytest.approx((loss, loss), abs=1e-9)


@pytest.mark.parametrize(("positives", "loss"), [(4, 4.5), (50, 50.5)])
def test_a_run_that_never_halts_is_flagged(positives: int, loss: float) -> None:
    """Chen et al.: 1/2 for the threshold and 1 for each positive, without end."""
    form, quiet = chen(positives), positives + 4
    law = RunLaw(form.threshold, form.query, positives + quiet, 51)
    here = RunOutput((50,) * quiet, above=(-50,) * positives)
    there = RunOutput((51,) * quiet, above=(-51,) * positives)
    found = law.log_ratio(here, there)
    assert found.lower > 1
    assert found == pytest.approx((loss, loss), abs=1e-9)


def test_a_run_without_query_noise_is_flagged() -> None:
    """Stoddard et al.: two values that swap places have an answer that becomes impossible."""
    likely, impossible = stoddard(below=[0], above=[1]), stoddard(below=[1], above=[0])
    assert likely[0] > 0.1
    assert sum(impossible) == 0, "so the loss is infinite"


def test_reusing_the_noise_for_the_number_is_flagged() -> None:
    """Roth's lecture notes: the number bounds the threshold, so every "below" is paid for."""
    losses = [
        math.log(roth([0] * quiet, 0, -30) / roth([1] * quiet, 1, -30)) for quiet in (4, 20, 40)
    ]
    assert losses[0] > 1
    assert losses[1] > 8
    assert losses[2] > 18


def test_monotone_calibrations_protect_monotone_queries_only() -> None:
    promised = Calibration.of(ONE, monotone=True)
    opposite = Calibration(promised.threshold, promised.query)
    assert privacy_loss(opposite, 5, (-40, 40)).lower > 1.49


# The shipped code has this law -----------------------------------------------------------------


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


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("runs", [1, 2])
def test_the_code_has_exactly_the_law_that_the_loss_is_computed_from(
    runs: int, one_sided: bool
) -> None:
    half, values = Fraction(1, 2), [0, 1, 1]
    calibration = Calibration(half, half, one_sided=one_sided)
    law = law_of(calibration, 3, 50)

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


class LoweredThreshold(Calibration):
    """The mistake: noise that only lowers the threshold."""

    def draw(self, noise: Noise, scale: Fraction) -> int:
        drawn = super().draw(noise, scale)
        return -drawn if scale == self.threshold else drawn


def test_one_sided_noise_that_lowers_the_threshold_is_flagged() -> None:
    """An answer of one table becomes impossible for its neighbour: the loss is infinite."""
    calibration = LoweredThreshold(Fraction(1, 2), Fraction(1, 3), one_sided=True)
    laws = [
        law_of_the_code(partial(AboveThreshold, calibration), [value], reach=4) for value in (0, 1)
    ]
    assert laws[0][None,] > 0.1
    assert (None,) not in laws[1]


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


@pytest.mark.parametrize("one_sided", [False, True])
def test_the_whole_tree_of_random_bits_agrees_with_the_computed_law(one_sided: bool) -> None:
    """From bits to answer, with real noise: the bounds are proved, not sampled."""
    calibration = Calibration(ONE, ONE, one_sided=one_sided)

    def program(bits: Bits) -> bool:
        run = AboveThreshold(calibration, partial(discrete_laplace, bits=bits))
        return run.ask(0, threshold=1) is not None

    masses, undecided = walk(program, depth=14)
    law = law_of(calibration, 1, 1)
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
