"""Where items come from: lines, numbers, a rate; and that a feed ends when it is told to."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.service.feed import Numbers, at_rate, each_line, piped
from casemate.track.transport.network import Notes


def through_a_pipe(pieces: list[bytes], numbers: bool, said: list[str]) -> int:
    read, write = os.pipe()
    feed = piped(read, Numbers(Notes(said.append)) if numbers else each_line, threading.Event())
    total = 0
    for piece in pieces:
        os.write(write, piece)
        total += next(feed)
    os.close(write)
    total += sum(feed)
    os.close(read)
    return total


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=10))
def test_every_line_is_an_item_however_the_pipe_cuts_them(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    lines = whole.count(b"\n") + (bool(whole) and not whole.endswith(b"\n"))
    assert through_a_pipe(pieces, False, []) == lines


@given(st.lists(st.integers(0, 10**17), max_size=20), st.integers(1, 7))
def test_numbers_are_summed_however_the_pipe_cuts_them(numbers: list[int], size: int) -> None:
    text = "".join(f"{n}\n" for n in numbers).encode()
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert through_a_pipe(pieces, True, []) == sum(numbers)


@pytest.mark.parametrize("bad", ["-5", "3.5", "x", "1e3", "9" * 30, "\xff", "²"])
def test_a_line_that_is_no_number_is_noted_and_counts_nothing(bad: str) -> None:
    said: list[str] = []
    assert through_a_pipe([f"4\n{bad}\n{bad}\n5".encode()], True, said) == 9
    assert len(said) == 1 and bad not in said[0]


def test_a_feed_that_is_over_ends_though_the_pipe_does_not() -> None:
    read, write = os.pipe()
    over = threading.Event()
    threading.Timer(0.05, over.set).start()
    assert list(piped(read, each_line, over)) == []
    os.close(read)
    os.close(write)


def test_a_rate_makes_items_until_it_is_over() -> None:
    over, total = threading.Event(), 0
    for items in at_rate(1e6, over):
        total += items
        if total >= 1000:
            over.set()
    assert total >= 1000
