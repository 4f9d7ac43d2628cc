"""OnlineIC to the letter: a stream of answers from a stand-in that only surprises change.

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
           for 521 and the place of a bracket in Theorem 5.15: see `theorems`. Ours: noise is on the
           integers, the gap of a comparison leaves too (it is free), the same question is
           answered once, as |Q| counts questions and not how often they are asked, and with delta
           the ledger adds up zCDP, which is less than the document's composition.
           `test_it_is_the_slow_version_on_the_same_noise` shows the algorithm.
"""

import json
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from casemate.answer.literal_setting import Setting
from casemate.answer.literal_sparse import DurableNumericSparse, Records
from casemate.answer.outcome import Origin
from casemate.doors.entry import Closed, Content, Easy, Edition, Hard, Measured, Opened, Total
from casemate.errors import HorizonReached, Misconfigured, PositivesSpent
from casemate.privacy.ledger_terms import Terms as LedgerTerms
from casemate.privacy.noise import Noise
from casemate.surrogate.product import MeasuredProduct, Product

Counts = NDArray[np.int64]
SMALLEST_BIT = 1074
"""Every double is a multiple of 2^-1074."""


@dataclass(frozen=True)
class Answer:
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

    >>> from casemate.answer.literal_setting import DatabaseUpdate
    >>> from casemate.answer.theorems import Terms
    >>> from casemate.privacy.noise import silence
    >>> setting = Setting.least(DatabaseUpdate.by_weights(4), Terms(questions=9), people=10**7)
    >>> counts = np.array([8_000_000, 1_000_000, 1_000_000, 0])
    >>> records = Records.in_memory(setting.terms)
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
        self, setting: Setting, counts: Counts, records: Records, *, noise: Noise | None = None
    ) -> None:
        _require_table(setting, counts, records.ledger.terms)
        self.setting, self._counts, self._records = setting, counts, records
        self._simulated = noise is not None
        self._sparse = DurableNumericSparse(setting, records, noise)
        self._stand_in = setting.update.start(setting.alpha, setting.people)
        self._prefix = f"{setting.update.name}, alpha {setting.alpha!r}: "
        self._answers: dict[str, Answer] = {}
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

    def ask(self, product: Product) -> Answer:
        """Answer one question, in people; asked again it has the same answer."""
        question = self._named(product)
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
        if isinstance(content, Opened | Closed | Total):
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

    def _answer(self, value: float, origin: Origin, within: float | None) -> Answer:
        return Answer(value, origin, within if self.setting.promised else None)

    # Questions as text ------------------------------------------------------------------------

    def _named(self, product: Product) -> str:
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


def _require_table(setting: Setting, counts: Counts, terms: LedgerTerms) -> None:
    """Refuse what is no table of counts; the people are added up only where that is public."""
    if counts.shape != setting.update.shape or counts.dtype != np.int64 or counts.min() < 0:
        raise ValueError(
            f"a table holds a 64-bit count, not negative, for each cell of {setting.update.shape}"
        )
    public = terms.neighbours == "replace" or terms.protects == "private-columns"
    if public and int(counts.sum()) != setting.people:
        raise ValueError(f"the table does not hold the {setting.people} people of the setting")
