"""What is measured before the first question: the number of people, and the first tables.

Where only private values are protected, the number of rows and every table of public attributes are
known to everybody: they go into the transcript as they are, without noise and without a price.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from casemate.answer.plan import BudgetPlan, first_tables
from casemate.doors import NUMBER_OF_PEOPLE, Doorway, Measured, PeopleTotal
from casemate.grid import PrivateCells, Scope, TableQuestion, all_codes, measure_table
from casemate.privacy.noise import EXACT
from casemate.surrogate import StandIn

Progress = Callable[[int, int], None]
"""Told how many of how many tables have been measured."""


@dataclass(frozen=True)
class Beginning:
    """The start of a plan; `public` are the attributes of which everything is known."""

    plan: BudgetPlan
    doors: Doorway
    cells: PrivateCells
    public: Scope = ()

    def questions(self) -> list[TableQuestion]:
        """Every table of the start: what everybody knows first."""
        shape = self.cells.shape
        known = first_tables(tuple(shape[a] for a in self.public), len(self.public))
        scopes = [tuple(self.public[place] for place in scope) for scope in known]
        scopes += [scope for scope in self.plan.start if not self.is_public(scope)]
        return [TableQuestion(all_codes(scope, shape), start=True) for scope in scopes]

    def measure(self, stand_in: StandIn, principal: str, progress: Progress | None) -> None:
        """Measure what the stand-in does not know yet."""
        if stand_in.total is None:
            self._count(principal)
        wanted = stand_in.missing(self.questions())
        for done, question in enumerate(wanted):
            self._tabulate(question, stand_in, principal)
            if progress is not None:
                progress(done + 1, len(wanted))

    def is_public(self, scope: Scope) -> bool:
        """Whether everybody knows all about these attributes."""
        return set(scope) <= set(self.public)

    def _count(self, principal: str) -> None:
        law, edition = self.plan.total_law, self.doors.edition
        if law is not None:
            self.doors.measurement.total(self.cells.total, law=law, principal=principal)
            return
        facts = (NUMBER_OF_PEOPLE, edition.policy, edition.data, EXACT, Fraction(0))
        self.doors.transcript.append(PeopleTotal(*facts, (self.cells.total(),)))

    def _tabulate(self, question: TableQuestion, stand_in: StandIn, principal: str) -> None:
        """One table: as it is where everybody knows it, with noise elsewhere."""
        if not self.is_public(question.classes.scope):
            assert self.plan.start_law is not None, "a plan with tables has noise for them"
            law = self.plan.start_law
            door, names = self.doors.measurement, stand_in.names
            measure_table(door, question, self.cells, names, law=law, principal=principal)
            return
        edition, text = self.doors.edition, question.text(stand_in.names)
        values = tuple(self.cells.classified(question.classes))
        content = Measured(text, edition.policy, edition.data, EXACT, Fraction(0), values)
        self.doors.transcript.append(content)
