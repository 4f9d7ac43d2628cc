"""What every stand-in can do, which kind a universe gets, and the one that a transcript leads to.

Guarantee  A function of the transcript's entries up to `number` and of the grid: whoever replays
           them has the same stand-in, bit for bit, and it costs no privacy.
Kind       Every cell where memory allows it, a mixture of products above. The dense stand-in is
           closer to the truth; 8 bytes a cell and a pass over all of them for each measured table
           are what it costs.
Fold       Tables marked as the start are learnt together, at the first entry that is not one of
           them or when somebody asks; everything else is learnt as it comes. Should more of the
           start arrive after it was learnt, everything is learnt again from the beginning.
Kept       What is to be learnt waits until an answer is wanted. Where a fit was kept that covers
           the first of it (`kept_fit`), that part is noted and not fitted again.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from casemate.doors import (
    Easy,
    Edition,
    EntryKind,
    Hard,
    Measured,
    PeopleTotal,
    Transcript,
    TranscriptEntry,
)
from casemate.grid import (
    Floats,
    MeasuredProduct,
    MeasuredTable,
    Measurement,
    Product,
    Scope,
    TableQuestion,
)
from casemate.privacy.noise import law_of, variance
from casemate.surrogate.dense import DenseSurrogate
from casemate.surrogate.histogram import MAX_DENSE_CELLS
from casemate.surrogate.kept_fit import FitName, FitState, KeptFit
from casemate.surrogate.mixture import MixtureSurrogate


class Surrogate(Protocol):
    """A public stand-in for a table of counts: it answers, and learns from what was measured.

    It sees nothing but measurements, so whatever it answers costs no privacy; and it is a
    deterministic function of them and of its settings, so a transcript rebuilds it.
    """

    @property
    def total(self) -> float:
        """How many records it believes there are."""
        ...

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        ...

    def answers(self, products: Sequence[Product]) -> Floats:
        """Its values of many questions, in counts."""
        ...

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope, one axis for each attribute."""
        ...

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        ...


class DailyStandIn(Surrogate, Protocol):
    """A stand-in for daily use: it fits what was measured together, and all that came before."""

    shape: tuple[int, ...]

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """Its counts over many scopes."""
        ...

    def learn(self, measurements: Sequence[Measurement], sweeps: int = ...) -> None:
        """Learn from what was published together, going over everything so many times."""
        ...

    def note(self, measurements: Sequence[Measurement], sweeps: int = ...) -> None:
        """Take what was published together into account, and leave the fitting to `resume`."""
        ...

    def fitted(self) -> FitState:
        """What the fit came to, beyond what was measured."""
        ...

    def resume(self, fitted: FitState) -> None:
        """Go on from a fit of all that was noted; `ValueError` where it is of another form."""
        ...


def stand_in_for(
    shape: tuple[int, ...],
    total: float,
    total_variance: float = 0.0,
    *,
    densest: int = MAX_DENSE_CELLS,
    prior: Floats | None = None,
) -> DailyStandIn:
    """The stand-in of a universe; `total` and `total_variance` are what is known of its size.

    A `prior` gives each cell the share that it starts from; only a dense stand-in takes one.

    >>> type(stand_in_for((10, 16, 7), 1_000.0)).__name__
    'DenseSurrogate'
    >>> type(stand_in_for((10,) * 12, 1_000.0)).__name__
    'MixtureSurrogate'
    """
    if math.prod(int(width) for width in shape) <= densest:
        return DenseSurrogate(shape, total, total_variance, prior)
    if prior is not None:
        raise ValueError("a stand-in of products has no prior")
    return MixtureSurrogate(shape, total, total_variance)


# From a transcript ------------------------------------------------------------------------------


LEARNT_KINDS = (EntryKind.TOTAL, EntryKind.MEASURED, EntryKind.HARD)
"""The kinds of entries that a stand-in, or the count of surprises, depends on."""

Make = Callable[[tuple[int, ...], float, float], DailyStandIn]
"""A stand-in from a grid, a total and the variance of the total."""


class Lesson(NamedTuple):
    """Measurements that are learnt together, and the first and last entry that they are from."""

    first: int
    last: int
    measurements: list[Measurement]
    sweeps: dict[str, int]  # how often everything is gone over, where that is not the usual


class StandIn:
    """A surrogate together with how far it has read the transcript.

    What it is fitted to may be `kept` in a file, for the next process.
    """

    def __init__(
        self,
        names: Sequence[str],
        shape: tuple[int, ...],
        edition: Edition,
        make: Make = stand_in_for,
        kept: KeptFit | None = None,
    ) -> None:
        self.names, self.shape, self.edition, self.make = tuple(names), shape, edition, make
        self._kept = kept
        self._forget()

    def _forget(self) -> None:
        self.number = -1  # of the newest entry that it depends on
        self._seen = -1  # of the newest entry when it last looked
        self.surprises: Counter[str] = Counter()  # by principal
        self.tables: list[MeasuredTable] = []
        self.measurements: list[Measurement] = []
        self.sums: dict[str, Measured] = {}  # tables of sums, by their texts
        self.fresh: dict[str, int] = {}  # measured for one question: the first, the second, ...
        self.total: PeopleTotal | None = None
        self.began: int | None = None  # the first entry of this edition that measured anything
        self._surrogate: DailyStandIn | None = None
        self._heads: dict[int, str] = {}  # of the entries that were read
        self._lessons: list[Lesson] = []  # still to be learnt
        self._settled = False  # whether the start was told apart from what came after it
        self._pending: list[tuple[int, Measurement]] = []
        self._early: list[tuple[int, Measurement]] = []  # before the number of people was known

    @property
    def surrogate(self) -> DailyStandIn:
        """The stand-in after everything that was read."""
        self._settle()
        if self.total is None:
            raise ValueError("the number of people is not in the transcript yet")
        if self._surrogate is None:
            self._surrogate = self._made(self.total)
        for lesson in self._lessons:
            self._surrogate.learn(lesson.measurements, **lesson.sweeps)
        if self._lessons and self._kept is not None:
            self._kept.write(self.name, self._heads[self.number], self._surrogate.fitted())
        self._lessons = []
        return self._surrogate

    @property
    def name(self) -> FitName:
        """What a fit of it depends on beside the transcript."""
        return FitName(self.edition.policy, self.edition.data, self.names, self.shape)

    @property
    def head(self) -> str | None:
        """The number and the hash of the newest entry that it depends on."""
        return self._heads.get(self.number)

    def _made(self, total: PeopleTotal) -> DailyStandIn:
        """A surrogate that was told nothing, or one that goes on from where a kept fit ended."""
        made = self.make(self.shape, float(total.value), self.total_variance)
        held = None if self._kept is None else self._kept.read(self.name)
        number = -1 if held is None else _number(held[0])
        if held is None or self._heads.get(number) != held[0]:
            return made
        known = sum(lesson.last <= number for lesson in self._lessons)
        before, after = self._lessons[:known], self._lessons[known:]
        if any(lesson.first <= number for lesson in after):
            return made  # what was learnt apart then is learnt together now
        for lesson in before:
            made.note(lesson.measurements, **lesson.sweeps)
        try:
            made.resume(held[1])
        except ValueError:
            return self.make(self.shape, float(total.value), self.total_variance)
        self._lessons = after
        return made

    @property
    def total_variance(self) -> float:
        """Of the measured number of people."""
        return 0.0 if self.total is None else variance(law_of(self.total.law, self.total.scale))

    def catch_up(self, transcript: Transcript, until: int | None = None) -> None:
        """Read what has left since; `until` is the last number to read."""
        newest = transcript.newest()
        fresh = [
            entry
            for entry in transcript.of_kinds(LEARNT_KINDS, self._seen + 1)
            if until is None or entry.number <= until
        ]
        if self._settled and any(self._starts(entry) for entry in fresh):
            self._forget()
            self.catch_up(transcript, until)
            return
        for entry in fresh:
            self.number = self._seen = entry.number
            self._heads[entry.number] = str(entry.head)
            self._read(entry)
        if until is None and newest is not None:
            self._seen = max(self._seen, newest.number)

    def at(self, number: int, transcript: Transcript) -> "StandIn":
        """The stand-in as it was when that entry was the newest."""
        if number == self.number:
            return self
        past = StandIn(self.names, self.shape, self.edition, self.make)
        past.catch_up(transcript, number)
        return past

    def missing(self, questions: Sequence[TableQuestion]) -> list[TableQuestion]:
        """Those tables of the start that have not been measured."""
        known = {table.question.classes for table in self.tables if table.question.start}
        return [each for each in questions if each.classes not in known]

    # Reading ----------------------------------------------------------------------------------

    def _starts(self, entry: TranscriptEntry) -> bool:
        found = self._content(entry)
        question = self._table(found) if isinstance(found, Measured) else None
        return question is not None and question.start

    def _content(self, entry: TranscriptEntry) -> Measured | Easy | None:
        """What an entry of this edition says, if it matters here."""
        content = entry.content
        if not isinstance(content, Measured | Easy):
            return None
        return content if Edition(content.policy, content.data) == self.edition else None

    def _read(self, entry: TranscriptEntry) -> None:
        found = self._content(entry)
        if self.began is None and isinstance(found, Measured):
            self.began = entry.number
        match found:
            case PeopleTotal() as content:
                self.total = self.total or content
            case Measured() as content:
                self._learn(content)
            case Hard() as content:
                self.surprises[content.principal] += 1

    def _learn(self, content: Measured) -> None:
        if "sums" in json.loads(content.question):
            self.sums[content.question] = content
            return
        question = self._table(content)
        if question is None or not question.start:
            self.fresh.setdefault(content.question, len(self.fresh) + 1)
        if question is None:
            self._take(_products(content, self.shape))
            return
        table = MeasuredTable.of(question, content)
        self.tables.append(table)
        if question.start:
            self._pending += [(self.number, each) for each in table.learnt(self.shape)]
        else:
            self._take(table.learnt(self.shape))

    def _table(self, content: Measured) -> TableQuestion | None:
        if isinstance(content, PeopleTotal):
            return None
        return TableQuestion.from_text(content.question, self.names, self.shape)

    def _take(self, fresh: Sequence[Measurement]) -> None:
        self._settle()
        if not self._settled:
            self._early += [(self.number, each) for each in fresh]
        elif fresh:
            self._lessons.append(Lesson(self.number, self.number, list(fresh), {"sweeps": 1}))
            self.measurements += fresh

    def _settle(self) -> None:
        """The start is complete as far as it goes, once the number of people is known."""
        if self.total is None:
            return
        self._settled = True
        for fresh in (self._pending, self._early):
            if fresh:
                learnt = [each for _, each in fresh]
                self._lessons.append(Lesson(fresh[0][0], fresh[-1][0], learnt, {}))
                self.measurements += learnt
        self._pending, self._early = [], []


def _number(head: str) -> int:
    """The number of the entry that a head is of."""
    number = head.partition(":")[0]
    return int(number) if number.isdecimal() else -1


def _products(content: Measured, shape: tuple[int, ...]) -> list[Measurement]:
    """What can be learnt from a statement that was measured by itself."""
    plain: dict[str, Any] = json.loads(content.question)
    known = variance(law_of(content.law, content.scale))
    return [
        MeasuredProduct(Product.from_dict({"shape": shape, **each}), float(value), known)
        for each, value in zip(plain.get("learn", ()), content.values, strict=False)
    ]
