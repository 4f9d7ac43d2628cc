"""Interrupts of a compiled run: they wait for its next pause.

Python raises an interrupt wherever its own code runs next. Numba runs some of that while it hands a
generator over to compiled code, does not look whether it failed, and the whole program crashes. So
while a run is compiled, an interrupt is only noted; somebody who interrupts once more is not made
to wait.
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class Held:
    """Holds back interrupts that would end the program, and raises them where that is safe.

    >>> with Held() as interrupts:
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
