"""Everything through which private data of one dataset can leave, held together."""

import secrets as tokens
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from casemate.answer.plan import BudgetPlan
from casemate.doors import (
    Edition,
    EntryKind,
    Gate,
    Law,
    Measured,
    Measurement,
    Opened,
    RunSecrets,
    Sources,
    Transcript,
    opened_key,
)
from casemate.grid import EXACT, PrivateCells, TableQuestion
from casemate.privacy.ledger import Ledger
from casemate.privacy.noise import Noise, discrete_laplace


@dataclass(frozen=True)
class Doorway:
    """The ledger, the transcript and the secret of one dataset, and where noise comes from."""

    ledger: Ledger
    transcript: Transcript
    secrets: RunSecrets
    edition: Edition
    sources: Sources = field(default_factory=Sources)
    noise: Noise = discrete_laplace
    name: Callable[[], str] = tokens.token_hex

    def gate(self, plan: BudgetPlan) -> Gate | None:
        """The gate of a plan that has one."""
        if plan.gate is None:
            return None
        return Gate(
            self.ledger,
            self.transcript,
            self.secrets,
            self.edition,
            calibration=plan.gate.calibration,
            schedule=plan.gate.threshold,
            runs=plan.gate.runs,
            reserve=plan.price_of(plan.surprise_law),
            side=plan.gate.side,
            noise=self.noise,
            name=self.name,
        )

    @cached_property
    def measurement(self) -> Measurement:
        """The door through which noised cells leave."""
        return Measurement(self.ledger, self.transcript, self.edition, self.sources)

    def measure(
        self,
        question: TableQuestion,
        law: Law,
        cells: PrivateCells,
        names: Sequence[str],
        principal: str,
    ) -> Measured:
        """The noised counts of a table."""
        return self.measurement.measure(
            question.text(names),
            lambda: cells.classified(question.classes),
            cells=question.classes.cells,
            law=law,
            principal=principal,
        )

    def opening(self, run: str) -> Opened:
        """What was said when a run of the gate was opened."""
        entry = self.transcript.find(opened_key(run))
        assert entry is not None, "a run that compared was opened"
        content = entry.content
        assert isinstance(content, Opened), "the key of an opening holds one"
        return content

    def vouch(self) -> None:
        """Name in the ledger what each charge bought, where a crash came before that was done.

        Nobody measures a table of the start again once it is in the transcript, so nobody else
        would.
        """
        for entry in self.transcript.of_kinds((EntryKind.TOTAL, EntryKind.MEASURED)):
            content = entry.content
            assert isinstance(content, Measured), "both kinds are measurements"
            if content.law != EXACT and self.ledger.outcome(entry.key) is None:
                self.ledger.record_output(entry.key, str(entry.head).encode())
