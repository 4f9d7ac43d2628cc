import io
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.privacy.noise import Bits, discrete_gaussian, discrete_laplace, seeded_bits, tape
from casemate.privacy.noise.noise import uniform_below
from casemate.privacy.noise.tape import COMPILED_FROM_DRAWS

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
