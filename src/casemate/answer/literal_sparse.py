"""NumericSparse made of the two doors, so that what it lets out is paid for and outlives a crash.

Source     NumericSparse, on which OnlineIC of source document 003 stands, with the noise of
           Theorem 5.13 for delta = 0 and delta > 0.
Guarantee  A run is charged when it opens, a number before it is drawn; a run opens only if its
           number could be paid as well.
Departure  The number is of the question itself and not of its deviation, which is public otherwise;
           `test_it_is_numeric_sparse` shows that both are one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from casemate.answer.literal_setting import Setting
from casemate.answer.theorems import Terms
from casemate.doors.entry import Easy, Edition, Measured
from casemate.doors.gate import Gate
from casemate.doors.gate_state import MemorySecrets, Secrets
from casemate.doors.law import LaplaceLaw, Sources
from casemate.doors.measurement import Measurement
from casemate.doors.question import Part, Question, on_grid
from casemate.doors.transcript import Transcript, open_transcript
from casemate.errors import BudgetExhausted, Refused
from casemate.privacy.cost import Pure, price
from casemate.privacy.ledger import IN_MEMORY, Ledger, open_ledger
from casemate.privacy.noise import Noise, discrete_laplace

Exact = Callable[[], int]
"""Reads the exact value of a question, on behalf of a door."""


@dataclass(frozen=True)
class Records:
    """Where it stands what was paid and what left, and the open run's secret."""

    ledger: Ledger
    transcript: Transcript
    secrets: Secrets
    edition: Edition

    @classmethod
    def in_memory(cls, terms: Terms) -> Self:
        """Records that end with the process: for simulations, which promise nothing."""
        ledger = open_ledger(
            IN_MEMORY,
            dataset="simulation",
            policy="",
            epsilon=Fraction(terms.epsilon),
            delta=Fraction(terms.delta),
            neighbours="replace",
        )
        return cls(ledger, open_transcript(IN_MEMORY), MemorySecrets(), Edition("", "simulation"))


class DurableNumericSparse:
    """Compares deviations with 2 alpha until c of them have fired, and numbers those that do."""

    def __init__(self, setting: Setting, records: Records, noise: Noise | None) -> None:
        if noise is not None and not isinstance(records.secrets, MemorySecrets):
            raise Refused(
                "noise that the caller chose protects nobody, so it is not drawn for a table whose "
                "records outlive the process; leave it out, or simulate with Records.in_memory"
            )
        self.law = LaplaceLaw(setting.noise.answer)
        self._positives = setting.updates
        self._ledger, self._transcript = records.ledger, records.transcript
        self._secrets = records.secrets
        self._prices = self._price(setting.noise.run.cost), self._price(self.law.cost)
        drawn = noise or discrete_laplace
        self._gate = Gate(
            records.ledger,
            records.transcript,
            records.secrets,
            records.edition,
            calibration=setting.noise.run,
            schedule=lambda _: setting.threshold,
            runs=setting.updates,
            reserve=self._prices[1],
            noise=drawn,
        )
        self._door = Measurement(
            records.ledger, records.transcript, records.edition, Sources(laplace=drawn)
        )

    def compare(self, question: str, believed: float, exact: Exact) -> Easy:
        """Ask both halves of a question: f - f(H), and unless that fires f(H) - f.

        Raises PositivesSpent, and reads nothing, when c have fired already.
        """
        newest = self._transcript.newest()
        after = -1 if newest is None else newest.number
        part = Part(on_grid([believed]))
        return self._gate.ask(Question(question, (part,), lambda: [[exact()]], after))

    def measure(self, question: str, exact: Exact) -> Measured:
        """Draw the number of a question that fired, once."""
        return self._door.measure(question, lambda: [exact()], cells=1, law=self.law)

    def require_budget(self, measured: int, owed: int) -> None:
        """Refuse to go on if not all c runs and numbers could be paid.

        So many were measured and so many are owed. What was owed, or was opened and is not in the
        transcript yet, when the process ended may have been paid: the doors know.
        """
        run, number = self._prices
        runs = self._positives - self._gate.opened - self._opening()
        needed = runs * run + (self._positives - measured - owed) * number
        left = self._ledger.remaining()
        if needed > left:
            raise BudgetExhausted(needed, left, self._ledger.terms.currency)

    def _opening(self) -> bool:
        """Whether a run has a name and is not in the transcript yet."""
        secret = self._secrets.read()
        return secret is not None and self._transcript.latest(secret.run) is None

    def _price(self, cost: Pure) -> Fraction:
        found = price(cost, self._ledger.terms.currency)
        assert found is not None, "a pure cost has a price in every currency"
        return found
