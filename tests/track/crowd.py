"""Processes that can be killed at any moment and started again with what they had."""

import subprocess
from collections.abc import Callable
from typing import Self

Start = Callable[..., "subprocess.Popen[bytes]"]


class Crowd:
    """Processes by name, all of them killed in the end."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._arguments: dict[str, tuple[str, ...]] = {}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str) -> None:
        self._arguments[name] = arguments
        self.running[name] = self._start(*arguments)

    def start_again(self, name: str) -> None:
        self.start(name, *self._arguments[name])

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self._end(name)

    def stop(self, name: str) -> int:
        self.running[name].terminate()
        return self._end(name)

    def _end(self, name: str) -> int:
        process = self.running[name]
        if process.stdout is not None:
            process.stdout.close()
        return process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.running:
            self.kill(name)
