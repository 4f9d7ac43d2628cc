"""How a process that runs for ever learns that it is over."""

from typing import Protocol


class Over(Protocol):
    """Something to look at now and then."""

    def is_set(self) -> bool:
        """Whether it is over."""
        ...


class Flag:
    """Set by a signal's handler: it takes no lock, because the handler may interrupt who has it."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """It is over now."""
        self._set = True

    def is_set(self) -> bool:
        """Whether it is over."""
        return self._set
