"""OnlineIC to the letter: a stream of answers from a stand-in that only surprises change.

An `OnlineSetting` is what is fixed before the first question, `DurableNumericSparse` makes the
comparisons and the numbers out of the two doors, and `LiteralConstruction` is the whole.

Source     Source document 003, section 5.2.2: OnlineIC with NumericSparse, for any database update
           algorithm that has a T(alpha); Theorems 5.13 (privacy), 5.14 and 5.15 (accuracy).
Guarantee  Each comparison and each number is charged durably before it is drawn, and what left is
           durable before it is sent, so a crash at any moment gives nothing away and the same
           answers come back. If `setting.promised`, then but for a chance of beta every answer is
           within 3 alpha, whoever chooses the questions and however they look at the answers.
Charges    A run of the gate is charged when it opens, a number when it is drawn, and not all of
           T(alpha) beforehand: T is a bound for the worst table, and what no surprise ever asks for
           stays in the budget. The sums are adaptive filters, so both are private. But the theorem
           counts on all T(alpha), so the construction does not begin unless all could be paid.
Exhausted  Until T(alpha) updates are made every answer is compared. After them the theorem says
           that the stand-in is within alpha on every question, so it answers by itself; nothing is
           read or charged, and the origin is `unverified`. What is said there rests on the theorem
           alone: `within` is None if it does not hold, or if a run was lost with its secret.
Cost       A question is one comparison or two; T(alpha) updates at most. For small tables.
Departure  Errata: each update needs |f(D) - f(D^t)| >= T - alpha, where <= is printed without
           the bars; the second half of a question is skipped when the first has fired; 512
           for 521 and the place of a bracket in Theorem 5.15: see `accuracy`. Ours: noise is on the
           integers, the gap of a comparison leaves too (it is free), the same question is
           answered once, as |Q| counts questions and not how often they are asked, and with delta
           the ledger adds up zCDP, which is less than the document's composition.
           `test_it_is_the_slow_version_on_the_same_noise` shows the algorithm.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from casemate.doors import (
    Closed,
    Content,
    Declared,
    Easy,
    Edition,
    Gate,
    GatePart,
    GateQuestion,
    Hard,
    Measured,
    Measurement,
    MemorySecrets,
    Opened,
    PeopleTotal,
    RunSecrets,
    Transcript,
    on_grid,
    open_transcript,
)
from casemate.errors import BudgetExhausted, HorizonReached, Misconfigured, PositivesSpent, Refused
from casemate.grid import MeasuredProduct, Origin, Product
from casemate.papers.accuracy import (
    COMPOSITION_ROOT,
    NumericSparseNoise,
    PromiseTerms,
    Statement,
    UpdateBound,
    accuracy,
    theorem_5_13,
    theorem_5_14,
    theorem_5_15,
)
from casemate.papers.database_updates import (
    MedianMechanism,
    MultiplicativeWeights,
    Perceptron,
    literal_step,
    literal_updates,
    perceptron_updates,
    rows_needed,
    updates_of_databases,
)
from casemate.privacy import Pure, price
from casemate.privacy.ledger import IN_MEMORY, Ledger, open_ledger
from casemate.privacy.ledger import Terms as LedgerTerms
from casemate.privacy.noise import LaplaceLaw, Noise, Sources, discrete_laplace, noise_bound
from casemate.surrogate import Surrogate

MAX_ROUNDING_PEOPLE = 3
"""People: a weighted question is rounded down, a stand-in's answer to the nearest, the threshold
down; each moves a comparison by at most one, the second by half of that."""


@dataclass(frozen=True)
class DatabaseUpdate:
    """A T(alpha)-database update algorithm: its T, and the stand-in it begins with."""

    name: str
    shape: tuple[int, ...]
    bound: UpdateBound = field(repr=False)  # T
    start: Callable[[float, int], Surrogate] = field(repr=False)  # from alpha and the people

    @classmethod
    def by_weights(cls, *shape: int) -> Self:
        """Multiplicative weights with the document's step: T(alpha) = 4 ln|X| / alpha^2."""
        cells = math.prod(shape)
        return cls(
            "multiplicative weights",
            shape,
            lambda alpha: literal_updates(cells, alpha),
            lambda alpha, people: MultiplicativeWeights(shape, people, literal_step(alpha)),
        )

    @classmethod
    def by_perceptron(cls, *shape: int) -> Self:
        """The perceptron with the document's step: T(alpha) = |X| / alpha^2."""
        cells = math.prod(shape)
        return cls(
            "perceptron",
            shape,
            lambda alpha: perceptron_updates(alpha, cells),
            lambda alpha, people: Perceptron(shape, people, alpha=alpha),
        )

    @classmethod
    def by_median(cls, *shape: int, questions: int) -> Self:
        """The median of all databases that are large enough for so many questions."""
        cells = math.prod(shape)

        def rows(alpha: float) -> int:
            return rows_needed(min(alpha, 1.0), questions)

        return cls(
            "median",
            shape,
            lambda alpha: updates_of_databases(cells, rows(alpha)),
            lambda alpha, people: MedianMechanism(shape, people, rows(alpha)),
        )


@dataclass(frozen=True)
class OnlineSetting:
    """What a construction fixes before the first question: all of it is public.

    Source     A T(alpha)-database update algorithm, c = T(alpha) updates, a threshold of 2 alpha,
               the noise of NumericSparse, and Theorems 5.14 and 5.15 about the whole.
    Guarantee  `promised` says whether the theorem holds at this alpha, this many people and this
               many questions; then, but for a chance of beta, every answer is within 3 alpha and
               no more than T(alpha) updates are needed.
    Departure  Theorem 5.15 does not cover the numbers of its own noise, whose scale is sqrt(8)
               times what its constant leaves them: `with_numbers` asks for that too
               (`test_theorem_5_15_does_not_keep_the_numbers_of_its_own_noise_within_alpha`).
               Everything is counted in whole people: a question, a stand-in's answer and the
               threshold are rounded, which may cost three people, and their number may be one that
               was measured, with a `doubt` (`test_a_measured_number_of_people_costs_its_doubt`).
               `promised` asks that the bound of the noise in use leaves room for these
               (`test_what_is_rounded_fits_into_what_the_theorems_leave`).

    >>> asked = PromiseTerms(questions=1000, epsilon=1.0, beta=0.05)
    >>> setting = OnlineSetting.least(DatabaseUpdate.by_weights(4, 4), asked, people=10**8)
    >>> f"{setting.error:.3f}", setting.updates, setting.promised
    ('0.083', 14337, True)
    """

    update: DatabaseUpdate
    terms: PromiseTerms
    people: int  # ||x||_1, which is public or was measured and paid for
    alpha: float
    doubt: int = 0  # how far the number of people may be off, if it was measured

    def __post_init__(self) -> None:
        if self.people < 1 or self.doubt < 0 or not 0 < self.alpha <= 1:
            raise ValueError(
                f"need people >= 1, doubt >= 0 and 0 < alpha <= 1, got {self.people}, "
                f"{self.doubt} and {self.alpha:.6g}: a larger alpha says nothing, and a larger "
                f"table allows a smaller one"
            )
        self.needed  # noqa: B018 - a theorem that is not about these terms says so now

    @classmethod
    def least(
        cls, update: DatabaseUpdate, terms: PromiseTerms, people: int, doubt: int = 0
    ) -> Self:
        """The least alpha that the theorem, with its numbers, allows."""

        def need_with_doubt(asked: PromiseTerms, updates: UpdateBound, alpha: float) -> float:
            return _theorem(asked)(asked, updates, alpha) + doubt

        found = accuracy(need_with_doubt, terms, update.bound, people)
        return cls(update, terms, people, found.alpha, doubt)

    @cached_property
    def updates(self) -> int:
        """c = T(alpha): how often the stand-in may be updated."""
        return max(1, math.floor(self.update.bound(self.alpha)))

    @cached_property
    def noise(self) -> NumericSparseNoise:
        """The noise of Theorem 5.13."""
        epsilon, delta = Fraction(self.terms.epsilon), Fraction(self.terms.delta)
        return theorem_5_13(self.updates, epsilon, delta)

    @cached_property
    def threshold(self) -> int:
        """2 alpha, in people."""
        return math.floor(2 * Fraction(self.alpha) * self.people)

    @property
    def error(self) -> float:
        """3 alpha: what every answer is within, as a fraction of the people."""
        return 3 * self.alpha

    @property
    def unit(self) -> float:
        """alpha, in people."""
        return self.alpha * self.people

    @cached_property
    def needed(self) -> float:
        """What alpha must be at least, in people, for the theorem to hold."""
        return _theorem(self.terms)(self.terms, self.update.bound, self.alpha) + self.doubt

    @cached_property
    def error_bound(self) -> int:
        """What comparisons and numbers are off by at most, in people, but for beta."""
        noise, half = self.noise, self.terms.beta / 2
        comparisons = noise.run.error_bound(2 * self.terms.questions, half, runs=self.updates)
        return max(comparisons, noise_bound(noise.answer, self.updates, half))

    @property
    def promised(self) -> bool:
        """Whether the theorem holds here."""
        kept = self.error_bound + MAX_ROUNDING_PEOPLE + self.doubt
        return self.needed <= self.unit and kept <= self.unit


def with_numbers(terms: PromiseTerms, updates: UpdateBound, alpha: float) -> float:
    """Theorem 5.15, and what c numbers of its noise are off by at most, but for beta/2.

    The latter is (sqrt(512) + 1) sqrt(8 T ln(2/delta)) ln(4 T/beta) / epsilon, T = T(alpha).
    """
    count = updates(alpha)
    spread = math.sqrt(8 * count * math.log(2 / terms.delta))
    numbers = (COMPOSITION_ROOT + 1) * spread * math.log(4 * count / terms.beta) / terms.epsilon
    return max(theorem_5_15(terms, updates, alpha), numbers + MAX_ROUNDING_PEOPLE)


def _theorem(terms: PromiseTerms) -> Statement:
    return with_numbers if terms.delta else theorem_5_14


# NumericSparse made of the two doors ------------------------------------------------------------


Exact = Callable[[], int]
"""Reads the exact value of a question, on behalf of a door."""


@dataclass(frozen=True)
class OnlineRecords:
    """Where it stands what was paid and what left, and the open run's secret."""

    ledger: Ledger
    transcript: Transcript
    secrets: RunSecrets
    edition: Edition

    @classmethod
    def in_memory(cls, terms: PromiseTerms) -> Self:
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
    """Compares deviations with 2 alpha until c of them have fired, and numbers those that do.

    Source     NumericSparse with the noise of Theorem 5.13 for delta = 0 and delta > 0, made of the
               two doors, so that what it lets out is paid for and outlives a crash.
    Guarantee  A run opens only if its number could be paid as well.
    Departure  The number is of the question itself and not of its deviation, which is public
               otherwise; `test_it_is_numeric_sparse` shows that both are one.
    """

    def __init__(self, setting: OnlineSetting, records: OnlineRecords, noise: Noise | None) -> None:
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
        part = GatePart(on_grid([believed]))
        return self._gate.ask(GateQuestion(question, (part,), lambda: [[exact()]], after))

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


# The construction -------------------------------------------------------------------------------


Counts = NDArray[np.int64]
SMALLEST_BIT = 1074
"""Every double is a multiple of 2^-1074."""


@dataclass(frozen=True)
class LiteralAnswer:
    """A number of people, and how far it may be from the truth.

    `within` holds for all answers at once but for beta; None where nothing is proven.
    """

    value: float
    origin: Origin
    within: float | None


class LiteralConstruction:
    """Answers questions about a table of counts, one at a time; one process uses its records.

    Without `noise` the exact sampler runs on the operating system's entropy. Any other noise is for
    simulations, whose records end with the process, and `guarantee` then says so.

    >>> from casemate.papers.online import DatabaseUpdate
    >>> from casemate.papers.accuracy import PromiseTerms
    >>> from casemate.privacy.noise.noise import silence
    >>> terms, update = PromiseTerms(questions=9), DatabaseUpdate.by_weights(4)
    >>> setting = OnlineSetting.least(update, terms, people=10**7)
    >>> counts = np.array([8_000_000, 1_000_000, 1_000_000, 0])
    >>> records = OnlineRecords.in_memory(setting.terms)
    >>> construction = LiteralConstruction(setting, counts, records, noise=silence)
    >>> for first in (1, 4):
    ...     answer = construction.ask(Product((4,), {0: np.arange(4) < first}))
    ...     print(round(answer.value), answer.origin)
    8000000 measured
    10000000 surrogate
    >>> construction.updates, construction.guarantee
    (1, 'not private: the noise was chosen by the caller')
    """

    def __init__(
        self,
        setting: OnlineSetting,
        counts: Counts,
        records: OnlineRecords,
        *,
        noise: Noise | None = None,
    ) -> None:
        _require_table(setting, counts, records.ledger.terms)
        self.setting, self._counts, self._records = setting, counts, records
        self._simulated = noise is not None
        self._sparse = DurableNumericSparse(setting, records, noise)
        self._stand_in = setting.update.start(setting.alpha, setting.people)
        self._prefix = f"{setting.update.name}, alpha {setting.alpha!r}: "
        self._answers: dict[str, LiteralAnswer] = {}
        self._surprise: str | None = None  # a question that fired and was not measured yet
        self.updates = 0
        for entry in records.transcript.replay():
            self._take(entry.content)
        self._sparse.require_budget(self.updates, owed=int(self._surprise is not None))

    @property
    def guarantee(self) -> str:
        """What privacy is promised so far, in one sentence."""
        if self._simulated:
            return "not private: the noise was chosen by the caller"
        return self._records.ledger.statement()

    @property
    def exhausted(self) -> bool:
        """Whether T(alpha) updates were made, so that no question is compared any more."""
        return self.updates >= self.setting.updates

    # Asking -----------------------------------------------------------------------------------

    def ask(self, product: Product) -> LiteralAnswer:
        """Answer one question, in people; asked again it has the same answer."""
        question = self._question_text(product)
        self._settle()  # a crash may have left a surprise without its number
        if question in self._answers:
            return replace(self._answers[question], origin=Origin.CACHED)
        if len(self._answers) >= self.setting.terms.questions:
            raise HorizonReached(self.setting.terms.questions)
        believed = self._stand_in.answer(product)
        try:
            self._take(self._sparse.compare(question, believed, lambda: self._exact(product)))
            self._settle()
        except PositivesSpent:
            proven = self.setting.unit + self.setting.doubt if self.exhausted else None
            self._answers[question] = self._answer(believed, Origin.UNVERIFIED, proven)
        return self._answers[question]

    def _settle(self) -> None:
        """Give a surprise its number."""
        if self._surprise is not None:
            product = self._read(self._surprise)
            self._take(self._sparse.measure(self._surprise, lambda: self._exact(product)))

    def _exact(self, product: Product) -> int:
        """The value of the question, rounded down: that moves by at most 1 between neighbours."""
        others = tuple(a for a in range(self._counts.ndim) if a not in product.scope)
        margin = self._counts.sum(axis=others).ravel()
        weights = product.over(product.scope)
        if product.counts:
            return int(margin @ weights.astype(np.int64))
        pairs = zip(margin.tolist(), map(_numerator, weights.tolist()), strict=True)
        return int(sum(count * top for count, top in pairs) >> SMALLEST_BIT)

    # What left, which is all that the stand-in knows ------------------------------------------

    def _take(self, content: Content) -> None:
        """What one entry means: an easy answer, a surprise, or the number that follows it."""
        if isinstance(content, Opened | Closed | PeopleTotal | Declared):
            return
        self._require_own(content.question, Edition(content.policy, content.data))
        if isinstance(content, Hard):
            self._surprise = content.question
        elif isinstance(content, Easy):
            value = self._stand_in.answer(self._read(content.question))
            proven = 3 * self.setting.unit
            self._answers[content.question] = self._answer(value, Origin.SURROGATE, proven)
        elif isinstance(content, Measured):
            self._learn(content.question, float(content.values[0]))

    def _learn(self, question: str, value: float) -> None:
        variance = float(2 * self._sparse.law.scale**2)
        self._stand_in.update(MeasuredProduct(self._read(question), value, variance))
        self._answers[question] = self._answer(value, Origin.MEASURED, self.setting.unit)
        self._surprise = None
        self.updates += 1

    def _answer(self, value: float, origin: Origin, within: float | None) -> LiteralAnswer:
        return LiteralAnswer(value, origin, within if self.setting.promised else None)

    # Questions as text ------------------------------------------------------------------------

    def _question_text(self, product: Product) -> str:
        weights = product.over(product.scope)
        if product.shape != self._counts.shape or weights.min() < 0 or weights.max() > 1:
            raise ValueError(
                f"a question gives each cell of the grid {self._counts.shape} a weight from 0 to "
                f"1, got one on {product.shape} that does not; rescale it"
            )
        written = json.dumps(product.to_dict(), sort_keys=True, separators=(",", ":"))
        return self._prefix + written

    def _read(self, question: str) -> Product:
        return Product.from_dict(json.loads(question.removeprefix(self._prefix)))

    def _require_own(self, question: str, edition: Edition) -> None:
        if edition != self._records.edition or not question.startswith(self._prefix):
            raise Misconfigured(
                "this transcript holds answers of another construction, or of other settings or "
                "data; give this one a transcript of its own"
            )


def _numerator(weight: float) -> int:
    """The weight times 2^1074, which is a whole number."""
    top, bottom = weight.as_integer_ratio()
    return top * ((1 << SMALLEST_BIT) // bottom)


def _require_table(setting: OnlineSetting, counts: Counts, terms: LedgerTerms) -> None:
    """Refuse what is no table of counts; the people are added up only where that is public."""
    if counts.shape != setting.update.shape or counts.dtype != np.int64 or counts.min() < 0:
        raise ValueError(
            f"a table holds a 64-bit count, not negative, for each cell of {setting.update.shape}"
        )
    public = terms.neighbours == "replace" or terms.protects == "private-columns"
    if public and int(counts.sum()) != setting.people:
        raise ValueError(f"the table does not hold the {setting.people} people of the setting")
