"""The gate: a sparse vector that says whether a stand-in is good enough, and is paid by surprises.

Source     NumericSparse inside OnlineIC of source document 003, in the form of `GapSparseVector`:
           one run a surprise, the gap read for free.
Guarantee  A run costs `calibration.epsilon` (half its square in zCDP), charged durably before its
           first comparison, whether or not it fires. It halts at its first positive answer. The
           noise on its threshold is drawn once and outlives the process; comparisons of a run are
           made one at a time, by one lock over threads and processes.
           A statement is one question, whatever the number of its cells: the largest deviation,
           each divided by how far its cell can move between neighbours, moves by at most 1. In
           `units` to one sensitivity, rounded down, it moves by at most `units`: rounding down
           keeps a whole bound on a difference, where rounding half to even would not
           (`test_rounding_a_difference_half_to_even_moves_by_two`).
Exact      The stand-in's answers are on the grid before anything is subtracted, so only integers
           are subtracted, and the division is by a rational.
Order      open the table -> name the run (secret file) -> charge it -> draw its threshold (secret
           file) -> `opened` -> compare and append `easy` or `hard` in one transaction -> send.
           After `hard` the ledger stores the head of that entry as the output of the run's charge,
           and the secret is wiped.
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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from operator import index, sub

from casemate.doors.measurement import Cells, Scan, read_cells
from casemate.doors.run_secrets import RunSecret, RunSecrets
from casemate.doors.transcript import (
    ENDS_A_RUN,
    Closed,
    Easy,
    Edition,
    EntryKind,
    Hard,
    Opened,
    Transcript,
    TranscriptBook,
    TranscriptEntry,
    asked_key,
    cut_off,
    write_once,
)
from casemate.errors import BudgetExhausted, PositivesSpent
from casemate.privacy import price
from casemate.privacy.ledger import Ledger
from casemate.privacy.mechanisms import AboveThreshold, Calibration, RunState, Side
from casemate.privacy.noise import Noise, discrete_laplace

# The question: how far a stand-in is from the private cells of a statement ----------------------


@dataclass(frozen=True)
class GatePart:
    """Cells of one aggregate: what the stand-in says of them, and how far one of them can move."""

    stand_in: tuple[int, ...]
    sensitivity: int | Fraction = 1

    def __post_init__(self) -> None:
        if not isinstance(self.sensitivity, Rational) or self.sensitivity <= 0:
            raise ValueError(f"a sensitivity is a positive rational, got {self.sensitivity!r}")
        if not self.stand_in:
            raise ValueError("a part of a question has at least one cell, got none")
        object.__setattr__(self, "stand_in", tuple(index(cell) for cell in self.stand_in))


@dataclass(frozen=True)
class Deviation:
    """How far the stand-in falls short at most, and how far it exceeds at most; both secret."""

    short: int = field(repr=False)
    over: int = field(repr=False)

    @property
    def magnitude(self) -> int:
        """The larger of the two."""
        return max(self.short, self.over)


@dataclass(frozen=True)
class GateQuestion:
    """A normalised text, the public parts it is compared by, and the scan that reads its cells.

    `after` is the number of the newest entry of the transcript that the stand-in was built from.
    Another process may append while the question is on its way, so the answer records it: whoever
    replays the transcript up to there has the very stand-in that was compared.

    >>> asked = GateQuestion("count by sex", (GatePart((30, 10)),), lambda: [[28, 15]])
    >>> asked.deviation().short, asked.deviation().over
    (5, 2)
    """

    text: str
    parts: tuple[GatePart, ...]
    exact: Scan = field(repr=False)
    after: int = -1

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a question has at least one part, got none")

    def deviation(self, units: int = 1) -> Deviation:
        """Read the private cells and compare."""
        cells = read_cells(self.exact, [len(part.stand_in) for part in self.parts])
        pairs = list(zip(self.parts, cells, strict=True))
        return Deviation(
            short=max(_largest(exact, part.stand_in, part, units) for part, exact in pairs),
            over=max(_largest(part.stand_in, exact, part, units) for part, exact in pairs),
        )


def _largest(high: Cells, low: Cells, part: GatePart, units: int) -> int:
    """The largest difference in units; rounding down keeps the order, so it is rounded once."""
    difference: int = max(map(sub, high, low))
    scale = Fraction(part.sensitivity)
    return difference * units * scale.denominator // scale.numerator


def on_grid(answers: Iterable[float], step: Fraction = Fraction(1)) -> tuple[int, ...]:
    """A stand-in's answers in whole steps of the grid; they are public, so any rounding will do.

    >>> on_grid([2.4, 2.6, 7.0], Fraction(1, 2))
    (5, 5, 14)
    """
    return tuple(round(Fraction(answer) / step) for answer in answers)


# The gate ---------------------------------------------------------------------------------------


Schedule = Callable[[int], int]
"""The public threshold of question 1, 2, 3, …, in units of the deviation."""


class Gate:
    """The door that lets nothing out but "easy", or a sign and a gap.

    With `side` EITHER a question is two comparisons and a surprise has a sign; with MAGNITUDE it is
    one, without. At most `runs` runs are opened, and one only if `reserve` is left after it, in the
    ledger's currency: what measuring its surprise will cost. `name` gives each run a name that was
    never given before; `ready` opens the table, before anything is charged.
    """

    def __init__(
        self,
        ledger: Ledger,
        transcript: Transcript,
        secrets: RunSecrets,
        edition: Edition,
        *,
        calibration: Calibration,
        schedule: Schedule,
        runs: int,
        reserve: Fraction = Fraction(0),
        side: Side = Side.EITHER,
        noise: Noise = discrete_laplace,
        name: Callable[[], str] = tokens.token_hex,
        ready: Callable[[], object] = lambda: None,
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
        self._noise, self._name, self._ready = noise, name, ready
        self._paid: set[str] = set()  # runs whose charge had no output when we looked

    # Asking -----------------------------------------------------------------------------------

    def find_answer(self, question: str) -> Easy | None:
        """The answer to this question if it has left; nothing is read or charged."""
        entry = self._transcript.find(asked_key(question, self.edition))
        return None if entry is None else _answer_of(entry)

    def ask(self, question: GateQuestion, principal: str = "") -> Easy:
        """Compare one statement; the answer is `Easy`, or `Hard` with its sign and gap."""
        recorded = self.find_answer(question.text)
        if recorded is not None:
            return recorded
        self._ready()
        with self._secrets.exclusive_lock():
            self._open_run(principal)  # paid before the scan, so that a failure in it is never free
        deviation = question.deviation(self.calibration.sensitivity)
        with self._secrets.exclusive_lock():
            secret = self._open_run(principal)
            entry = self._transcript.run(
                lambda book: self._compare_and_append(book, secret, question, deviation, principal)
            )
            if entry.run == secret.run and entry.kind == EntryKind.HARD:
                self._settle(entry)
        return _answer_of(entry)

    def _compare_and_append(
        self,
        book: TranscriptBook,
        secret: RunSecret,
        question: GateQuestion,
        deviation: Deviation,
        principal: str,
    ) -> TranscriptEntry:
        """Draw and append at the next place of the schedule, unless another process was first."""
        stored = book.find(asked_key(question.text, self.edition))
        if stored is not None:
            return stored
        newest = book.newest()
        at = 1 if newest is None else newest.questions + 1
        asked = Easy(
            question=question.text,
            policy=self.edition.policy,
            data=self.edition.data,
            run=secret.run,
            at=at,
            threshold=self.schedule(at),
            after=question.after,
            principal=principal,
        )
        return write_once(book, self._answer(secret, asked, deviation))

    def _answer(self, secret: RunSecret, asked: Easy, deviation: Deviation) -> Easy:
        """What the comparisons of a question come to; the first that is positive ends the run."""
        sides = [(1, deviation.short), (-1, deviation.over)]
        if self.side is Side.MAGNITUDE:
            sides = [(0, deviation.magnitude)]
        for sign, value in sides:
            run = AboveThreshold.restore(secret.state, self._noise)
            positive = run.ask(value, asked.threshold)
            if positive is not None:
                return Hard(**vars(asked), sign=sign, gap=positive.gap)
        return asked

    # Runs -------------------------------------------------------------------------------------

    @property
    def opened(self) -> int:
        """How many runs have been opened, by anybody, and so are spent."""
        newest = self._transcript.newest()
        return 0 if newest is None else newest.runs

    @property
    def is_open(self) -> bool:
        """Whether the newest run has not ended, as far as everybody can see."""
        events = self._transcript.of_kinds((EntryKind.OPENED, *ENDS_A_RUN))
        return bool(events) and events[-1].kind == EntryKind.OPENED

    def _open_run(self, principal: str) -> RunSecret:
        """The open run, opened now if there is none; the caller holds the lock."""
        secret = self._secrets.read()
        if secret is None or self._has_ended(secret):
            self._require_a_run()
            secret = RunSecret(self._name(), RunState(self.calibration, None))
            self._secrets.write(secret)
        return secret if secret.drawn else self._open_new_run(secret, principal)

    def _has_ended(self, secret: RunSecret) -> bool:
        """Whether this run cannot go on; what is not on record about it yet is put there."""
        latest = self._transcript.latest(secret.run)
        if latest is not None and latest.kind in ENDS_A_RUN:
            self._settle(latest)
            return True
        if not secret.drawn:
            if latest is not None:
                self._close_run(secret.run, "its secret was lost")
            return latest is not None or secret.state.calibration != self.calibration
        self._require_paid(secret, "")
        if latest is None:
            self._transcript.append(_opening(secret))
        if secret.state.calibration != self.calibration:
            self._close_run(secret.run, "the gate was calibrated anew")
            return True
        return False

    def _open_new_run(self, secret: RunSecret, principal: str) -> RunSecret:
        """Charge, draw, keep, publish: each is durable before the next."""
        self._require_paid(secret, principal)
        opened = RunSecret(secret.run, AboveThreshold(self.calibration, self._noise).state())
        self._secrets.write(opened)
        self._transcript.append(_opening(opened))
        return opened

    def _require_a_run(self) -> None:
        if self.opened >= self.runs:
            raise PositivesSpent(self.runs)
        currency, remaining = self._ledger.terms.currency, self._ledger.remaining()
        needed = price(self.calibration.cost, currency)
        assert needed is not None, "a pure cost has a price in every currency"
        if self.reserve and needed + self.reserve > remaining:
            raise BudgetExhausted(needed + self.reserve, remaining, currency)

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

    def _close_run(self, run: str, reason: str) -> None:
        self._settle(self._transcript.append(Closed(run, reason)))

    def _settle(self, last: TranscriptEntry) -> None:
        """Vouch in the ledger for the entry that ended a run, and wipe the secret."""
        self._ledger.record_output(_run_key(last.run), str(last.head).encode())
        self._paid.discard(last.run)
        self._secrets.write(None)


def _run_key(run: str) -> str:
    return f"gate run {run}"


def _opening(secret: RunSecret) -> Opened:
    noise = secret.state.calibration
    scales = noise.threshold, noise.query
    return Opened(secret.run, noise.epsilon, *scales, noise.sensitivity, noise.one_sided)


def _answer_of(entry: TranscriptEntry) -> Easy:
    content = entry.content
    assert isinstance(content, Easy), "the key of a question holds its answer"
    return content
