"""The robust tracker of source document 001: its sites, its phases, and what is proved of it."""

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from chance import ALARM, assert_follows, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from oracles.robust_words import most_words

from casemate.privacy.mechanisms import BinaryMechanism
from casemate.track.engine import EndRound, PublishedCount
from casemate.track.protocols.robust import Phases, Robust, laplace, whole_noise
from casemate.track.protocols.robust_theorem import (
    RobustConstants,
    RoundNoise,
    _smooth_rounds,
    _whole_rounds,
    accuracy,
    constants,
    laws_of_sums,
    most_rounds,
    predicted_words,
    table_tail_bound,
)
from casemate.track.reporting_rule import Blocks, SiteStanding
from casemate.track.setting import Setting
from casemate.track.simulate.runs import PlainRun

SITES, ALPHA, DELTA, HORIZON = 16, 0.2, 0.01, 10**5


def silent() -> float:
    return 0.0


def engine(sites: int = SITES, draw: random.Random | None = None) -> Robust:
    return Robust(Setting(sites, ALPHA, DELTA, HORIZON), draw.random if draw else silent)


def in_a_round(sites: int = SITES) -> Robust:
    made = engine(sites)
    made.begin([made.constants.begins_at, *[0] * (sites - 1)])
    return made


# Algorithm 1: the sites ---------------------------------------------------------------------------


def triggers(size: int, blocks: int, draw: random.Random, begun: int = 0) -> list[int]:
    rule, found = Blocks(float(size)), list[int]()
    for reports in range(blocks):
        last = found[-1] if found else begun
        found.append(rule.after(SiteStanding(begun, reports, last, last), draw.random))
    return found


@pytest.mark.theorem("001: Algorithm 1")
@pytest.mark.theorem("001: Section 1.3 (block scheme)")
@given(st.integers(1, 1000), st.integers(0, 10**9), st.integers(0, 2**32))
def test_every_block_reports_exactly_once(size: int, begun: int, seed: int) -> None:
    for block, trigger in enumerate(triggers(size, 20, random.Random(seed), begun)):
        assert block * size < trigger - begun <= (block + 1) * size


def bits(size: int, items: int, draw: random.Random) -> int:
    return sum(trigger <= items for trigger in triggers(size, items // size + 1, draw))


def printed_bits(size: int, items: int, draw: random.Random) -> int:
    """Algorithm 1 to the letter: counts within a block from 0, a bit when they pass r."""
    sent = set[int]()
    thresholds = [draw.randint(1, size) for _ in range(items // size + 1)]
    for count in range(1, items + 1):
        block, offset = divmod(count, size)
        if offset > thresholds[block]:
            sent.add(block)
    return len(sent)


def assert_mean_is(values: list[int], mean: float, least: int, most: int) -> None:
    """Hoeffding's inequality."""
    spread = (most - least) * math.sqrt(len(values) * math.log(2 / ALARM) / 2)
    assert abs(sum(values) - len(values) * mean) <= spread


@pytest.mark.theorem("001: Algorithm 1")
@pytest.mark.parametrize(("size", "items"), [(5, 13), (2, 7), (9, 4)])
def test_the_bits_are_unbiased(size: int, items: int, rng: random.Random) -> None:
    whole = items // size
    found = [bits(size, items, rng) for _ in range(4000)]
    assert set(found) <= {whole, whole + 1}
    assert_mean_is(found, items / size, whole, whole + 1)


@pytest.mark.parametrize(("size", "items"), [(5, 13), (2, 7), (9, 4)])
def test_the_printed_comparison_is_biased(size: int, items: int, rng: random.Random) -> None:
    whole = items // size
    found = [printed_bits(size, items, rng) for _ in range(4000)]
    with pytest.raises(AssertionError):
        assert_mean_is(found, items / size, whole, whole + 1)


# Algorithm 2: rounds ------------------------------------------------------------------------------


def test_every_item_is_reported_until_blocks_hold_two() -> None:
    run, begins_at = (
        PlainRun(SITES, engine(), silent),
        constants(Setting(SITES, ALPHA, DELTA, HORIZON)).begins_at,
    )
    for item in range(begins_at):
        assert run.server.words == run.output == item
        run.add(item % SITES)
    assert run.server.words_by_kind == {
        "report": begins_at,
        "call": SITES,
        "answer": SITES,
        "rule": SITES,
    }
    assert run.output == begins_at
    assert set(run.server.rules) == {Blocks(2.0)}


@pytest.mark.theorem("001: Algorithm 2")
def test_the_count_stands_still_within_a_phase_and_moves_by_its_bits_after() -> None:
    e = in_a_round()
    begun, phase = e.constants.begins_at, math.ceil(e.constants.threshold)
    assert e.hear(0, Blocks(2.0), begun, phase - 1, begun) is None
    assert e.estimate().value == begun
    assert e.hear(1, Blocks(2.0), 0, 1, 2) is None
    assert e.estimate().value == begun + 2 * phase


def test_a_site_that_has_passed_its_blocks_ends_the_round() -> None:
    e = in_a_round()
    blocks = e.constants.blocks
    assert e.hear(3, Blocks(2.0), 0, blocks, 2 * blocks) is None
    assert e.hear(3, Blocks(2.0), 0, blocks + 1, 2 * blocks + 2) == EndRound()


def test_a_site_that_begins_anew_adds_to_its_bits() -> None:
    e = in_a_round()
    phase = math.ceil(e.constants.threshold)
    e.hear(5, Blocks(2.0), 0, phase - 2, 2 * phase)
    assert e.hear(5, Blocks(2.0), 2 * phase, 0, 2 * phase) is None
    e.hear(5, Blocks(2.0), 2 * phase, 1, 2 * phase + 1)
    assert e.estimate().value == e.constants.begins_at
    e.hear(5, Blocks(2.0), 2 * phase, 2, 2 * phase + 3)
    assert e.estimate().value > e.constants.begins_at


# What is promised ---------------------------------------------------------------------------------


def test_it_is_as_sure_as_is_proved() -> None:
    """Exact counts surely, others as asked; but nothing is claimed where nothing is proved."""
    e = engine()
    assert e.proved and e.estimate().confidence == 1.0
    assert in_a_round().estimate().confidence == 1 - DELTA
    unproved = in_a_round(2)
    assert not unproved.proved and unproved.estimate().confidence == 0.0
    counts = [e.constants.begins_at, *[0] * (SITES - 1)]
    for _ in range(10_000):  # more rounds than are covered
        e.begin(counts)
        if not e.estimate().confidence:
            break
    assert e.estimate().confidence == 0.0


def misses(run: PlainRun, items: int) -> bool:
    """Whether the truth was ever outside the interval, when items come to the sites in turn."""
    missed = False
    for item in range(1, items + 1):
        run.add(item % 4)
        seen = run.server.read()
        missed |= not seen.lo <= item <= seen.hi
    return missed


class _Boastful(Robust):
    def estimate(self) -> PublishedCount:
        honest = super().estimate()
        reach = (honest.hi - honest.lo) / 20
        return replace(honest, lo=honest.value - reach, hi=honest.value + reach)


@pytest.mark.theorem("001: Theorem 1")
def test_the_interval_holds_the_truth_at_all_times(rng: random.Random) -> None:
    """The twin's interval is a tenth: that of a tracker with ten times the error."""

    def missed(make: type[Robust]) -> int:
        setting = Setting(4, 0.5, 0.01, 800)
        runs = [PlainRun(4, make(setting, rng.random), rng.random) for _ in range(40)]
        return sum(misses(run, 800) for run in runs)

    assert_rate_at_most(missed(Robust), 40, 0.01)
    with pytest.raises(AssertionError):
        assert_rate_at_most(missed(_Boastful), 40, 0.01)


def tracker(sites: int, alpha: float = 0.05, items: int = 10**8) -> RobustConstants:
    return constants(Setting(sites, alpha, 0.01, items))


@pytest.mark.theorem("001: Algorithm 2")
@pytest.mark.parametrize("sites", [1, 2, 16, 30])
def test_without_noise_a_phase_ends_at_t_bits_and_the_round_after_sqrt_k_phases(sites: int) -> None:
    t = tracker(sites)
    phases, bits = Phases(t, silent), math.ceil(t.threshold)
    for phase in range(math.ceil(math.sqrt(sites))):
        assert phases.room == bits - 1
        assert not phases.over
        phases.take(bits - 1)
        assert phases.total == phase * bits, "the output stands still within a phase"
        phases.take(1)
        assert phases.total == (phase + 1) * bits
    assert phases.over
    phases.take(5)
    assert phases.total == bits * t.phases


@given(st.integers(0, 2**32), st.lists(st.integers(0, 200), max_size=30), st.integers(1, 40))
def test_bits_may_come_one_by_one_or_together(seed: int, amounts: list[int], sites: int) -> None:
    together, apart = (Phases(tracker(sites), random.Random(seed).random) for _ in range(2))
    for amount in amounts:
        together.take(amount)
        for _ in range(amount):
            apart.take(1)
        assert (together.total, together.room, together.over) == (
            apart.total,
            apart.room,
            apart.over,
        )


def test_a_threshold_that_is_not_positive_is_drawn_again() -> None:
    t = tracker(16)
    lowest = 1 - 2**-53  # its logarithm is about -37, and its noise below -T
    assert t.threshold < 36 * t.noise_scale
    draws = iter([lowest, 0.0, lowest, 0.0, 0.0, 0.0])
    assert Phases(t, lambda: next(draws)).room == math.ceil(t.threshold) - 1
    assert next(draws, None) is None


# Chance -------------------------------------------------------------------------------------------


def discrete_laplace_cdf(scale: float, x: int) -> float:
    q = math.exp(-1 / scale)
    return q**-x / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)


def test_the_noise_of_the_binary_mechanism_has_its_law(rng: random.Random) -> None:
    samples = whole_noise(rng.random)(Fraction(7, 2), 20_000).tolist()
    assert_follows(samples, lambda x: discrete_laplace_cdf(3.5, x))
    with pytest.raises(AssertionError):
        assert_follows(samples, lambda x: discrete_laplace_cdf(4.2, x))


def laplace_cdf(scale: float, x: float) -> float:
    return math.exp(x / scale) / 2 if x < 0 else 1 - math.exp(-x / scale) / 2


def test_the_noise_of_a_threshold_has_its_law(rng: random.Random) -> None:
    """Appendix D.1 prints Lap(epsilon / 4) once: the inverse scale would be noticed."""
    samples = [math.floor(10 * laplace(rng.random)) for _ in range(20_000)]
    assert_follows(samples, lambda x: laplace_cdf(10, x + 1))
    with pytest.raises(AssertionError):
        assert_follows(samples, lambda x: laplace_cdf(0.1, x + 1))


settings = st.builds(
    Setting,
    sites=st.integers(1, 5000),
    alpha=st.floats(0.001, 0.9),
    delta=st.floats(1e-9, 0.9),
    items=st.integers(1, 10**10),
)


@pytest.mark.theorem("001: Theorem 1")
@pytest.mark.parametrize(
    ("sites", "alpha", "factor", "epsilon", "start"),
    [
        (16, 0.05, 6.4, 1.59, 4074),
        (64, 0.05, 8.0, 1.00, 10273),
        (256, 0.02, 10.0, 0.62, 63826),
        (1024, 0.01, 11.9, 0.37, 305369),
        (4096, 0.01, 13.7, 0.21, 701933),
        (16384, 0.005, 15.7, 0.12, 3224510),
    ],
)
def test_the_constants_are_those_of_the_source(
    sites: int, alpha: float, factor: float, epsilon: float, start: int
) -> None:
    t = tracker(sites, alpha)
    assert round(t.factor, 1) == factor
    assert t.epsilon == pytest.approx(epsilon, abs=0.006)
    assert round(t.start) == start
    assert t.threshold == pytest.approx(2 * t.factor * math.sqrt(sites))
    assert t.phases == math.isqrt(sites)
    assert t.phases * t.threshold / t.start == pytest.approx(alpha * math.sqrt(sites) / 4)
    assert t.blocks == math.ceil(t.factor * sites)


@given(settings)
def test_rounds_begin_when_a_block_holds_two_items(setting: Setting) -> None:
    t = constants(setting)
    assert t.block_size(t.begins_at) == 2
    assert t.block_size(t.begins_at - 1) < 2
    assert t.block_size(10**9) * t.budget <= setting.alpha * 10**9 * (1 + 1e-9)


# Communication ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sites", "alpha"), [(4, 0.0005), (64, 0.001), (1024, 0.0004)])
def test_many_short_rounds_may_be_integrated(sites: int, alpha: float) -> None:
    t = constants(Setting(sites, alpha, 0.01, 10**9))
    bits = t.phases * (t.threshold + 0.5)
    assert _smooth_rounds(t, bits) == pytest.approx(_whole_rounds(t, bits), rel=0.02)


@given(settings)
def test_the_prediction_is_below_the_bound(setting: Setting) -> None:
    assert predicted_words(setting) <= most_words(setting)


@given(settings)
def test_the_slowest_rounds_reach_the_horizon(setting: Setting) -> None:
    """Every round brings Ck full blocks and no more."""
    t, count, rounds = constants(setting), constants(setting).begins_at, 1
    most = most_rounds(t)
    while count <= setting.items and rounds <= most < 20_000:
        count += math.floor(t.factor * setting.sites * t.block_size(count))
        rounds += count <= setting.items
    assert rounds <= most


# The law of the noise -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.7, 3.5])
def test_sums_have_the_law_of_their_convolution(scale: float) -> None:
    rows = laws_of_sums(scale, 3)
    middle = rows.shape[1] // 2
    one = np.exp(-np.abs(np.arange(-middle, middle + 1)) / scale)
    one /= one.sum()
    three = np.convolve(np.convolve(one, one, "same"), one, "same")
    assert rows[0] == pytest.approx(one, rel=1e-9)
    assert rows[2] == pytest.approx(three, abs=1e-14)
    assert np.all(1 - rows.sum(1) <= table_tail_bound(3) + 1e-12)


def excesses(t: RobustConstants, rng: random.Random, rounds: int) -> list[float]:
    """The worst error about the bits in each round, less T, by the mechanism itself."""
    found = []
    for _ in range(rounds):
        mechanism = BinaryMechanism(t.phases, Fraction(t.epsilon) / 4, whole_noise(rng.random))
        worst, error = 0.0, 0
        for _ in range(t.phases):
            lag = t.threshold + t.noise_scale * laplace(rng.random)
            worst = max(worst, lag - error, error)
            error = mechanism.add(0)
        found.append(max(worst, error) - t.threshold)
    return found


@pytest.mark.parametrize("sites", [4, 100])
def test_the_noise_of_a_round_stays_within_its_quantile(sites: int, rng: random.Random) -> None:
    t = tracker(sites)
    quantile = RoundNoise(t).quantile(0.02)
    found = excesses(t, rng, 3000)
    assert_rate_at_most(sum(x > quantile for x in found), 3000, 0.02)
    with pytest.raises(AssertionError):  # the quantile is not vacuous
        assert_rate_at_most(sum(x > quantile / 2 for x in found), 3000, 0.02)


@pytest.mark.parametrize("sites", [16, 1024, 16384])
def test_the_printed_bound_on_the_noise_fails(sites: int) -> None:
    """Equation (2) has C sqrt(k) but for a chance of beta / 2: here that is one in a hundred."""
    t = tracker(sites, 0.01)
    printed = t.factor * math.sqrt(sites)
    ones = [phase.bit_count() for phase in range(1, t.phases + 1)]
    times = np.bincount(ones)[1:]  # how many phases add up so many draws of noise
    laws = laws_of_sums(t.levels * t.noise_scale, len(times))
    upper = times @ laws[:, laws.shape[1] // 2 :]
    tails = 2 * (np.cumsum(upper[::-1])[::-1] - upper)
    assert np.argmax(tails <= 0.01) > printed
    assert t.beta / 2 < 1e-5


# Lemmas 6 and 7 -----------------------------------------------------------------------------------

NUMBERS_OF_SITES = [1, *range(3, 20), 64, 100, 255, 256, 257, 400, 1024, 4096, 16384]


@pytest.mark.theorem("001: Lemma 6")
@pytest.mark.parametrize("sites", NUMBERS_OF_SITES)
def test_adapting_gains_less_than_4_c_sqrt_k_bits(sites: int) -> None:
    for alpha in (0.01, 0.3):
        t = tracker(sites, alpha)
        assert accuracy(t).generalisation <= 4 * t.factor * math.sqrt(sites)


@pytest.mark.theorem("001: Lemma 7")
@pytest.mark.parametrize("sites", NUMBERS_OF_SITES)
def test_lemma_7_is_proved_for_every_number_of_sites_but_two(sites: int) -> None:
    for alpha, delta, items in [(0.01, 0.01, 10**8), (0.3, 0.2, 10**5), (0.002, 1e-6, 10**12)]:
        found = accuracy(constants(Setting(sites, alpha, delta, items)))
        assert found.proved
        assert 4 * found.total > found.budget, "it is not far from what is promised"


def test_for_two_sites_it_is_not_claimed() -> None:
    assert not accuracy(tracker(2)).proved


def test_the_failures_of_all_rounds_add_up_to_less_than_delta() -> None:
    for sites in (1, 16, 1024):
        found = accuracy(tracker(sites))
        assert 0.98 * 0.01 <= found.rounds * found.failure <= 0.01
