"""Bounds that sums and extremes imply for reals and for values without declared bounds.

Each step is a consequence of one question and the bounds so far, so stopping early only leaves
the bounds wider.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import IntegerCase
from casemate.exact import Exact, OrderQuestion

ROUNDS = 20
Bound = Exact | None  # None: nothing is known


class Intervals:
    """The lower and upper bound of each record so far."""

    def __init__(self, case: IntegerCase) -> None:
        self._integer = case.integer
        self.low = _known(case.low, case.known_low)
        self.high = _known(case.high, case.known_high)
        self._changed = True
        for _ in range(ROUNDS):
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
            self._set(record, *_divided(least, most, factor))

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


def _known(ends: NDArray[Any], known: NDArray[np.bool_]) -> list[Bound]:
    return [end if sure else None for end, sure in zip(ends.tolist(), known.tolist(), strict=True)]


def _less(total: Exact, others: Bound) -> Bound:
    return None if others is None else total - others


def _divided(low: Bound, high: Bound, factor: int) -> tuple[Bound, Bound]:
    ends = [None if end is None else Fraction(end) / factor for end in (low, high)]
    return (ends[0], ends[1]) if factor > 0 else (ends[1], ends[0])
