"""A process that asks a session the same statements in life after life (`dying`).

Run as `python dying_session.py FOLDER HABIT NUMBERS…`. FOLDER/casemate.toml is the policy. Each
life opens a session, asks every statement from the first on and writes each answer to FOLDER/sent
as it is sent. A step is a call of the ledger, the transcript or the secret file, a draw of noise,
or a scan of the table. HABIT says what happens:

`sound`      the life number i dies at moment NUMBERS[i], and a last one lives;
`careless`   the same, with a mistake: measurements are sent before they are durable;
`forgetful`  the same, with a mistake: the secret of the gate is not kept;
`generous`   the same, with a mistake: a run of the gate is charged again by the next life;
`every`      NUMBERS are the first moment and a step: one folder for each moment of a life;
`race`       NUMBERS is one: so many processes ask at the same time, each in an order of its own.
"""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from answer.small_dataset import world
from dying import Steps, every, lives, race
from grid.small_grid import counting

from casemate.answer import Session
from casemate.doors import MemorySecrets, TranscriptEntry
from casemate.doors.transcript import TranscriptBook
from casemate.privacy.noise import Sources
from casemate.surrogate import StandIn

STATEMENTS: dict[str, tuple[str, bool]] = {  # and whether a measurement is asked for
    "total": ("SELECT count(*) FROM t", False),
    "surprise": ("SELECT count(*) FROM t WHERE a = 0 AND b = 0 AND c = 0", False),
    "measured": ("SELECT count(*), sum(c) FROM t WHERE a = 1", True),
    "learnt": ("SELECT a, avg(c) FROM t WHERE b = 1 GROUP BY a", False),
}
SAVED = ("casemate.toml", "parity.csv")


class Life:
    """One process's session, each step of which may be its last."""

    def __init__(self, folder: Path, habit: str, steps: Steps) -> None:
        self.folder, self.steps = folder, steps
        self.session = Session(folder / "casemate.toml")
        dataset = self.session._dataset
        self.doors, self.construction = dataset.doors, dataset.construction
        if habit in MISTAKES:
            MISTAKES[habit](self)
        steps.around(self.doors.ledger, "charge", "record_output")
        steps.around(self.doors.transcript, "run")
        steps.around(self.gate._secrets, "write")
        steps.around(self.gate, "_noise")
        steps.around(self.construction._cells, "_count")
        sources = self.doors.sources
        stepped = map(steps.around_call, (sources.gaussian, sources.laplace))
        object.__setattr__(self.doors, "sources", Sources(*stepped))

    @property
    def gate(self) -> Any:
        return self.construction._gate

    def send(self, key: str, text: str) -> None:
        """What somebody outside has seen, and from which stand-in."""
        stand_in = self.construction.stand_in
        self.steps.send(self.folder, key, text, stand_in.number, digest(stand_in))

    def ask(self, names: Sequence[str]) -> None:
        for name in names:
            sql, measure = STATEMENTS[name]
            answer = self.session.query(sql, measure=measure)
            self.send(name, repr((answer.columns, answer.rows)))
        self.session.close()


def digest(stand_in: StandIn) -> str:
    """The stand-in to the last bit; nothing before there is one."""
    if stand_in.total is None:
        return ""
    everything = stand_in.surrogate.marginal(tuple(range(len(stand_in.shape))))
    return hashlib.sha256(everything.tobytes()).hexdigest()


# Mistakes that a test has to notice -------------------------------------------------------------


def careless(life: Life) -> None:
    """What a transaction appends is sent before it is durable; the first such life dies of it."""
    run = life.doors.transcript.run

    def told(work: Callable[[TranscriptBook], Any]) -> Any:
        def early(book: TranscriptBook) -> Any:
            result = work(book)
            if isinstance(result, TranscriptEntry) and result.kind == "measured":
                first = not (life.folder / "sent").exists()
                life.send(result.key, result.text)
                if first:
                    os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run(early)

    life.doors.transcript.run = told  # type: ignore[method-assign]  # the mistake itself


def forgetful(life: Life) -> None:
    """The threshold's noise ends with the process."""
    life.gate._secrets = MemorySecrets()


def generous(life: Life) -> None:
    """A run of the gate is charged by whoever uses it."""
    for name in ("charge", "record_output"):
        usual = getattr(life.doors.ledger, name)
        object.__setattr__(life.doors.ledger, name, partial(_by_process, usual))


def _by_process(usual: Callable[..., Any], *args: Any, **facts: Any) -> Any:
    def named(key: str) -> str:
        return f"{key} {os.getpid()}" if key.startswith("gate run") else key

    if "key" in facts:
        return usual(*args, **facts | {"key": named(facts["key"])})
    return usual(named(args[0]), *args[1:], **facts)


MISTAKES = {"careless": careless, "forgetful": forgetful, "generous": generous}

# Processes --------------------------------------------------------------------------------------


def live(folder: Path, habit: str, steps: Steps, turned: int = 0) -> None:
    names = list(STATEMENTS)
    Life(folder, habit, steps).ask(names[turned:] + names[:turned])


def warm_up() -> None:
    """Load the compiled kernels once, before anything forks; no file and no engine is opened."""
    rows = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0]])
    room = world(rows, shape=(3, 3, 3), names=("a", "b", "c"), seed=0)
    room.construction().ask(counting({0: [0], 1: [0], 2: [1]}, (3, 3, 3)))


def main(folder: str, habit: str, *numbers: str) -> None:
    where, wanted = Path(folder), [int(number) for number in numbers]
    warm_up()
    if habit == "every":
        every(live, where, [where / name for name in SAVED], *wanted)
    elif habit == "race":
        turns = [i % len(STATEMENTS) for i in range(*wanted)]
        print(json.dumps(race([partial(live, where, "sound", Steps(), i) for i in turns])))
    else:
        print(json.dumps(lives(live, where, habit, wanted)))


if __name__ == "__main__":
    main(*sys.argv[1:])
