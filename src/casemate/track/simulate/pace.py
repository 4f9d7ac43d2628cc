"""Where a long simulated run pauses: to say how far it is, and so that it can be interrupted there.

Compiled code neither shows progress nor notices an interrupt, so a run goes through its items in
pieces. A pause falls between two items and changes nothing: the run goes on from the same state,
and draws the same numbers.

Interrupts of a compiled run: they wait for its next pause.

Python raises an interrupt wherever its own code runs next. Numba runs some of that while it hands a
generator over to compiled code, does not look whether it failed, and the whole program crashes. So
while a run is compiled, an interrupt is only noted; somebody who interrupts once more is not made
to wait.
"""

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Self

EVERY = 1 << 22
"""The items of a piece: about a tenth of a second, and far more than it costs to pause."""


def _nobody(_items: int) -> None:
    """There is nobody to tell."""


@dataclass(frozen=True)
class Pace:
    """Who is told how many items have come, and how often."""

    tell: Callable[[int], None] = _nobody
    every: int = EVERY

    def pause(self, items: int, last: int) -> int:
        """The item after which a run that has taken so many of `last` pauses next.

        >>> [Pace(every=10).pause(items, last=25) for items in (0, 9, 10, 24, 25)]
        [10, 10, 20, 25, 25]
        """
        return min(items - items % self.every + self.every, last)

    def note(self, items: int, last: int) -> None:
        """So many of `last` items have come: tell, if this is a pause or the end."""
        if items == last or items % self.every == 0:
            self.tell(items)


UNWATCHED = Pace()


# Interrupts -------------------------------------------------------------------------------------


class HeldInterrupts:
    """Holds back interrupts that would end the program, and raises them where that is safe.

    >>> with HeldInterrupts() as interrupts:
    ...     interrupts.release()
    """

    def __init__(self) -> None:
        self._came = self._holding = False

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()  # no other is interrupted
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._holding = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._holding:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._holding = False
        if kind is None:
            self.release()

    def release(self) -> None:
        """Raise the interrupt that has come, if one has."""
        if self._came:
            self._came = False
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True
