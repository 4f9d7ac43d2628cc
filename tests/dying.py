"""Processes that do the same work in life after life, and are killed at a step of some of them.

Each life is a process of its own, forked from a script. A step is a call; before and after each
there is a moment to die, by SIGKILL.
"""

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forked import FINISHED, ended, forked

KILLED = -signal.SIGKILL
TESTS = Path(__file__).parent
Live = Callable[[Path, str, "Steps"], None]
"""One life in a folder, with a habit."""


class Steps:
    """Counts moments, and ends the process at one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.count, self.last = 0, last

    def pass_one(self) -> None:
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def around(self, thing: object, *names: str) -> None:
        """Make methods of this object steps."""
        for name in names:
            object.__setattr__(thing, name, self.around_call(getattr(thing, name)))

    def around_call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **options: Any) -> Any:
            self.pass_one()
            result = call(*args, **options)
            self.pass_one()
            return result

        return stepped

    def send(self, folder: Path, *row: Any) -> None:
        """Write what somebody outside has seen: a question, its answer, and more."""
        with (folder / "sent").open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.pass_one()


# In the script ------------------------------------------------------------------------------------


def lives(live: Live, folder: Path, habit: str, deaths: Sequence[int]) -> list[int]:
    """How each life ended: number i dies at moment deaths[i], and a last one lives."""
    return [ended(forked(partial(live, folder, habit, Steps(last)))) for last in (*deaths, None)]


def every(live: Live, where: Path, saved: Sequence[Path], first: int, step: int) -> None:
    """One folder for each moment of a first life, until it outlives the moment meant for it.

    The second life dies too, a little later in its own course than half way to that moment.
    """
    moment = first
    while True:
        folder = where / f"moment-{moment}"
        folder.mkdir()
        for file in saved:
            (folder / file.name).write_bytes(file.read_bytes())
        if lives(live, folder, "sound", [moment, moment // 2 + 1])[0] == FINISHED:
            return
        moment += step


def race(work: Sequence[Callable[[], None]]) -> list[int]:
    """How each of several processes ended that were alive at the same time."""
    children = [forked(each) for each in work]
    return [ended(child) for child in children]


# In a test ----------------------------------------------------------------------------------------


def run(script: Path, folder: Path, habit: str, *numbers: int) -> str:
    """What a script prints."""
    command = [sys.executable, str(script), str(folder), habit, *map(str, numbers)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def rows(folder: Path) -> list[list[Any]]:
    """Everything that was ever sent."""
    return [json.loads(line) for line in (folder / "sent").read_text().splitlines()]


def sent(folder: Path) -> dict[str, set[str]]:
    """Every text that ever left as the answer to each question."""
    texts = defaultdict(set)
    for key, text, *_ in rows(folder):
        texts[key].add(text)
    return texts
