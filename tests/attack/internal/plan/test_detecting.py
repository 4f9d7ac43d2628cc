"""Few subset sums that determine many bits."""

import math
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.plan.result import DetectingMatrix, sums_necessary, sums_needed


@pytest.mark.parametrize("bits", range(1, 15))
def test_no_two_bit_strings_have_the_same_sums(bits: int) -> None:
    """By brute force, without the decoder."""
    strings = np.array(list(product((0, 1), repeat=bits)))
    sums = strings @ DetectingMatrix(bits).rows.T.astype(np.int64)
    assert len(np.unique(sums, axis=0)) == 2**bits


@given(st.lists(st.integers(0, 1), min_size=1, max_size=400))
def test_the_bits_are_decoded_from_their_sums(bits: list[int]) -> None:
    matrix = DetectingMatrix(len(bits))
    assert matrix.decode((matrix.rows @ np.array(bits)).tolist()).tolist() == bits


@pytest.mark.parametrize("bits", [511, 512, 513, 1024, 1025, 4096])
def test_many_bits_are_decoded(bits: int, rng: Random) -> None:
    truth = np.array([rng.randrange(2) for _ in range(bits)])
    matrix = DetectingMatrix(bits)
    assert (matrix.decode((matrix.rows @ truth).tolist()) == truth).all()


@pytest.mark.parametrize("power", range(1, 11))
def test_all_sets_of_a_size_serve_as_many_bits_as_the_theorem_says(power: int) -> None:
    assert sums_needed(power * 2 ** (power - 1)) == 2**power - 1


def test_the_number_of_sums_is_about_twice_what_counting_demands() -> None:
    needed = {bits: sums_needed(bits) for bits in range(2, 4097)}
    assert needed[1024] == 255 <= 2.6 * 1024 / math.log2(1024)
    assert all(sums_necessary(n) <= sums <= 2.7 * n / math.log2(n) for n, sums in needed.items())
    assert all(needed[n] <= needed[n + 1] <= needed[n] + 1 for n in range(2, 4096))
    assert all(sums < n for n, sums in needed.items() if n > 3)


def test_every_sum_is_about_somebody() -> None:
    assert all(DetectingMatrix(bits).rows.any(axis=1).all() for bits in range(1, 200))


@pytest.mark.parametrize("sums", [[3, 0, 0], [0, 0, 1], [-1, 0, 0], [2, 2, 3]])
def test_sums_that_no_bits_have_are_noticed(sums: list[int]) -> None:
    with pytest.raises(ValueError, match="not the sums of bits"):
        DetectingMatrix(4).decode(sums)


def test_as_many_sums_as_rows_are_needed() -> None:
    with pytest.raises(ValueError, match="3 sums are needed for 4 bits"):
        DetectingMatrix(4).decode([1, 1])
