"""A tape of random bits, and how a sampler runs along it many times.

A sampler is a function of two integers and a tape. It reads bits in a fixed order and returns three
integers, so it is a deterministic function of the bits. One source serves twice: as Python, on
integers of any size; and compiled, on 64-bit integers, when many draws are wanted. The two give the
same draws from the same bits, and a test says so.

Bits       Fewer than COMPILED_FROM_DRAWS draws: each bit is the lowest bit of one byte, fetched
           when it is needed, so that a test can walk the tree of random bits. From that many on,
           bytes are fetched in blocks and read from the highest bit down; what is left of the last
           block is dropped.
Timing     How many bits are read depends on the noise that was drawn, never on private data.
"""

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Bits = Callable[[int], bytes]
"""Returns as many random bytes as asked for; None in its place means `os.urandom`."""

Sampler = Callable[[int, int, Any], tuple[int, int, int]]
"""Draws (negative, steps, rest) from two integers and a tape; each law puts them together."""

COMPILED_FROM_DRAWS = 2048
"""From this many draws on it pays to compile, which takes a second of the first such call."""

COMPILED_BELOW = 2**62
"""Samplers double the numbers they are given, and no more, so below this 64 bits hold them."""

_BLOCK_BYTES = 1 << 20
_compilable: list[Callable[..., Any]] = []
_Packed = tuple[NDArray[np.uint8], NDArray[np.int64]]  # a block of bytes, and the next bit in it
_F = TypeVar("_F", bound=Callable[..., Any])


class EndOfTape(Exception):
    """The block of bits ended in the middle of a draw, which begins again with more."""


def seeded_bits(seed: int) -> Bits:
    """Return a repeatable bit source for tests and simulations; it protects nobody."""
    if seed < 0:
        raise ValueError(f"a seed must be a natural number, got {seed}")
    generator = np.random.Generator(np.random.Philox(seed))
    store, at = b"", 0

    def bits(count: int) -> bytes:
        nonlocal store, at
        if at + count > len(store):
            store, at = store[at:] + generator.bytes(-(-count // 4096) * 4096), 0
        at += count
        return store[at - count : at]

    return bits


def on_tape(function: _F) -> _F:
    """Mark a function as part of a sampler, so that it is compiled along with it."""
    _compilable.append(function)
    return function


def bit(tape: Bits) -> int:
    """Read the next bit of the tape."""
    return _fetch(tape, 1)[0] & 1


def run(
    sampler: Sampler, first: int, second: int, size: int, *, bits: Bits | None, narrow: bool
) -> NDArray[Any]:
    """Return `size` draws as the columns of three rows; `narrow` says that 64 bits are enough."""
    if size < 0:
        raise ValueError(f"size must be a natural number, got {size}")
    tape = os.urandom if bits is None else bits
    if narrow and size >= COMPILED_FROM_DRAWS:
        return _run_compiled(sampler, first, second, size, tape)
    draws = [sampler(first, second, tape) for _ in range(size)]
    return np.array(draws, dtype=object).reshape(size, 3).T


def _run_compiled(
    sampler: Sampler, first: int, second: int, size: int, bits: Bits
) -> NDArray[np.int64]:
    kernel = _kernel(sampler)
    draws = np.empty((3, size), np.int64)
    progress = np.zeros(2, np.int64)  # draws finished, and the bit at which the next one begins
    block = np.empty(0, np.uint8)
    while progress[0] < size:
        expected = (size - int(progress[0])) * (first.bit_length() // 4 + 3)
        fresh = np.frombuffer(_fetch(bits, min(_BLOCK_BYTES, expected)), np.uint8)
        block = np.concatenate((block[progress[1] >> 3 :], fresh))
        progress[1] &= 7
        with suppress(EndOfTape):
            kernel(first, second, block, progress, draws)
    return draws


def _fetch(bits: Bits, count: int) -> bytes:
    got = bits(count)
    if len(got) != count:
        raise ValueError(f"the bit source was asked for {count} bytes and gave {len(got)}")
    return got


@functools.cache
def _kernel(sampler: Sampler) -> Callable[..., None]:
    """Compile the loop over one sampler.

    Not cached on disk: Numba would not notice that a part of the sampler in another file changed.
    """
    from numba import njit

    for function in (bit, *_compilable):
        _register(function)

    def fill(
        first: int,
        second: int,
        block: NDArray[np.uint8],
        progress: NDArray[np.int64],
        draws: NDArray[np.int64],
    ) -> None:
        at = np.array([progress[1]])
        for i in range(progress[0], draws.shape[1]):
            draws[0, i], draws[1, i], draws[2, i] = sampler(first, second, (block, at))
            progress[0] = i + 1
            progress[1] = at[0]

    compiled: Callable[..., None] = njit()(fill)
    return compiled


@functools.cache
def _register(function: Callable[..., Any]) -> None:
    """Tell the compiler about a part of samplers, or what a bit is on a packed tape."""
    from numba.extending import overload, register_jitable

    if function is bit:
        overload(bit)(_typed_bit)
    else:
        register_jitable(function)


def _typed_bit(tape: _Packed) -> Callable[[_Packed], int]:  # noqa: ARG001 - names must agree
    return _packed_bit


def _packed_bit(tape: _Packed) -> int:
    block, at = tape
    here = at[0]
    if here >= 8 * len(block):
        raise EndOfTape
    at[0] = here + 1
    return int(np.int64(block[here >> 3]) >> (7 - (here & 7))) & 1
