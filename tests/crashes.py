"""A crash at any moment of a conversation, inside one process."""

from collections.abc import Callable
from itertools import count
from typing import Any


class Crash(BaseException):
    """The process ended here."""


class Clock:
    """Passes moments, and crashes at one of them, once."""

    def __init__(self, last: int | None) -> None:
        self.moments, self.last = count(), last

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **options: Any) -> Any:
            self.tick()
            result = call(*args, **options)
            self.tick()
            return result

        return stepped

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A draw: what is lost after it is in a test of its own."""

        def stepped(*args: Any) -> Any:
            self.tick()
            return call(*args)

        return stepped

    def tick(self) -> None:
        if next(self.moments) == self.last:
            raise Crash
