"""Exact noise: its coins, its tape of bits, and the laws of its draws."""

import ast
import inspect
import io
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, count
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from bit_tree import walk
from chance import ALARM, assert_follows
from exact_exponential import Bounds, exp_bounds, gaussian_bounds, laplace_bounds
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.privacy.noise import (
    Bits,
    discrete_gaussian,
    discrete_laplace,
    draw,
    noise,
    seeded_bits,
    tape,
)
from casemate.privacy.noise import noise as coins
from casemate.privacy.noise.noise import (
    _fraction_coin,
    _half_normal,
    _mixed_coin,
    _slope_coin,
    below,
    coin,
    exponential_coin,
    silence,
    uniform_below,
)
from casemate.privacy.noise.tape import COMPILED_FROM_DRAWS, bit

unit_fractions = st.fractions(0, 1, max_denominator=10**6)


# Exactly true -------------------------------------------------------------------------------------


@given(unit_fractions)
def test_a_coin_has_exactly_its_bias(bias: Fraction) -> None:
    """Only one path of each length is undecided: the digits of the bias themselves."""
    masses, undecided = walk(lambda bits: coin(bias.numerator, bias.denominator, bits), 40)
    assert undecided <= Fraction(1, 2**40)
    assert masses.get(True, 0) <= bias <= masses.get(True, 0) + undecided


@given(st.integers(1, 300))
def test_a_uniform_integer_has_exactly_its_law(limit: int) -> None:
    masses, undecided = walk(lambda bits: below(limit, bits), 12)
    assert set(masses) == set(range(limit))
    assert len(set(masses.values())) == 1, "all are equally likely at every depth"
    assert sum(masses.values()) + undecided == 1


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 7), Fraction(2, 3), Fraction(1)])
def test_an_exponential_coin_has_exactly_its_bias(exponent: Fraction) -> None:
    p, q = exponent.numerator, exponent.denominator
    masses, undecided = walk(lambda bits: exponential_coin(p, q, bits), 24)
    low, high = exp_bounds(-exponent)
    assert undecided < Fraction(1, 1000)
    assert masses[True] <= high and low <= masses[True] + undecided


def test_the_test_above_would_notice_a_coin_without_its_factorials() -> None:
    def careless(bits: Bits) -> bool:
        k = 1
        while coin(2, 3, bits):
            k += 1
        return k % 2 == 1

    masses, _ = walk(careless, 12)
    assert masses[True] > exp_bounds(Fraction(-2, 3))[1]


@pytest.mark.parametrize("limit", [2**62 - 1, 2**62, 2**62 + 1, 2**100 + 7])
@pytest.mark.parametrize("size", [5, COMPILED_FROM_DRAWS])
def test_uniform_integers_of_any_width_are_below_their_limit(limit: int, size: int) -> None:
    drawn = uniform_below(limit, size, seeded_bits(3))
    assert drawn.dtype == (np.int64 if limit < 2**62 else object)
    assert all(0 <= value < limit for value in drawn.tolist())
    assert max(drawn.tolist()) > limit // 4


# The tape --------------------------------------------------------------------------------------


Law = Callable[[Any, int, Bits | None], NDArray[Any]]
seeds = st.integers(0, 2**64)
scales = st.fractions(Fraction(1, 1000), 10**12, max_denominator=10**6)
law_and_scale: st.SearchStrategy[tuple[Law, Any]] = st.one_of(
    st.tuples(st.just(discrete_laplace), scales),
    st.tuples(st.just(discrete_gaussian), scales),
    st.tuples(st.just(uniform_below), st.integers(1, 2**62 - 1)),
)


def one_byte_per_bit(bits: Bits) -> Bits:
    """The bits of a source as single draws take them; the seven others of a byte are ones."""
    store: list[int] = []

    def single(count: int) -> bytes:
        nonlocal store
        assert count == 1
        if not store:
            store = np.unpackbits(np.frombuffer(bits(64), np.uint8))[::-1].tolist()
        return bytes([0xFE | store.pop()])

    return single


def drawn_one_by_one(law: Law, scale: Any, size: int, bits: Bits) -> list[int]:
    single = one_byte_per_bit(bits)
    return [value for _ in range(size) for value in law(scale, 1, single).tolist()]


# Exactly true, for every tape ---------------------------------------------------------------------


@given(law_and_scale, seeds)
@settings(max_examples=12)
def test_compiled_and_plain_samplers_agree_bit_for_bit(pair: tuple[Law, Any], seed: int) -> None:
    law, scale = pair
    bulk = law(scale, COMPILED_FROM_DRAWS, seeded_bits(seed)).tolist()
    assert bulk == drawn_one_by_one(law, scale, COMPILED_FROM_DRAWS, seeded_bits(seed))


@pytest.mark.parametrize("block", [1, 2, 7, 100])
def test_a_draw_cut_off_by_the_end_of_a_block_goes_on_in_the_next(
    block: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To drop it would favour draws of few bits, which are not like the others."""
    whole = discrete_laplace(Fraction(40), COMPILED_FROM_DRAWS, seeded_bits(seed)).tolist()
    monkeypatch.setattr(tape, "_BLOCK_BYTES", block)
    assert discrete_laplace(Fraction(40), COMPILED_FROM_DRAWS, seeded_bits(seed)).tolist() == whole


def test_a_few_draws_take_one_byte_for_each_bit_and_no_more_than_they_need() -> None:
    asked: list[int] = []

    def zeros(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    assert uniform_below(8, 2, zeros).tolist() == [0, 0]
    assert asked == [1] * 6
    lowest = uniform_below(8, 1, lambda count: b"\xfe" * count)
    assert lowest.tolist() == [0], "only the lowest bit of a byte counts"


@given(seeds, st.lists(st.integers(0, 10_000), max_size=20))
def test_a_seeded_source_is_one_stream_however_it_is_cut(seed: int, cuts: list[int]) -> None:
    bits = seeded_bits(seed)
    assert b"".join(bits(cut) for cut in cuts) == seeded_bits(seed)(sum(cuts))


def test_without_a_source_the_bits_come_from_the_operating_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.urandom", lambda count: b"\xff" * count)
    assert uniform_below(8, 1).tolist() == [7]
    assert set(uniform_below(8, COMPILED_FROM_DRAWS).tolist()) == {7}


@pytest.mark.parametrize("size", [1, COMPILED_FROM_DRAWS])
def test_a_source_that_runs_dry_is_an_error_not_a_loop(size: int) -> None:
    with pytest.raises(ValueError, match="gave 0"):
        discrete_laplace(Fraction(1), size, io.BytesIO().read)


def test_a_sampler_written_after_others_were_compiled_is_compiled_too(seed: int) -> None:
    discrete_laplace(Fraction(1), COMPILED_FROM_DRAWS, seeded_bits(seed))

    @tape.on_tape
    def three_bits(first: int, second: int, source: Bits) -> tuple[int, int, int]:
        return tape.bit(source) * first, tape.bit(source) * second, tape.bit(source)

    columns = tape.run(three_bits, 5, 7, COMPILED_FROM_DRAWS, bits=seeded_bits(seed), narrow=True)
    assert [set(row.tolist()) for row in columns] == [{0, 5}, {0, 7}, {0, 1}]


# Noise -----------------------------------------------------------------------------------------


Cdf = Callable[[Fraction], Callable[[int], float]]
SCALES = [
    Fraction(1, 1000),
    Fraction(1, 3),
    Fraction(5, 3),
    Fraction(7, 2),
    Fraction(40),
    Fraction(10**6),
    10**9 + Fraction(7, 3),
    Fraction(2**58 + 1),
    Fraction(2**70),
    Fraction(3**45 + 2, 5**29),
]
"""Tiny to huge; the last has a numerator and a denominator past 2^62."""


def of_size(scale: Fraction) -> int:
    """Many draws where they are compiled, fewer where the arithmetic is Python's."""
    if scale.numerator >= 2**62:
        return 4_000
    return 400_000 if scale == 40 else 50_000


# Exactly true -------------------------------------------------------------------------------------


def assert_encloses(
    masses: dict[int, Fraction], undecided: Fraction, truth: Callable[[int], Bounds]
) -> None:
    """No outcome has more mass than the law gives it, nor less by more than is undecided."""
    for x in range(-8, 9):
        low, high = truth(x)
        assert low - undecided <= masses.get(x, 0) <= high, f"{x} has not its probability"


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2)])
def test_laplace_has_exactly_its_law(scale: Fraction) -> None:
    masses, undecided = walk(lambda bits: int(discrete_laplace(scale, 1, bits)[0]), 16)
    assert undecided < Fraction(5, 12)
    assert_encloses(masses, undecided, lambda x: laplace_bounds(x, scale))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2)])
def test_gaussian_has_exactly_its_law(scale: Fraction) -> None:
    masses, undecided = walk(lambda bits: int(discrete_gaussian(scale, 1, bits)[0]), 15)
    assert undecided < Fraction(3, 5)
    assert_encloses(masses, undecided, lambda x: gaussian_bounds(x, scale))


def test_the_tests_above_would_notice_a_zero_of_each_sign() -> None:
    def careless(bits: Bits) -> int:
        magnitude = next(v for v in count() if not exponential_coin(1, 1, bits))
        return -magnitude if bit(bits) else magnitude

    masses, undecided = walk(careless, 15)
    with pytest.raises(AssertionError, match="has not its probability"):
        assert_encloses(masses, undecided, lambda x: laplace_bounds(x, Fraction(1)))


@pytest.mark.parametrize("t", [1, 2, 3, 7])
def test_a_slope_coin_makes_attempts_fail_with_probability_exactly_one_over_e(t: int) -> None:
    """The Departure of the Laplace sampler: its bias is t (1 - exp(-1/t))."""
    masses, undecided = walk(lambda bits: _slope_coin(t, bits), 24)
    low, high = exp_bounds(Fraction(-1, t))
    assert undecided < Fraction(1, 1000)
    assert masses[True] <= t * (1 - low) and t * (1 - high) <= masses[True] + undecided


def test_the_whole_scales_of_a_gaussian_have_exactly_their_law() -> None:
    masses, undecided = walk(_half_normal, 17)
    weights = [exp_bounds(Fraction(-k * k, 2)) for k in range(6)]
    assert undecided < Fraction(1, 5)
    for k, mass in masses.items():
        assert mass <= weights[k][1] / sum(low for low, _ in weights)
        total = sum(high for _, high in weights) + Fraction(1, 10**7)  # more than the other k weigh
        assert mass + undecided >= weights[k][0] / total


@pytest.mark.parametrize(("k", "x", "a"), [(0, 1, 3), (1, 1, 2), (3, 2, 7)])
def test_the_fraction_of_a_gaussian_is_kept_with_exactly_its_probability(
    k: int, x: int, a: int
) -> None:
    y = Fraction(x, a)
    masses, undecided = walk(lambda bits: _fraction_coin(k, x, a, bits), 17)
    low, high = exp_bounds(-y * (2 * k + y) / 2)
    assert undecided < Fraction(1, 8)
    assert masses[True] <= high and low <= masses[True] + undecided
    mixed, undecided = walk(lambda bits: _mixed_coin(k, x, a, bits), 12)
    assert mixed[True] <= (2 * k + y) / (2 * k + 2) <= mixed[True] + undecided


@pytest.mark.parametrize("module", [tape, coins, noise])
def test_no_float_can_influence_a_draw(module: ModuleType) -> None:
    """No float literal, no true division and no module of real functions."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        assert not isinstance(node, ast.Div)
        assert not (isinstance(node, ast.Name) and node.id in {"float", "math", "float64"})


def test_silence_is_zero_and_draw_takes_one() -> None:
    assert silence(Fraction(3), 4).tolist() == [0, 0, 0, 0]
    assert draw(silence, Fraction(3)) == 0
    assert type(draw(discrete_laplace, Fraction(3))) is int


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", [0, 9, COMPILED_FROM_DRAWS])
def test_values_are_64_bit_integers_below_a_scale_of_2_to_the_56(
    scale: Fraction, size: int
) -> None:
    for law in (discrete_laplace, discrete_gaussian):
        drawn = law(scale, size, seeded_bits(1))
        assert drawn.dtype == (np.int64 if scale < 2**56 else object)
        assert len(drawn) == size
        assert all(type(value) is int for value in drawn.tolist())


def failing_attempts(times: int) -> Iterator[int]:
    """The bits of a draw at t = 2^55 that fails so many times, and then ends with a minus."""
    fails = [1] * 55 + [0, 0, 1]  # remainder t - 1; two true coins and a false one: even
    return chain(fails * times, [0] * 55, [1, 1])  # remainder 0; slope coin true; negative


@pytest.mark.parametrize("times", [1, 127, 128])
def test_a_value_past_2_to_the_62_is_a_python_integer(times: int) -> None:
    """It has probability exp(-64) and less, so the bits are written by hand."""
    scale, expected = Fraction(2**55), -times * 2**55
    one = list(failing_attempts(times))
    single = discrete_laplace(scale, 1, io.BytesIO(bytes(one)).read)
    packed = np.packbits(np.array(one * COMPILED_FROM_DRAWS, np.uint8)).tobytes() + bytes(2**20)
    bulk = discrete_laplace(scale, COMPILED_FROM_DRAWS, io.BytesIO(packed).read)
    assert single.tolist() == [expected] and bulk.tolist() == [expected] * COMPILED_FROM_DRAWS
    assert single.dtype == bulk.dtype == (np.int64 if times < 128 else object)


# True with a stated probability -------------------------------------------------------------------


def laplace_cdf(scale: Fraction) -> Callable[[int], float]:
    rate = float(1 / scale)

    def cdf(x: int) -> float:
        tail = math.exp(-(abs(x) + (x >= 0)) * rate) / (1 + math.exp(-rate))
        return 1 - tail if x >= 0 else tail

    return cdf


def gaussian_cdf(scale: Fraction) -> Callable[[int], float]:
    """Sums for a small scale; for a large one the normal law is closer than 1 / scale^2."""
    rate = float(1 / scale)
    if scale >= 10**5:
        return lambda x: (1 + math.erf((x + 0.5) * rate / math.sqrt(2))) / 2
    reach = 20 * math.ceil(scale)
    weights = np.exp([-((k * rate) ** 2) / 2 for k in range(-reach, reach + 1)])
    sums = np.cumsum(weights) / weights.sum()
    return lambda x: float(sums[x + reach]) if x > -reach else 0.0


@pytest.mark.parametrize("scale", [*SCALES[:5:2], *SCALES[6::3]])
@pytest.mark.parametrize(
    ("law", "cdf"), [(discrete_laplace, laplace_cdf), (discrete_gaussian, gaussian_cdf)]
)
def test_draws_have_their_distribution(law: Law, cdf: Cdf, scale: Fraction, seed: int) -> None:
    samples = law(scale, of_size(scale), seeded_bits(seed)).tolist()
    assert_follows(samples, cdf(scale))


@pytest.mark.parametrize("factor", [Fraction(95, 100), Fraction(105, 100)])
def test_the_tests_above_would_notice_a_scale_off_by_five_percent(
    factor: Fraction, seed: int
) -> None:
    laplace = discrete_laplace(40 * factor, 400_000, seeded_bits(seed)).tolist()
    with pytest.raises(AssertionError):
        assert_follows(laplace, laplace_cdf(Fraction(40)))
    gaussian = discrete_gaussian(40 * factor, 400_000, seeded_bits(seed)).tolist()
    with pytest.raises(AssertionError):
        assert_follows(gaussian, gaussian_cdf(Fraction(40)))


def assert_same_law(left: list[int], right: list[int], alarm: float = ALARM) -> None:
    """Two samples of one law: each is within its own bound of the law (DKW, twice)."""
    grid = np.array(sorted({*left, *right}), dtype=object)
    gap = max(
        abs(
            np.searchsorted(np.sort(np.array(left, dtype=object)), grid, "right") / len(left)
            - np.searchsorted(np.sort(np.array(right, dtype=object)), grid, "right") / len(right)
        )
    )
    allowed = sum(math.sqrt(math.log(4 / alarm) / (2 * len(side))) for side in (left, right))
    assert gap <= allowed, f"the samples are {gap:.4f} apart"


def test_two_samples_of_different_laws_are_told_apart(seed: int) -> None:
    left = discrete_laplace(Fraction(7, 2), 200_000, seeded_bits(seed)).tolist()
    right = discrete_gaussian(Fraction(7, 2), 8_000, seeded_bits(seed + 1)).tolist()
    with pytest.raises(AssertionError):
        assert_same_law(left, right)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 2), Fraction(40), Fraction(10**6)])
def test_opendp_draws_from_the_same_laws(scale: Fraction, seed: int) -> None:
    """An independent implementation: `pip install 'casemate[oracle]'`."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    integers, zeros = dp.vector_domain(dp.atom_domain(T="i64")), [0] * 50_000
    laplace = dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=float(scale))
    gaussian = dp.m.make_gaussian(integers, dp.l2_distance(T="f64"), scale=float(scale))
    for ours, theirs in ((discrete_laplace, laplace), (discrete_gaussian, gaussian)):
        assert_same_law(ours(scale, 200_000, seeded_bits(seed)).tolist(), list(theirs(zeros)))
