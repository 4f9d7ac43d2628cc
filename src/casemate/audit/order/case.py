"""One order audit in integers: the case, what is said of each record, and the bounds it implies.

Reals are multiplied by a common denominator, so that every comparison below is one of integers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from casemate.exact import THRESHOLDS, Domain, Exact, OrderQuestion, denominator_of, integer_array

GRID_REFINEMENT = 2  # reals are looked for on a grid this much finer than the published numbers


@dataclass(frozen=True, eq=False)
class Incidence:
    """Who is asked about where: the questions that count each record among their members."""

    record: NDArray[np.int64]
    question: NDArray[np.int64]  # entry by entry, in the order of the questions
    by_record: NDArray[np.int64]  # the questions again, in the order of the records
    start: NDArray[np.int64]  # where each record's begin in it

    @classmethod
    def of(cls, questions: Sequence[OrderQuestion], size: int) -> "Incidence":
        """The incidence of `size` records with these questions."""
        sizes = [len(question.members) for question in questions]
        record = np.concatenate([np.empty(0, np.int64), *(each.members for each in questions)])
        question = np.repeat(np.arange(len(questions)), sizes)
        start = np.concatenate([[0], np.cumsum(np.bincount(record, minlength=size))])
        return cls(record, question, question[np.argsort(record, kind="stable")], start)

    def of_record(self, record: int) -> NDArray[np.int64]:
        """The questions about one record."""
        return self.by_record[self.start[record] : self.start[record + 1]]

    def touching(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """The questions about any of these records, in order."""
        if len(records) < 64:
            return np.unique(np.concatenate([[], *map(self.of_record, records)])).astype(np.int64)
        chosen = np.zeros(len(self.start) - 1, bool)
        chosen[records] = True
        return np.unique(self.question[chosen[self.record]])


@dataclass(frozen=True, eq=False)
class IntegerCase:
    """A consistent log over integers; where no bound is known, one beyond everything stands in."""

    questions: tuple[OrderQuestion, ...]
    truth: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    known_low: NDArray[np.bool_]  # the bound is known, not stood in for
    known_high: NDArray[np.bool_]
    width: NDArray[Any]  # a second table counts where it differs by at least this much
    integer: bool
    scale: int = 1

    @cached_property
    def incidence(self) -> Incidence:
        """Who is asked about where, worked out once."""
        return Incidence.of(self.questions, len(self.truth))

    def believes(self, table: NDArray[Any], changed: NDArray[np.int64]) -> bool:
        """Whether a table that differs from the truth only there could be the true one."""
        new = table[changed]
        if (new < self.low[changed]).any() or (new > self.high[changed]).any():
            return False
        touched = self.incidence.touching(changed)
        return all(self.questions[which].holds(table) for which in touched)

    def unscale(self, value: int) -> Exact:
        """A value as the caller wrote it."""
        return int(value) if self.scale == 1 else Fraction(int(value), self.scale)


def case_of(
    questions: Sequence[OrderQuestion],
    domain: Domain,
    truth: Sequence[Exact],
    width: Exact | Sequence[Exact],
) -> tuple[IntegerCase, tuple[int, ...]]:
    """The case of the questions that the truth answers, and the places of those it contradicts."""
    widths = list(width) if isinstance(width, Sequence) else [width] * len(domain)
    _check(questions, domain, truth, widths)
    scale = 1 if domain.integer else _fine_denominator(questions, domain, truth, widths)
    asked = [question.rescale(scale) for question in questions]
    table = integer_array([int(value * scale) for value in truth])
    low, high = _bounds(domain, scale, _beyond(asked, domain, table, widths, scale))
    _check_inside(table, low, high)
    answered, contradicted = _split_by_truth(asked, table)
    case = IntegerCase(
        answered,
        table,
        low,
        high,
        _are_known(domain.low),
        _are_known(domain.high),
        integer_array([max(1, math.ceil(each * scale)) for each in widths]),
        domain.integer,
        scale,
    )
    return case, contradicted


def _bounds(domain: Domain, scale: int, beyond: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The least and the largest integer that each record may have."""
    low = [-beyond if each is None else math.ceil(each * scale) for each in domain.low]
    high = [beyond if each is None else math.floor(each * scale) for each in domain.high]
    return integer_array(low), integer_array(high)


def _are_known(ends: Sequence[Exact | None]) -> NDArray[np.bool_]:
    return np.array([end is not None for end in ends], bool)


def _split_by_truth(
    asked: Sequence[OrderQuestion], table: NDArray[Any]
) -> tuple[tuple[OrderQuestion, ...], tuple[int, ...]]:
    """The questions that the table answers, and the places of those it contradicts."""
    holds = [question.holds(table) for question in asked]
    answered = tuple(question for question, good in zip(asked, holds, strict=True) if good)
    return answered, tuple(place for place, good in enumerate(holds) if not good)


def _check(
    questions: Sequence[OrderQuestion],
    domain: Domain,
    truth: Sequence[Exact],
    widths: Sequence[Exact],
) -> None:
    size = len(domain)
    if len(truth) != size or len(widths) != size:
        raise ValueError(f"need one value and one width for each of the {size} records")
    if any(
        len(q.members) and not 0 <= q.members.min() <= q.members.max() < size for q in questions
    ):
        raise ValueError(f"a question has a member outside the {size} records")
    if any(each < 0 for each in set(widths)):
        raise ValueError("the protection width of a record is positive, or 0 for any difference")
    if domain.integer and any(each.denominator != 1 for each in truth):
        raise ValueError("the domain is of integers and the table has a value that is none")


def _check_inside(table: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> None:
    if (table < low).any() or (table > high).any():
        raise ValueError("the table has a value outside its bounds; widen them or clamp it")


def _fine_denominator(
    questions: Sequence[OrderQuestion],
    domain: Domain,
    truth: Sequence[Exact],
    widths: Sequence[Exact],
) -> int:
    """A denominator that leaves room between any two numbers."""
    asked = {each for q in questions for each in (q.low, q.high, q.value)}
    return GRID_REFINEMENT * denominator_of({*asked, *domain.low, *domain.high, *truth, *widths})


def _beyond(
    questions: Sequence[OrderQuestion],
    domain: Domain,
    table: NDArray[Any],
    widths: Sequence[Exact],
    scale: int,
) -> int:
    """A number that no order among the published numbers can reach, even with a width to spare."""
    known = {each * scale for each in {*domain.low, *domain.high, *widths} if each is not None}
    asked = {
        abs(each)
        for q in questions
        for each in ((q.value,) if q.kind in THRESHOLDS else (q.low, q.high))
        if each is not None
    }
    largest = max((abs(each) for each in (*known, *asked, *set(table.tolist()))), default=0)
    return 4 * (math.ceil(largest) + len(table) + 2)


# What an audit says of each record, and the second tables that show it --------------------------


Proof = Literal["order", "bounds", "integer"]


@dataclass(frozen=True)
class ExposedValue:
    """Every table that gives the published answers has this value here."""

    value: Exact
    proof: Proof


@dataclass(frozen=True)
class Free:
    """Another table gives the published answers and differs here by the protection width."""

    witness: int  # its place among the verdicts' witnesses


@dataclass(frozen=True)
class Tight:
    """No table that gives the published answers differs here by the protection width."""


@dataclass(frozen=True)
class Undecided:
    """Neither was shown within the limit; it counts as not safe."""


Verdict = ExposedValue | Free | Tight | Undecided


@dataclass(frozen=True, eq=False)
class Witness:
    """A second table: the truth, except at these positions."""

    positions: NDArray[np.int64]
    values: tuple[Exact | None, ...]  # None for one that is missing

    def applied_to(self, truth: list[Exact]) -> list[Exact | None]:
        """The whole second table.

        >>> Witness(np.array([1]), (7,)).applied_to([1, 2, 3])
        [1, 7, 3]
        """
        table: list[Exact | None] = list(truth)
        for position, value in zip(self.positions.tolist(), self.values, strict=True):
            table[position] = value
        return table


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The verdict of every record, in order, with what they refer to.

    `together` bounds how many of the undecided can differ in one and the same second table.
    """

    records: tuple[Verdict, ...]
    witnesses: tuple[Witness, ...]
    contradicted: tuple[int, ...]  # places of questions that the table does not answer so
    together: int

    def positions(self, kind: type[Verdict]) -> list[int]:
        """The records with a verdict of this kind."""
        return [place for place, verdict in enumerate(self.records) if isinstance(verdict, kind)]


class OrderFindings:
    """What an audit has shown so far; a second table is re-evaluated before it is believed."""

    def __init__(self, case: IntegerCase) -> None:
        size = len(case.truth)
        self.case = case
        self.exposed = np.zeros(size, bool)
        self.free = np.zeros(size, bool)
        self.loose = np.zeros(size, bool)  # some second table differs here, by however little
        self.narrow = np.zeros(size, bool)  # no second table differs here by the width
        self._proof: dict[int, Proof] = {}
        self._witness_of = np.full(size, -1)
        self._witnesses: list[Witness] = []
        self._together = 0

    @property
    def open(self) -> NDArray[np.bool_]:
        """Records about which something is still to be shown."""
        return ~(self.exposed | self.free | (self.narrow & self.loose))

    def expose(self, records: NDArray[np.int64], proof: Proof) -> None:
        """These are determined."""
        fresh = records[~self.exposed[records]]
        self.exposed[fresh] = True
        self._proof.update(dict.fromkeys(fresh.tolist(), proof))

    def confine(self, records: NDArray[np.int64]) -> None:
        """These cannot differ by the width."""
        self.narrow[records] = True

    def offer(self, records: NDArray[np.int64], values: NDArray[Any]) -> bool:
        """Take the truth with these values put in as a witness, if it gives every answer."""
        case = self.case
        differs = values != case.truth[records]
        records, values = records[differs], values[differs]
        table = case.truth.copy()
        table[records] = values
        if not case.believes(table, records):
            return False
        self.loose[records] = True
        far = abs(values - case.truth[records]) >= case.width[records]
        fresh = records[far & ~self.free[records]]
        if len(fresh):
            self.free[fresh] = True
            self._witness_of[fresh] = len(self._witnesses)
            self._witnesses.append(Witness(records, tuple(map(case.unscale, values.tolist()))))
        return True

    def give_up(self, bound: int) -> None:
        """Some records of one part stay undecided; at most `bound` of them differ together."""
        self._together += bound

    def verdicts(self, contradicted: tuple[int, ...]) -> Verdicts:
        """All of it as a value."""
        records = tuple(map(self._verdict, range(len(self.free))))
        undecided = sum(isinstance(verdict, Undecided) for verdict in records)
        together = min(undecided, self._together)
        return Verdicts(records, tuple(self._witnesses), contradicted, together)

    def _verdict(self, record: int) -> Verdict:
        if self.exposed[record]:
            truth = self.case.unscale(self.case.truth[record])
            return ExposedValue(truth, self._proof[record])
        if self.free[record]:
            return Free(int(self._witness_of[record]))
        return Tight() if self.narrow[record] else Undecided()


# Bounds that sums and extremes imply ------------------------------------------------------------
# For reals, and for values without declared bounds. Each step is a consequence of one question and
# the bounds so far, so stopping early only leaves the bounds wider.


MAX_PROPAGATION_ROUNDS = 20
Bound = Exact | None  # None: nothing is known


class Intervals:
    """The lower and upper bound of each record so far."""

    def __init__(self, case: IntegerCase) -> None:
        self._integer = case.integer
        self.low = _known_bounds(case.low, case.known_low)
        self.high = _known_bounds(case.high, case.known_high)
        self._changed = True
        for _ in range(MAX_PROPAGATION_ROUNDS):
            if self._changed:
                self._changed = False
                for question in case.questions:
                    self._press(question)

    def _press(self, question: OrderQuestion) -> None:
        """Apply one question."""
        members = question.members.tolist()
        if question.kind == "max":
            for each in members:
                self._set(each, None, question.high)
        elif question.kind == "min":
            for each in members:
                self._set(each, question.low, None)
        elif question.kind in ("sum", "avg"):
            self._press_sum(question, members)
        elif question.kind == "step":
            self._press_step(question, *members)

    def _press_sum(self, question: OrderQuestion, members: list[int]) -> None:
        size = len(members) if question.kind == "avg" else 1
        factors = [1] * len(members)
        if question.coefficients is not None:
            factors = question.coefficients.tolist()
        pairs = [pair for pair in zip(members, factors, strict=True) if pair[1]]
        ranges = [self._range(*pair) for pair in pairs]
        lows, highs = _Total([low for low, _ in ranges]), _Total([high for _, high in ranges])
        for (record, factor), (low, high) in zip(pairs, ranges, strict=True):
            most = _less(question.high * size, lows.without(low))
            least = _less(question.low * size, highs.without(high))
            self._set(record, *_divide_bounds(least, most, factor))

    def _press_step(self, question: OrderQuestion, record: int, reached: int) -> None:
        """What reaching a threshold says of a value, and the other way round."""
        low, high = self.low[record], self.high[record]
        if low is not None and question.reach(low):
            self._set(reached, question.high, None)
        if high is not None and not question.reach(high):
            self._set(reached, None, 0)
        least, most = self.low[reached], self.high[reached]
        if least is not None and least > 0:
            self._set(record, _next(question, self._integer), None)
        elif most is not None and most < question.high:
            self._set(record, None, _last(question, self._integer))

    def _range(self, record: int, factor: int) -> tuple[Bound, Bound]:
        """The bounds of a record times its coefficient."""
        ends = (self.low[record], self.high[record])
        low, high = (None if end is None else end * factor for end in ends)
        return (low, high) if factor > 0 else (high, low)

    def _set(self, record: int, low: Bound, high: Bound) -> None:
        if self._integer:
            low = None if low is None else math.ceil(low)
            high = None if high is None else math.floor(high)
        before_low, before_high = self.low[record], self.high[record]
        if low is not None and (before_low is None or low > before_low):
            self.low[record], self._changed = low, True
        if high is not None and (before_high is None or high < before_high):
            self.high[record], self._changed = high, True


class _Total:
    """A sum of bounds from which one can be taken away."""

    def __init__(self, ends: list[Bound]) -> None:
        self._unknown = sum(end is None for end in ends)
        self._known: Exact = sum((end for end in ends if end is not None), 0)

    def without(self, end: Bound) -> Bound:
        """The sum of all but this one; None where another is unknown."""
        if self._unknown > (end is None):
            return None
        return self._known - (end or 0)


def _next(question: OrderQuestion, integer: bool) -> Bound:
    """The least value that reaches a threshold, or nearly so."""
    past = question.strict and integer and question.value is not None
    return math.floor(question.value) + 1 if past and question.value is not None else question.value


def _last(question: OrderQuestion, integer: bool) -> Bound:
    """The greatest value that does not reach a threshold, or nearly so."""
    if not integer or question.strict or question.value is None:
        return question.value
    return math.ceil(question.value) - 1


def _known_bounds(ends: NDArray[Any], known: NDArray[np.bool_]) -> list[Bound]:
    return [end if sure else None for end, sure in zip(ends.tolist(), known.tolist(), strict=True)]


def _less(total: Exact, others: Bound) -> Bound:
    return None if others is None else total - others


def _divide_bounds(low: Bound, high: Bound, factor: int) -> tuple[Bound, Bound]:
    ends = [None if end is None else Fraction(end) / factor for end in (low, high)]
    return (ends[0], ends[1]) if factor > 0 else (ends[1], ends[0])
