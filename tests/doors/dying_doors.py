"""A process that asks the same questions in life after life, and dies at a step of some of them.

Run as `python dying_doors.py FOLDER HABIT DEATHS…`. Each life is a process of its own, forked here,
that opens the ledger, the transcript and the secret, asks every question from the first on and
writes each answer to FOLDER/sent as it is sent. A step is a call of the ledger, the transcript or
the secret file, or a draw of noise; before and after each there is a moment to die. The life number
i dies at moment DEATHS[i], by os._exit, and a last one lives. HABIT is `sound`, or a mistake that a
test has to notice: `careless` sends a measurement before it is appended, `forgetful` does not keep
the secret.

With HABIT `race`, DEATHS is one number: so many processes ask all questions at the same time.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from doors.doorway import Doorway, asking, in_file
from forked import FINISHED, ended, forked

from casemate.doors import Gate, Measurement, MemorySecrets, TranscriptEntry
from casemate.doors.entry import to_text
from casemate.doors.transcript import TranscriptBook
from casemate.privacy.mechanisms import Calibration
from casemate.privacy.noise import LaplaceLaw, Noise, Sources, discrete_laplace

LAW = LaplaceLaw(Fraction(1000))  # so wide that two draws are hardly ever the same
CALIBRATION = Calibration(Fraction(1000), Fraction(1000))
DEAD = 9

Send = Callable[[str], None]


class Steps:
    """Counts moments, and ends the process at one of them."""

    def __init__(self, last: int | None) -> None:
        self.count, self.last = 0, last

    def pass_one(self) -> None:
        if self.count == self.last:
            os._exit(DEAD)
        self.count += 1

    def around(self, thing: object, name: str) -> None:
        """Make a method of this object a step."""
        setattr(thing, name, self.around_call(getattr(thing, name)))

    def around_call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **options: Any) -> Any:
            self.pass_one()
            result = call(*args, **options)
            self.pass_one()
            return result

        return stepped


def doors(folder: Path, habit: str, steps: Steps) -> tuple[Doorway, Gate, Measurement]:
    doorway = in_file(folder)
    if habit == "forgetful":
        doorway.secrets = MemorySecrets()
    for name in ("charge", "record_output"):
        steps.around(doorway.ledger, name)
    steps.around(doorway.transcript, "run")
    steps.around(doorway.secrets, "write")
    noise: Noise = steps.around_call(discrete_laplace)
    options: dict[str, Any] = {"calibration": CALIBRATION, "runs": 9, "name": partial(unique)}
    gate = doorway.gate(noise, schedule=lambda _: 10**6, **options)
    return doorway, gate, replace(doorway.measurement(), sources=Sources(laplace=noise))


def unique() -> str:
    return os.urandom(8).hex()


def live(folder: Path, habit: str, steps: Steps) -> None:
    """Ask everything, in order, and send each answer."""
    doorway, gate, measurement = doors(folder, habit, steps)

    def send(key: str, text: str) -> None:
        with (folder / "sent").open("a") as file:
            file.write(json.dumps([key, text]) + "\n")
        steps.pass_one()

    if habit == "careless":
        confess(doorway, send)
    send("easy", to_text(gate.ask(asking("easy", 3))))
    send("hard", to_text(gate.ask(asking("hard", 10**7))))
    cells = measurement.measure("cells", lambda: [5, 7], cells=2, law=LAW)
    send("measured", to_text(cells))
    send("total", to_text(measurement.total(lambda: 12, law=LAW)))
    send("later", to_text(gate.ask(asking("later", 3))))
    doorway.close()


def confess(doorway: Doorway, send: Callable[[str, str], None]) -> None:
    """The mistake: what a transaction appends is sent before the transaction is durable."""
    run = doorway.transcript.run

    def careless(work: Callable[[TranscriptBook], Any]) -> Any:
        def told(book: TranscriptBook) -> Any:
            result = work(book)
            if isinstance(result, TranscriptEntry) and result.kind == "measured":
                send("measured", result.text)
            return result

        return run(told)

    doorway.transcript.run = careless  # type: ignore[method-assign]  # the mistake itself


def lives(folder: Path, habit: str, deaths: list[int]) -> list[int]:
    """How each life ended."""
    return [
        ended(forked(lambda last=last: live(folder, habit, Steps(last))))  # type: ignore[misc]  # a default binds it
        for last in (*deaths, None)
    ]


def race(folder: Path, count: int) -> list[int]:
    children = [forked(lambda: live(folder, "sound", Steps(None))) for _ in range(count)]
    return [ended(child) for child in children]


def main(folder: str, habit: str, *numbers: str) -> None:
    where, wanted = Path(folder), [int(number) for number in numbers]
    where.mkdir(exist_ok=True)
    if habit == "every":
        every(where, wanted[0], wanted[1])
    elif habit == "race":
        print(json.dumps(race(where, wanted[0])))
    else:
        print(json.dumps(lives(where, habit, wanted)))


def every(where: Path, first: int, step: int) -> None:
    """One folder for each moment of a first life, until it outlives the moment meant for it.

    The second life dies too, a little later in its own course than half way to that moment.
    """
    moment = first
    while True:
        folder = where / str(moment)
        folder.mkdir()
        if lives(folder, "sound", [moment, moment // 2 + 1])[0] == FINISHED:
            return
        moment += step


if __name__ == "__main__":
    main(*sys.argv[1:])
