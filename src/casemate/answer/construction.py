"""Answers a question from the public stand-in, or measures it where the gate finds a surprise.

Source     Source document 003, OnlineIC (section 5.2.2), in the practical form: part of the budget
           on tables before the first question, one gate question for a whole statement, and a
           fresh measurement of a table for each surprise. `casemate.papers.online` has the other.
Guarantee  Only the two doors read the private cells, and each charges the ledger, durably, before
           it draws. Everything else is a function of the transcript, so it costs nothing and a
           restart loses nothing. The same question again is the stored answer.
Order      start (total, tables) -> gate -> easy: the stand-in's answer; hard: measure, learn,
           answer -> the answer itself is durable in the transcript -> send.
Intervals  An easy answer is within what the gate lets pass, `Holds.ALONE`; a measured one within
           the quantile of its own fresh noise, drawn after the gate fired, so that having fired
           does not bias it. Which of the two is decided by the gate, never by their widths.
Public     Where only private values are protected, the number of rows and every table of public
           attributes are known to everybody: they go into the transcript as they are, without
           noise and without a price.
Cost       An easy answer is one look-up in the stand-in and one in the private marginals.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from casemate.answer.budget_plan import BudgetPlan, first_tables
from casemate.answer.intervals import FailureChances, easy_estimates, measured_estimates
from casemate.answer.schedule import GateSchedule, predicted_error, table_for
from casemate.answer.work_limits import require_answerable
from casemate.doors import (
    NUMBER_OF_PEOPLE,
    Answered,
    Doorway,
    Easy,
    Gate,
    GatePart,
    GateQuestion,
    Hard,
    Measured,
    PeopleTotal,
    answered_key,
    on_grid,
)
from casemate.errors import BudgetExhausted, GateClosed, PositivesSpent, RationSpent, Refused
from casemate.grid import (
    Estimate,
    Floats,
    GridQuestion,
    MeasuredTable,
    Origin,
    Outcome,
    PrivateCells,
    Scope,
    TableQuestion,
    all_codes,
    measure_table,
    ratio_residual,
)
from casemate.privacy.noise import EXACT, Law
from casemate.surrogate import Make, StandIn, TypicalErrors, stand_in_for

Progress = Callable[[int, int], None]
"""Told how many of how many tables have been measured."""

EXHAUSTED = (PositivesSpent, BudgetExhausted, RationSpent)


@dataclass(frozen=True)
class AnsweringOptions:
    """How answers are given: their confidence, and what happens when nothing can be checked."""

    confidence: float = 0.95
    ration: int | None = None  # surprises of one principal
    unverified: bool = False  # whether the stand-in goes on alone


DEFAULT_OPTIONS = AnsweringOptions()


class ErrorEstimate(Protocol):
    """What guesses typical errors: `TypicalErrors`, or less where nobody looks at them."""

    def errors(self, asked: GridQuestion) -> Sequence[Floats]:
        """One array for each part, one number for each cell."""
        ...


class OnlineConstruction:
    """Answers questions on the grid of one dataset, for ever.

    `public` lists the attributes of which everything is public, where only private values are
    protected.
    """

    def __init__(
        self,
        plan: BudgetPlan,
        doors: Doorway,
        cells: PrivateCells,
        names: Sequence[str],
        options: AnsweringOptions = DEFAULT_OPTIONS,
        *,
        public: Scope = (),
        make: Make = stand_in_for,
        typical: Callable[..., ErrorEstimate] = TypicalErrors,
    ) -> None:
        self.plan, self.options = plan, options
        self.stand_in = StandIn(names, cells.shape, doors.edition, make)  # as far as it was read
        self._doors, self._cells, self._public = doors, cells, public
        self._gate = gate_of(plan, doors)
        self._guess = typical
        self._guesses: tuple[StandIn, int, ErrorEstimate] | None = None
        self._is_started = False  # whether everything that comes first is in the transcript
        self._gates: dict[str, GateSchedule] = {}  # by run

    @property
    def runs_left(self) -> int:
        """How many surprises the gate can still find: runs to come, and the one that is open."""
        if self._gate is None:
            return 0
        return max(0, self._gate.runs - self._gate.opened) + self._gate.is_open

    # Asking -----------------------------------------------------------------------------------

    def stored_outcome(self, text: str) -> Outcome | None:
        """The answer that was given to a question, if there is one; nothing is read."""
        entry = self._doors.transcript.find(answered_key(text, self._doors.edition))
        if entry is None:
            return None
        content = entry.content
        assert isinstance(content, Answered), "the key of an answer holds an answer"
        return Outcome.from_text(content.answer).again()

    def ask(
        self, asked: GridQuestion, principal: str = "", progress: Progress | None = None
    ) -> Outcome:
        """Answer one question."""
        known = self.stored_outcome(asked.text)
        if known is not None:
            return known
        require_answerable(asked)
        if self.is_public(asked.scope):
            return self.keep(asked.text, self._exact_outcome(asked))
        self.start(principal, progress)
        if self._gate is None:
            return self._from_tables(asked)
        try:
            verdict = self._verdict(self._gate, asked, principal)
            return self.keep(asked.text, self._outcome_of_verdict(asked, verdict, principal))
        except EXHAUSTED as reason:
            if not self.options.unverified:
                raise self._refusal(reason) from None
            return self._unverified_outcome(asked)

    def is_public(self, scope: Collection[int]) -> bool:
        """Whether everybody knows all about these attributes: then answers are exact and free."""
        return self.plan.relation.counted and set(scope) <= set(self._public)

    def _refusal(self, reason: Refused) -> Refused:
        """The reason, with what is left where the gate itself is closed."""
        if not isinstance(reason, PositivesSpent):
            return reason
        return GateClosed(reason.positives, self._doors.ledger.remaining(), self.plan.currency)

    def at_most(self, measured: bool) -> Fraction:
        """What one more question costs at most, in the ledger's currency; nothing is read."""
        self.stand_in.catch_up(self._doors.transcript)
        plan = self.plan
        if plan.answer is not None or (measured and plan.gate is not None):
            return self.measuring_price
        missing = self.stand_in.missing(self._first_tables())
        noised = [each for each in missing if not self.is_public(each.classes.scope)]
        start = len(noised) * plan.price_of(plan.start_law)
        if self.stand_in.total is None:
            start += plan.price_of(plan.total_law)
        if self._gate is None:
            return start + (self.measuring_price if measured else 0)
        run = Fraction(0) if self._gate.is_open else plan.run_price
        return start + run + plan.price_of(plan.surprise_law)

    @property
    def measuring_price(self) -> Fraction:
        """What a measurement that somebody asks for costs: as much as one of a surprise."""
        if self.plan.answer is not None:
            return self.plan.answer
        return self.plan.price_of(self.plan.surprise_law or self.plan.start_law)

    def _verdict(self, gate: Gate, asked: GridQuestion, principal: str) -> Easy:
        verdict = gate.find_answer(asked.text)
        if verdict is not None:
            return verdict
        ration = self.options.ration
        if ration is not None and self.stand_in.surprises[principal] >= ration:
            raise RationSpent(ration)
        return gate.ask(self._question(asked), principal)

    def _question(self, asked: GridQuestion) -> GateQuestion:
        """The stand-in's answers on the grid, to be compared with the private cells."""
        parts = tuple(
            GatePart(on_grid(values), part.sensitivity(self.plan.relation))
            for part, values in zip(asked.parts, _answers(self.stand_in, asked), strict=True)
        )

        return GateQuestion(
            asked.text, parts, lambda: self._cells.exact(asked), self.stand_in.number
        )

    def _outcome_of_verdict(self, asked: GridQuestion, verdict: Easy, principal: str) -> Outcome:
        """What the gate's verdict leads to, from the stand-in that it was given about."""
        if isinstance(verdict, Hard):
            return self._measure_surprise(asked, verdict, principal)
        judged = self.stand_in.at(verdict.after, self._doors.transcript)
        estimates = easy_estimates(
            asked,
            _answers(judged, asked),
            self._errors(judged, asked),
            gate=self._schedule_of_run(verdict),
            at=verdict.at,
            relation=self.plan.relation,
            confidence=self.options.confidence,
        )
        return self._with_ratios(asked, Outcome(estimates, Origin.SURROGATE), judged)

    def _schedule_of_run(self, verdict: Easy) -> GateSchedule:
        """The gate that gave a verdict: the policy may have been changed since."""
        if verdict.run not in self._gates:
            gate, opened = self.plan.gate, self._doors.opening(verdict.run)
            assert gate is not None, "a verdict comes from a gate"
            noise = replace(
                gate.calibration, threshold=opened.threshold_scale, query=opened.query_scale
            )
            self._gates[verdict.run] = replace(gate, calibration=noise)
        return self._gates[verdict.run]

    # Surprises --------------------------------------------------------------------------------

    def _measure_surprise(self, asked: GridQuestion, verdict: Hard, principal: str) -> Outcome:
        """Measure the table that answers the question best, and learn from it."""
        law, relation = self.plan.surprise_law, self.plan.relation
        assert law is not None, "a plan with a gate measures what the gate finds"
        shape = self._cells.shape
        classes = table_for(asked, shape, law, relation, verdict.threshold)
        digest = hashlib.sha256(asked.text.encode()).hexdigest()
        question = TableQuestion(classes, about=digest)
        self._measure(question, law, principal)
        self.stand_in.catch_up(self._doors.transcript)
        table = next(each for each in self.stand_in.tables if each.question == question)
        ordinal = self.stand_in.fresh[question.text(self.stand_in.names)]
        return self._read(asked, table, FailureChances.of(asked, self.options.confidence, ordinal))

    def _read(self, asked: GridQuestion, table: MeasuredTable, level: FailureChances) -> Outcome:
        values, errors = _answers(self.stand_in, asked), self._errors(self.stand_in, asked)
        estimates = measured_estimates(asked, table, values, errors, level)
        return self._with_ratios(asked, Outcome(estimates, Origin.MEASURED), self.stand_in)

    def _with_ratios(self, asked: GridQuestion, outcome: Outcome, stand_in: StandIn) -> Outcome:
        """The same, with the typical errors of sums around what they will be divided to."""
        parts = list(outcome.parts)
        for above, below in asked.ratios:
            pairs = zip(parts[above], parts[below], strict=True)
            ratios = [total.value / max(count.value, 1.0) for total, count in pairs]
            off = ratio_residual(asked.parts[above], asked.parts[below], ratios)
            (errors,) = self._errors(stand_in, GridQuestion((off,)))
            parts[above] = tuple(
                replace(each, ratio_error=float(error))
                for each, error in zip(parts[above], errors, strict=True)
            )
        return replace(outcome, parts=tuple(parts))

    # Without the gate -------------------------------------------------------------------------

    def _from_tables(self, asked: GridQuestion) -> Outcome:
        """From the measured table that answers the question by itself with the least noise."""
        able = [table for table in self.stand_in.tables if table.question.classes.answers(asked)]
        if not able:
            return self._unverified_outcome(asked)
        relation = self.plan.relation
        best = min(
            able,
            key=lambda table: predicted_error(asked, table.question.classes, table.law, relation),
        )
        return self._read(asked, best, FailureChances.of(asked, self.options.confidence, 1))

    def _unverified_outcome(self, asked: GridQuestion) -> Outcome:
        errors = self._errors(self.stand_in, asked)
        parts = (
            tuple(
                Estimate(value, error=error)
                for value, error in zip(found.tolist(), typical.tolist(), strict=True)
            )
            for found, typical in zip(_answers(self.stand_in, asked), errors, strict=True)
        )
        outcome = Outcome(tuple(parts), Origin.UNVERIFIED)
        return self._with_ratios(asked, outcome, self.stand_in)

    def _exact_outcome(self, asked: GridQuestion) -> Outcome:
        """What everybody knows, where only private values are protected."""
        parts = ([float(cell) for cell in part] for part in self._cells.exact(asked))
        exact = (tuple(Estimate(n, n, n, 0.0, n, n) for n in numbers) for numbers in parts)
        return Outcome(tuple(exact), Origin.MEASURED)

    # The start --------------------------------------------------------------------------------

    def start(self, principal: str = "", progress: Progress | None = None) -> None:
        """Measure the number of people and the first tables, those that are still missing."""
        self.stand_in.catch_up(self._doors.transcript)
        if self._is_started:
            return
        self._doors.vouch()
        if self.stand_in.total is None:
            self._count_people(principal)
        wanted = self.stand_in.missing(self._first_tables())
        for done, question in enumerate(wanted):
            self._tabulate(question, principal)
            if progress is not None:
                progress(done + 1, len(wanted))
        self.stand_in.catch_up(self._doors.transcript)
        self._is_started = True

    def _first_tables(self) -> list[TableQuestion]:
        """Every table of the start: what everybody knows first."""
        shape, public = self._cells.shape, self._public
        known = first_tables(tuple(shape[a] for a in public), len(public))
        scopes = [tuple(public[place] for place in scope) for scope in known]
        scopes += [scope for scope in self.plan.start if not self.is_public(scope)]
        return [TableQuestion(all_codes(scope, shape), start=True) for scope in scopes]

    def _count_people(self, principal: str) -> None:
        law, edition = self.plan.total_law, self._doors.edition
        if law is not None:
            self._doors.measurement.total(self._cells.total, law=law, principal=principal)
            return
        facts = (NUMBER_OF_PEOPLE, edition.policy, edition.data, EXACT, Fraction(0))
        self._doors.transcript.append(PeopleTotal(*facts, (self._cells.total(),)))

    def _tabulate(self, question: TableQuestion, principal: str) -> None:
        """One table: as it is where everybody knows it, with noise elsewhere."""
        if not self.is_public(question.classes.scope):
            assert self.plan.start_law is not None, "a plan with tables has noise for them"
            self._measure(question, self.plan.start_law, principal)
            return
        edition, text = self._doors.edition, question.text(self.stand_in.names)
        values = tuple(self._cells.class_counts(question.classes))
        content = Measured(text, edition.policy, edition.data, EXACT, Fraction(0), values)
        self._doors.transcript.append(content)

    def _measure(self, question: TableQuestion, law: Law, principal: str) -> None:
        door, names = self._doors.measurement, self.stand_in.names
        measure_table(door, question, self._cells, names, law=law, principal=principal)

    # What is kept -----------------------------------------------------------------------------

    def keep(self, text: str, outcome: Outcome) -> Outcome:
        """Make an answer durable, and return the one that is: the first."""
        edition = self._doors.edition
        outcome = replace(outcome, confidence=self.options.confidence)
        content = Answered(text, edition.policy, edition.data, outcome.to_text())
        stored = self._doors.transcript.append(content).content
        assert isinstance(stored, Answered), "the key of an answer holds an answer"
        if stored == content:
            return outcome
        return Outcome.from_text(stored.answer)  # another process was first

    def _errors(self, stand_in: StandIn, asked: GridQuestion) -> Sequence[Floats]:
        """Typical errors, estimated anew when the stand-in has learnt something."""
        held = self._guesses
        if held is None or held[0] is not stand_in or held[1] != stand_in.number:
            typical = self._guess(
                stand_in.surrogate, stand_in.measurements, stand_in.total_variance
            )
            self._guesses = held = (stand_in, stand_in.number, typical)
        return held[2].errors(asked)


def _answers(stand_in: StandIn, asked: GridQuestion) -> list[Floats]:
    """The stand-in's answers to each part, in units."""
    surrogate, found = stand_in.surrogate, []
    for part in asked.parts:
        products = part.products
        alone = len(products) == 1  # the usual question, and the quick way
        values = [surrogate.answer(products[0])] if alone else surrogate.answers(products)
        found.append(part.sum_by_cell(values))
    return found


def gate_of(plan: BudgetPlan, doors: Doorway) -> Gate | None:
    """The gate of a plan that has one."""
    if plan.gate is None:
        return None
    return Gate(
        doors.ledger,
        doors.transcript,
        doors.secrets,
        doors.edition,
        calibration=plan.gate.calibration,
        schedule=plan.gate.threshold,
        runs=plan.gate.runs,
        reserve=plan.price_of(plan.surprise_law),
        side=plan.gate.side,
        noise=doors.noise,
        name=doors.name,
    )
