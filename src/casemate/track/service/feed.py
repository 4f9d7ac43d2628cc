"""Where the items of a site process come from: lines of a pipe, or a rate for trying it out."""

import os
import select
import time
from collections.abc import Callable, Iterator

from casemate.track.service.attendant import Over
from casemate.track.transport.network import Notes

Counted = Callable[[list[bytes]], int]
"""How many items some lines stand for."""

_CHUNK = 1 << 16
_TURN = 0.1  # seconds after which a feed sees that it is over
_BEAT = 0.01  # seconds between two portions of a rate


def each_line(lines: list[bytes]) -> int:
    """Every line is one item.

    >>> each_line([b"GET /", b"", b"GET /a"])
    3
    """
    return len(lines)


class Numbers:
    """Every line is a number of items; one that is none is noted and counts nothing.

    >>> Numbers(Notes(say=print))([b"3", b" 4 ", b"-1", b""])
    a line of the input is no number of items and was left out; send whole numbers, or use --lines
    7
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.left_out = 0  # lines that are no number

    def __call__(self, lines: list[bytes]) -> int:
        """The sum of the lines."""
        return sum(map(self._number, lines))

    def _number(self, line: bytes) -> int:
        text = line.strip()
        if text.isdigit() and len(text) <= 18:
            return int(text)
        if text:
            self.left_out += 1
            self._notes.say(
                "a line of the input is no number of items and was left out; "
                "send whole numbers, or use --lines",
                about=Numbers,
            )
        return 0


def piped(source: int, counted: Counted, over: Over) -> Iterator[int]:
    """How many items each piece of a pipe stands for, until it ends or it is over."""
    rest = b""
    while piece := _read(source, over):
        *lines, rest = (rest + piece).split(b"\n")
        yield counted(lines)
    if rest:
        yield counted([rest])  # a last line without an end


def _read(source: int, over: Over) -> bytes:
    """The next piece, or nothing when there is none any more."""
    while not over.is_set():
        if select.select([source], [], [], _TURN)[0]:
            return os.read(source, _CHUNK)
    return b""


def at_rate(rate: float, over: Over) -> Iterator[int]:
    """So many items a second, in small portions, until it is over."""
    begun, sent = time.monotonic(), 0
    while not over.is_set():
        time.sleep(_BEAT)
        due = int((time.monotonic() - begun) * rate)
        yield due - sent
        sent = due
