"""A process that asks the doors the same questions in life after life (`dying`).

Run as `python dying_doors.py FOLDER HABIT NUMBERS…`. Each life opens the ledger, the transcript and
the secret, asks every question from the first on and writes each answer to FOLDER/sent as it is
sent. A step is a call of the ledger, the transcript or the secret file, or a draw of noise. HABIT:

`sound`      the life number i dies at moment NUMBERS[i], and a last one lives;
`careless`   a life of two for each of NUMBERS, until one shows two draws for one charge, with a
             mistake: a measurement is sent before it is durable;
`forgetful`  the same, with a mistake: the secret is not kept;
`every`      NUMBERS are the first moment and a step: one folder for each moment of a life;
`race`       NUMBERS is one: so many processes ask all questions at the same time.
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
from dying import Steps, every, lives, race, sent

from casemate.doors import Gate, Measurement, MemorySecrets, TranscriptEntry
from casemate.doors.transcript import TranscriptBook, to_text
from casemate.privacy.mechanisms import Calibration
from casemate.privacy.noise import LaplaceLaw, Noise, Sources, discrete_laplace

LAW = LaplaceLaw(Fraction(1000))  # so wide that two draws are hardly ever the same
CALIBRATION = Calibration(Fraction(1000), Fraction(1000))


def doors(folder: Path, habit: str, steps: Steps) -> tuple[Doorway, Gate, Measurement]:
    doorway = in_file(folder)
    if habit == "forgetful":
        doorway.secrets = MemorySecrets()
    steps.around(doorway.ledger, "charge", "record_output")
    steps.around(doorway.transcript, "run")
    steps.around(doorway.secrets, "write")
    noise: Noise = steps.around_call(discrete_laplace)
    unique = lambda: os.urandom(8).hex()  # noqa: E731 - a name for each run
    options: dict[str, Any] = {"calibration": CALIBRATION, "runs": 9, "name": unique}
    gate = doorway.gate(noise, schedule=lambda _: 10**6, **options)
    return doorway, gate, replace(doorway.measurement(), sources=Sources(laplace=noise))


def live(folder: Path, habit: str, steps: Steps) -> None:
    """Ask everything, in order, and send each answer."""
    doorway, gate, measurement = doors(folder, habit, steps)
    send = partial(steps.send, folder)
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


def sent_twice(folder: Path, moment: int) -> bool:
    """Whether the mistake shows when the first life ends at this moment."""
    folder.mkdir()
    lives(live, folder, "careless", [moment])
    return len(sent(folder)["measured"]) > 1


def main(where: str, habit: str, *numbers: str) -> None:
    folder, wanted = Path(where), [int(number) for number in numbers]
    folder.mkdir(exist_ok=True)
    if habit == "every":
        every(live, folder, (), *wanted)
    elif habit == "careless":
        print(json.dumps(any(sent_twice(folder / str(moment), moment) for moment in wanted)))
    elif habit == "race":
        print(json.dumps(race([partial(live, folder, "sound", Steps()) for _ in range(*wanted)])))
    else:
        print(json.dumps(lives(live, folder, habit, wanted)))


if __name__ == "__main__":
    main(*sys.argv[1:])
