"""Doors over stores that a test can keep when the doors themselves are gone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

from casemate.doors import (
    Edition,
    Gate,
    GatePart,
    GateQuestion,
    Measurement,
    MemorySecrets,
    RunSecrets,
    SecretFile,
    Transcript,
    open_transcript,
)
from casemate.doors.transcript import FORM
from casemate.privacy.book import MemoryBook
from casemate.privacy.ledger import Ledger, Terms, open_ledger
from casemate.privacy.ledger.entry import RowKind
from casemate.privacy.ledger.store import LedgerInMemory as LedgerStore
from casemate.privacy.mechanisms import Calibration, Side
from casemate.privacy.noise import Noise, Sources, discrete_laplace
from casemate.privacy.noise.noise import silence

EDITION = Edition("a1b2", "v1")
TENTH = Calibration.of(Fraction(1, 10))
FACTS: dict[str, Any] = {"dataset": "hospital", "policy": "a1b2", "epsilon": Fraction(100)}
PROMISE = {"neighbours": "add-remove", "protects": "person", "delta": Fraction(0)}


@dataclass
class Doorway:
    """A ledger, a transcript and a secret, and doors onto them, made anew as after a restart."""

    ledger: Ledger
    transcript: Transcript
    secrets: RunSecrets
    names: Iterator[int] = field(default_factory=count)

    def gate(self, noise: Noise = silence, **changes: Any) -> Gate:
        options: dict[str, Any] = {
            "calibration": TENTH,
            "schedule": lambda _: 10,
            "runs": 3,
            "name": lambda: f"r{next(self.names)}",
        }
        return Gate(
            self.ledger, self.transcript, self.secrets, EDITION, noise=noise, **(options | changes)
        )

    def measurement(self, laplace: Noise = silence) -> Measurement:
        return Measurement(self.ledger, self.transcript, EDITION, Sources(silence, laplace))

    def close(self) -> None:
        self.ledger.close()
        self.transcript.close()

    @property
    def charges(self) -> list[str]:
        """The keys that were charged, in order."""
        return [entry.key for entry in self.ledger.history() if entry.kind == RowKind.CHARGE]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the entries, in order."""
        return [entry.kind for entry in self.transcript.replay()]


def in_memory(**changes: Any) -> Doorway:
    terms = Terms.of(**(FACTS | PROMISE | changes))
    ledger = Ledger(LedgerStore(), terms, clock=lambda: "2026-01-01T00:00:00+00:00")
    return Doorway(ledger, Transcript(MemoryBook(FORM)), MemorySecrets())


def in_file(folder: Path, **changes: Any) -> Doorway:
    path = folder / "hospital.ledger"
    ledger = open_ledger(path, **(FACTS | changes))
    return Doorway(ledger, open_transcript(path), SecretFile.beside(path))


def asking(text: str, value: int, stand_in: int = 0) -> GateQuestion:
    """A question about one count."""
    return GateQuestion(text, (GatePart((stand_in,)),), lambda: [[value]])


def never(*_: object) -> Any:
    raise AssertionError("nothing may be read here")


def unreadable_question(text: str) -> GateQuestion:
    """A question about one count that nobody may read."""
    return GateQuestion(text, (GatePart((0,)),), never)


def magnitude_gate(doorway: Doorway, noise: Noise, calibration: Calibration, top: int) -> Gate:
    """A gate that makes one comparison a question."""
    return doorway.gate(noise, calibration=calibration, side=Side.MAGNITUDE, schedule=lambda _: top)


def real(bits: Callable[[int], bytes]) -> Noise:
    """The shipped noise on these bits."""
    return lambda scale, size: discrete_laplace(scale, size, bits)
