"""Answers a question from the public stand-in, or measures it where the gate finds a surprise.

Source     Source document 003, OnlineIC (section 5.2.2), in the practical form: part of the budget
           on tables before the first question, one gate question for a whole statement, and a
           fresh measurement of a table for each surprise. `casemate.papers.online` has the other.
Guarantee  Only the two doors read the private cells, and each charges the ledger, durably, before
           it draws. Everything else is a function of the transcript, so it costs nothing and a
           restart loses nothing. The same question again is the stored answer.
Order      start (total, tables) -> what tables prove, from them; else gate -> easy: the stand-in's
           answer; hard: measure, learn, answer -> the answer itself is durable in the transcript
           -> send.
Tables     What the tables of the start prove by themselves is answered from them: the gate is not
           asked, nothing is charged, and it can be no surprise. Which questions those are is
           public. Only tables of the start are pooled: a later one was chosen after answers.
Declared   A question that was recorded before anything was measured is proven by itself, at the
           whole chance, where tables answer it; for a session it is like all others.
Intervals  An easy answer is within what the gate lets pass; a measured one within the
           quantile of its own fresh noise, drawn after the gate fired, so that having fired
           does not bias it. Which of the two is decided by the gate, never by their widths.
Public     Where only private values are protected, the number of rows and every table of public
           attributes are known to everybody: they go into the transcript as they are, without
           noise and without a price.
Cost       An easy answer is one look-up in the stand-in and one in the private marginals.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np

from casemate.answer.answer import stored_outcome
from casemate.answer.budget_plan import BudgetPlan, first_tables
from casemate.answer.declaration import declared_texts
from casemate.answer.intervals import (
    MIXED_TABLES,
    SESSION_TABLES,
    FailureChances,
    Numbers,
    chances_alone,
    easy_estimates,
    measured_estimates,
    mixed_estimates,
    nowhere_wider,
    numbers_alone,
    numbers_by_tables,
    reach_of_gate,
    table_estimates,
    tables_say_anything,
)
from casemate.answer.question_family import QuestionFamily
from casemate.answer.schedule import GateSchedule, table_for
from casemate.answer.table_proofs import ProvenMean, SumEffects, TableProofs
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
    on_grid,
)
from casemate.errors import BudgetExhausted, GateClosed, PositivesSpent, RationSpent, Refused
from casemate.grid import (
    CentredSums,
    DeclaredSums,
    Effects,
    Estimate,
    Floats,
    GridQuestion,
    MeasuredTable,
    Origin,
    Outcome,
    PrivateCells,
    Product,
    ProofSource,
    Ratio,
    Scope,
    TableQuestion,
    all_codes,
    measure_table,
    ratio_residual,
)
from casemate.privacy.mechanisms import Calibration, Side
from casemate.privacy.noise import EXACT, GaussianLaw, Law
from casemate.surrogate import KeptFit, Make, StandIn, TypicalErrors, stand_in_for

ProveRatio = Callable[[Product, Product, float], ProvenMean | None]
"""Proves a quotient of two sums over cells, at a chance to fail."""

Progress = Callable[[int, int], None]
"""Told how many of how many tables have been measured; after all of them the stand-in is fitted."""

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
    protected, `declared` what codes are worth in sums, as the policy declares it, and `sums` has
    the tables of sums that a plan may measure, each with how its exact cells are read.
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
        declared: Mapping[int, DeclaredSums] | None = None,
        sums: Mapping[CentredSums, Callable[[], list[int]]] | None = None,
        make: Make = stand_in_for,
        kept: KeptFit | None = None,
        typical: Callable[..., ErrorEstimate] = TypicalErrors,
    ) -> None:
        self.plan, self.options = plan, options
        self.stand_in = StandIn(names, cells.shape, doors.edition, make, kept)  # as far as read
        self._doors, self._cells, self._public = doors, cells, public
        self._gate = gate_of(plan, doors)
        self._guess = typical
        self._guesses: tuple[StandIn, int, ErrorEstimate] | None = None
        self._is_started = False  # whether everything that comes first is in the transcript
        self._gates: dict[str, GateSchedule] = {}  # by run
        scopes = tuple(each.classes.scope for each in self._first_tables())
        self._declared, self._sums = declared or {}, sums or {}
        weights = {place: each.weights for place, each in self._declared.items()}
        self._family = QuestionFamily(cells.shape, scopes, weights)
        self._named_before = frozenset[str]()  # questions, as a start finds them in the transcript
        self._proofs: tuple[bool, TableProofs] | None = None  # of a start that was measured, or not

    @property
    def runs_left(self) -> int:
        """How many surprises the gate can still find: runs to come, and the one that is open."""
        if self._gate is None:
            return 0
        return max(0, self._gate.runs - self._gate.opened) + self._gate.is_open

    # Asking -----------------------------------------------------------------------------------

    def stored_outcome(self, text: str) -> Outcome | None:
        """The answer that was given to a question, if there is one; nothing is read."""
        return stored_outcome(self._doors, text)

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
        if self._is_proven_by_tables(asked):
            return self.keep(asked.text, self._outcome_of_tables(asked))
        if self._gate is None:
            return self._unverified_outcome(asked)
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

    def at_most(self, measured: bool, asked: GridQuestion | None = None) -> Fraction:
        """What one more question costs at most, in the ledger's currency; nothing is read."""
        plan = self.plan
        if plan.answer is not None or (measured and plan.gate is not None):
            return self.measuring_price
        start = self.start_due
        if self._gate is None:
            return start + (self.measuring_price if measured else 0)
        if asked is not None and not measured and self._is_proven_by_tables(asked):
            return start
        run = Fraction(0) if self._gate.is_open else plan.run_price
        return start + run + plan.price_of(plan.surprise_law)

    @property
    def start_due(self) -> Fraction:
        """What is still to be paid for everything that comes before the first question."""
        self.stand_in.catch_up(self._doors.transcript)
        missing, plan = self.stand_in.missing(self._first_tables()), self.plan
        noised = [each for each in missing if not self.is_public(each.classes.scope)]
        due = len(noised) * plan.price_of(plan.start_law)
        due += sum(self._missing_sums().values())
        if self.stand_in.total is None:
            due += plan.price_of(plan.total_law)
        return due

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
        chance, proofs = self._chance, self._table_proofs()
        mixed = tables_say_anything(asked, proofs)
        estimates = easy_estimates(
            asked,
            _answers(judged, asked),
            self._errors(judged, asked),
            gate=self._schedule_of_run(verdict),
            at=verdict.at,
            relation=self.plan.relation,
            confidence=1 - chance * (1 - MIXED_TABLES if mixed else 1),
            session_of=self.options.confidence,
        )
        if mixed:
            estimates = mixed_estimates(
                asked, estimates, proofs, chance * MIXED_TABLES, chance * SESSION_TABLES
            )
        share = chance * MIXED_TABLES if mixed else 0.0
        return self._with_ratios(asked, Outcome(estimates, Origin.SURROGATE), judged, share)

    def _schedule_of_run(self, verdict: Easy) -> GateSchedule:
        """The gate that gave a verdict: the policy may have been changed since."""
        if verdict.run not in self._gates:
            gate, opened = self.plan.gate, self._doors.opening(verdict.run)
            assert gate is not None, "a verdict comes from a gate"
            scales = opened.threshold_scale, opened.query_scale
            noise = Calibration(*scales, sensitivity=opened.units, one_sided=opened.one_sided)
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

    def _with_ratios(
        self, asked: GridQuestion, outcome: Outcome, stand_in: StandIn, chance: float = 0.0
    ) -> Outcome:
        """The same, with the typical errors of sums around what they will be divided to.

        With a `chance` to fail also with what tables prove of the quotient.
        """
        parts = list(outcome.parts)
        for above, below in asked.ratios:
            pairs = zip(parts[above], parts[below], strict=True)
            ratios = [total.value / max(count.value, 1.0) for total, count in pairs]
            off = ratio_residual(asked.parts[above], asked.parts[below], ratios)
            (errors,) = self._errors(stand_in, GridQuestion((off,)))
            proofs = self._table_proofs()
            mean = partial(proofs.mean, alone=outcome.declared)
            proven = self._proven_ratios(asked, (above, below), chance, (mean, proofs.mean))
            parts[above] = tuple(
                replace(each, ratio_error=float(error), ratio=ends)
                for each, error, ends in zip(parts[above], errors, proven, strict=True)
            )
        for above, below in asked.shares:
            proofs = self._table_proofs()
            share = partial(proofs.share, alone=outcome.declared)
            proven = self._proven_ratios(asked, (above, below), chance, (share, proofs.share))
            cells = zip(parts[above], proven, strict=True)
            parts[above] = tuple(replace(each, ratio=ends or each.ratio) for each, ends in cells)
        return replace(outcome, parts=tuple(parts))

    def _proven_ratios(
        self,
        asked: GridQuestion,
        divided: tuple[int, int],
        chance: float,
        prove: tuple[ProveRatio, ProveRatio],
    ) -> list[Ratio | None]:
        """What tables prove of each quotient, at a chance and for all of a session.

        `prove` proves it for this answer and for the session.
        """
        above, below = (asked.parts[place] for place in divided)
        found: list[Ratio | None] = [None] * len(above.cells)
        for place, (sums, counts) in enumerate(zip(above.cells, below.cells, strict=True)):
            if not chance or len(sums) != 1 or len(counts) != 1:
                continue
            chances = (chance, self._chance * SESSION_TABLES)
            both = zip(prove, chances, strict=True)
            answer, session = (one(sums[0], counts[0], each) for one, each in both)
            if answer is not None and session is not None:
                found[place] = (answer.ends, session.ends, (answer.value, answer.error))
        return found

    # What tables prove --------------------------------------------------------------------------

    @property
    def _chance(self) -> float:
        """Of a proof to fail."""
        return 1 - self.options.confidence

    def _table_proofs(self) -> TableProofs:
        """The proofs of the start, or before it was measured those that it will lead to."""
        if self._proofs is None or self._proofs[0] is not self._is_started:
            tables = self._start_tables() if self._is_started else self._planned_tables()
            shape = self._cells.shape
            effects = Effects(shape, tuple(tables))
            proofs = TableProofs(self._family, effects, self._declared, self._measured_sums())
            self._proofs = (self._is_started, proofs)
        return self._proofs[1]

    def _start_tables(self) -> list[MeasuredTable]:
        """What was measured before the first question, the number of people among it."""
        wanted = {each.classes for each in self._first_tables()}
        found = [each for each in self.stand_in.tables if each.question.start]
        total = self.stand_in.total
        assert total is not None, "a start counts the people first"
        people = MeasuredTable.of(self._people_question, total)
        return [people, *(each for each in found if each.question.classes in wanted)]

    def _measured_sums(self) -> dict[int, SumEffects]:
        """What was measured of sums, by the attribute that is added up."""
        shape, found = self._cells.shape, dict[int, list[MeasuredTable]]()
        for table in self._sums:
            content = self.stand_in.sums.get(table.text())
            if content is not None:
                question = TableQuestion(all_codes((table.by,), shape), start=True)
                found.setdefault(table.value, []).append(MeasuredTable.of(question, content))
        parts = {table.value: table for table in self._sums}
        return {
            value: SumEffects(
                Effects(shape, tuple(several)), parts[value].part.unit, parts[value].rounding
            )
            for value, several in found.items()
        }

    def _planned_tables(self) -> list[MeasuredTable]:
        """Tables of nothing, with the noise of those that will be measured: widths are the same."""
        questions = [self._people_question, *self._first_tables()]
        laws = [self.plan.total_law, *(self._law_of(each) for each in questions[1:])]
        return [
            MeasuredTable(each, np.zeros(each.classes.sizes), law)
            for each, law in zip(questions, laws, strict=True)
        ]

    @property
    def _people_question(self) -> TableQuestion:
        return TableQuestion(all_codes((), self._cells.shape), start=True)

    def _law_of(self, question: TableQuestion) -> Law | None:
        return None if self.is_public(question.classes.scope) else self.plan.start_law

    def _is_proven_by_tables(self, asked: GridQuestion) -> bool:
        """Whether tables prove every number, and no wider than the gate would: a public fact."""
        proven, _ = self._numbers(asked, self._chance)
        reach: Sequence[float] = [math.inf] * len(proven)
        if self.plan.gate is not None:
            reach = reach_of_gate(asked, self.plan.gate, self.plan.relation)
        return all(
            number is not None and number.width <= most
            for part, most in zip(proven, reach, strict=True)
            for number in part
        )

    def guesses(self, asked: GridQuestion) -> list[Floats] | None:
        """The stand-in's answers, in units; None before the number of people has left."""
        self.stand_in.catch_up(self._doors.transcript)
        if self.stand_in.total is None:
            return None
        require_answerable(asked)
        return _answers(self.stand_in, asked)

    def proven_by_tables(self, asked: GridQuestion, share: float) -> Outcome | None:
        """What a start that is measured proves with a share of the chance; it is not kept."""
        self.stand_in.catch_up(self._doors.transcript)
        tables = self.stand_in.missing(self._first_tables())
        if self.stand_in.total is None or tables or self._missing_sums():
            return None
        require_answerable(asked)
        self.start()  # there is nothing left to measure
        return self._outcome_of_tables(asked, share) if self._is_proven_by_tables(asked) else None

    def widths_by_tables(self, asked: GridQuestion) -> Outcome:
        """An outcome as wide as tables prove it, far enough from zero that no bound is cut."""
        widths = [
            [0.0 if number is None else number.width for number in part]
            for part in numbers_by_tables(asked, self._table_proofs(), self._chance)
        ]
        parts = (tuple(Estimate(each, 0.0, 2 * each) for each in part) for part in widths)
        return Outcome(tuple(parts), Origin.SURROGATE)

    def _numbers(self, asked: GridQuestion, chance: float) -> tuple[Numbers, bool]:
        """What tables prove of each number, and whether of each by itself, as it was declared.

        All of an answer is proven in one of the two ways; which one is a public fact.
        """
        proofs = self._table_proofs()
        together = numbers_by_tables(asked, proofs, chance)
        if asked.text not in self._named_before:
            return together, False
        alone = numbers_alone(asked, proofs, chance)
        return (alone, True) if nowhere_wider(alone, together) else (together, False)

    def _outcome_of_tables(self, asked: GridQuestion, share: float = 1.0) -> Outcome:
        proofs, stand_in, chance = self._table_proofs(), self.stand_in, self._chance * share
        proven, alone = self._numbers(asked, chance)
        estimates = table_estimates(
            asked,
            proven,
            numbers_by_tables(asked, proofs, self._chance * SESSION_TABLES),
            _answers(stand_in, asked),
            self._errors(stand_in, asked),
        )
        origin = Origin.MEASURED if self._gate is None else Origin.SURROGATE
        chance = chances_alone(asked, chance)[1] if alone else chance
        return self._with_ratios(
            asked, Outcome(estimates, origin, declared=alone), stand_in, chance
        )

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
        exact = (
            tuple(Estimate(n, n, n, 0.0, n, n, proof=ProofSource.NOISE) for n in numbers)
            for numbers in parts
        )
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
            if progress is not None:
                progress(done, len(wanted))
            self._tabulate(question, principal)
        for table, amount in self._missing_sums().items():
            self._doors.measurement.measure(
                table.text(),
                self._sums[table],
                cells=table.cells,
                law=GaussianLaw.within(amount, table.sensitivity.squared),
                principal=principal,
            )
        if progress is not None:
            progress(len(wanted), len(wanted))
        self.stand_in.catch_up(self._doors.transcript)
        self._named_before = declared_texts(self._doors, self.stand_in.began)
        self._is_started = True

    def _missing_sums(self) -> dict[CentredSums, Fraction]:
        """The tables of sums that the plan has and nobody measured, and what each costs."""
        priced = zip(self._sums, self.plan.sums, strict=bool(self.plan.sums))
        return {each: cost for each, cost in priced if each.text() not in self.stand_in.sums}

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
        self._doors.ready()
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
        side=Side.MAGNITUDE,
        noise=doors.noise,
        name=doors.name,
        ready=doors.ready,
    )
