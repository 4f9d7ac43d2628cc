"""The gate: a sparse vector that says whether a stand-in is good enough, and is paid by surprises.

Source     NumericSparse inside OnlineIC of source document 003, in the form of `GapSparseVector`:
           one run a surprise, the gap read for free.
Guarantee  A run costs `calibration.epsilon` (half its square in zCDP), charged durably before its
           first comparison, whether or not it fires. It halts at its first positive answer. The
           noise on its threshold is drawn once and outlives the process; comparisons of a run are
           made one at a time, by one lock over threads and processes.
Order      name the run (secret file) -> charge it -> draw its threshold (secret file) -> `opened`
           -> compare and append `easy` or `hard` in one transaction -> send. After `hard` the
           ledger stores the head of that entry as the output of the run's charge, and the secret
           is wiped.
Crashes    Between any two steps: the name finds the charge again, so nothing is paid twice; a
           threshold that was drawn is used again, so nothing is free; a comparison without an
           entry never left, so it is made again; an entry is returned as it is.
Rewound    A secret whose run the transcript or the ledger knows as ended is wiped, and one that was
           put back from before its threshold was drawn is given up: a new run is charged. A run
           that the ledger knows as ended and the transcript does not know means that the
           transcript was cut, and nothing leaves.
Departure  The source compares one number, we the largest of a statement's scaled deviations. The
           threshold of question i is a public function of i that may grow for ever, since the
           number of questions is not known.
"""

import secrets as tokens
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from casemate.doors.entry import (
    ENDS_A_RUN,
    Closed,
    Easy,
    Edition,
    Entry,
    Hard,
    Kind,
    Opened,
    asked_key,
)
from casemate.doors.gate_state import RunSecret, Secrets
from casemate.doors.measurement import cut_off
from casemate.doors.question import Deviation, Question
from casemate.doors.transcript import Transcript, write_once
from casemate.doors.transcript_store import Book
from casemate.errors import BudgetExhausted, PositivesSpent
from casemate.privacy.cost import price
from casemate.privacy.ledger import Ledger
from casemate.privacy.noise import Noise, discrete_laplace
from casemate.privacy.sparse_vector import AboveThreshold, Positive, Side
from casemate.privacy.sparse_vector_calibration import Calibration
from casemate.privacy.sparse_vector_state import RunState

Schedule = Callable[[int], int]
"""The public threshold of question 1, 2, 3, …, in units of the deviation."""


class Gate:
    """The door that lets nothing out but "easy", or a sign and a gap.

    With `side` EITHER a question is two comparisons and a surprise has a sign; with MAGNITUDE it is
    one, without. At most `runs` runs are opened, and one only if `reserve` is left after it, in the
    ledger's currency: what measuring its surprise will cost. `name` gives each run a name that was
    never given before.
    """

    def __init__(
        self,
        ledger: Ledger,
        transcript: Transcript,
        secrets: Secrets,
        edition: Edition,
        *,
        calibration: Calibration,
        schedule: Schedule,
        runs: int,
        reserve: Fraction = Fraction(0),
        side: Side = Side.EITHER,
        noise: Noise = discrete_laplace,
        name: Callable[[], str] = tokens.token_hex,
    ) -> None:
        if calibration.positives != 1 or calibration.monotone or side is Side.ABOVE:
            raise ValueError(
                "a gate's run halts at its first positive answer and looks for deviations of both "
                "signs: calibrate it for one positive answer and not for monotone questions"
            )
        if runs < 1 or reserve < 0:
            raise ValueError(f"need runs >= 1 and reserve >= 0, got {runs} and {reserve}")
        self.calibration, self.runs, self.reserve = calibration, runs, reserve
        self.edition, self.schedule, self.side = edition, schedule, side
        self._ledger, self._transcript, self._secrets = ledger, transcript, secrets
        self._noise, self._name = noise, name
        self._paid: set[str] = set()  # runs whose charge had no output when we looked

    # Asking -----------------------------------------------------------------------------------

    def known(self, question: str) -> Easy | None:
        """The answer to this question if it has left; nothing is read or charged."""
        entry = self._transcript.find(asked_key(question, self.edition))
        return None if entry is None else _recorded(entry)

    def ask(self, question: Question, principal: str = "") -> Easy:
        """Compare one statement; the answer is `Easy`, or `Hard` with its sign and gap."""
        return self.ask_all([question], principal)[0]

    def ask_all(self, questions: Sequence[Question], principal: str = "") -> list[Easy]:
        """Compare statements up to the first surprise, all in one wait for the disk.

        The answers are those of the first questions, in order: after a surprise the stand-in
        changes, so what follows it has to be asked again.
        """
        known = {question.text: self.known(question.text) for question in questions}
        fresh = [question for question in questions if known[question.text] is None]
        if not fresh:
            answers = (known[question.text] for question in questions)
            return [answer for answer in answers if answer is not None]
        with self._secrets.held():
            self._ready(principal)  # paid before the scan, so that a failure in it is never free
        units = self.calibration.sensitivity
        deviations = {question.text: question.deviation(units) for question in fresh}
        with self._secrets.held():
            secret = self._ready(principal)
            entries = self._transcript.run(
                lambda book: self._written(book, secret, questions, deviations, principal)
            )
            if _fired_in(secret, entries[-1]):
                self._settle(entries[-1])
        return [_recorded(entry) for entry in entries]

    def _written(
        self,
        book: Book,
        secret: RunSecret,
        questions: Sequence[Question],
        deviations: Mapping[str, Deviation],
        principal: str,
    ) -> list[Entry]:
        """Draw and append, question by question, until one fires."""
        entries: list[Entry] = []
        for question in questions:
            entry = book.find(asked_key(question.text, self.edition))
            if entry is None:
                asked = self._asked(book.newest(), secret.run, question, principal)
                entry = write_once(book, self._answer(secret, asked, deviations[asked.question]))
            entries.append(entry)
            if _fired_in(secret, entry):
                break
        return entries

    def _asked(self, newest: Entry | None, run: str, question: Question, principal: str) -> Easy:
        """The question at its place in the schedule, as it will be recorded if it passes."""
        at = 1 if newest is None else newest.questions + 1
        return Easy(
            question=question.text,
            policy=self.edition.policy,
            data=self.edition.data,
            run=run,
            at=at,
            threshold=self.schedule(at),
            after=question.after,
            principal=principal,
        )

    def _answer(self, secret: RunSecret, asked: Easy, deviation: Deviation) -> Easy:
        found = self._fired(secret.state, deviation, asked.threshold)
        return asked if found is None else Hard(**vars(asked), sign=found.sign, gap=found.gap)

    def _fired(self, state: RunState, deviation: Deviation, threshold: int) -> Positive | None:
        sides = [(1, deviation.short), (-1, deviation.over)]
        if self.side is Side.MAGNITUDE:
            sides = [(0, deviation.magnitude)]
        for sign, value in sides:
            positive = AboveThreshold.restore(state, self._noise).ask(value, threshold)
            if positive is not None:
                return Positive(sign, positive.gap)
        return None

    # Runs -------------------------------------------------------------------------------------

    @property
    def opened(self) -> int:
        """How many runs have been opened, by anybody, and so are spent."""
        newest = self._transcript.newest()
        return 0 if newest is None else newest.runs

    @property
    def is_open(self) -> bool:
        """Whether the newest run has not ended, as far as everybody can see."""
        events = self._transcript.of_kinds((Kind.OPENED, *ENDS_A_RUN))
        return bool(events) and events[-1].kind == Kind.OPENED

    def _ready(self, principal: str) -> RunSecret:
        """The open run, opened now if there is none; the caller holds the lock."""
        secret = self._secrets.read()
        if secret is None or self._over(secret):
            self._require_a_run()
            secret = RunSecret(self._name(), RunState(self.calibration, None))
            self._secrets.write(secret)
        return secret if secret.drawn else self._open(secret, principal)

    def _over(self, secret: RunSecret) -> bool:
        """Whether this run cannot go on; what is not on record about it yet is put there."""
        latest = self._transcript.latest(secret.run)
        if latest is not None and latest.kind in ENDS_A_RUN:
            self._settle(latest)
            return True
        if not secret.drawn:
            if latest is not None:
                self._end(secret.run, "its secret was lost")
            return latest is not None or secret.state.calibration != self.calibration
        self._require_paid(secret, "")
        if latest is None:
            self._transcript.append(_opening(secret))
        if secret.state.calibration != self.calibration:
            self._end(secret.run, "the gate was calibrated anew")
            return True
        return False

    def _open(self, secret: RunSecret, principal: str) -> RunSecret:
        """Charge, draw, keep, publish: each is durable before the next."""
        self._require_paid(secret, principal)
        opened = RunSecret(secret.run, AboveThreshold(self.calibration, self._noise).state())
        self._secrets.write(opened)
        self._transcript.append(_opening(opened))
        return opened

    def _require_a_run(self) -> None:
        if self.opened >= self.runs:
            raise PositivesSpent(self.runs)
        currency, left = self._ledger.terms.currency, self._ledger.remaining()
        needed = price(self.calibration.cost, currency)
        assert needed is not None, "a pure cost has a price in every currency"
        if self.reserve and needed + self.reserve > left:
            raise BudgetExhausted(needed + self.reserve, left, currency)

    def _require_paid(self, secret: RunSecret, principal: str) -> None:
        """Charge the run unless it was charged; one that the ledger knows as ended is refused."""
        if secret.run in self._paid:
            return
        receipt = self._ledger.charge(
            secret.state.calibration.cost,
            key=_run_key(secret.run),
            purpose="open a run of the gate",
            principal=principal,
        )
        if receipt.output is not None:
            raise cut_off(receipt.output)
        self._paid.add(secret.run)

    def _end(self, run: str, reason: str) -> None:
        self._settle(self._transcript.append(Closed(run, reason)))

    def _settle(self, last: Entry) -> None:
        """Vouch in the ledger for the entry that ended a run, and wipe the secret."""
        self._ledger.record_output(_run_key(last.run), str(last.head).encode())
        self._paid.discard(last.run)
        self._secrets.write(None)


def _run_key(run: str) -> str:
    return f"gate run {run}"


def _opening(secret: RunSecret) -> Opened:
    noise = secret.state.calibration
    return Opened(secret.run, noise.epsilon, noise.threshold, noise.query, noise.sensitivity)


def _fired_in(secret: RunSecret, entry: Entry) -> bool:
    return entry.run == secret.run and entry.kind == Kind.HARD


def _recorded(entry: Entry) -> Easy:
    content = entry.content
    assert isinstance(content, Easy), "the key of a question holds its answer"
    return content
