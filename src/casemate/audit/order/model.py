"""Published answers as constraints on integers, with the truth as the place to start from.

The literal "this record is at least v" is made once and shared by all questions. An even median
is a split into halves: nobody of the lower is above a, nobody of the upper below b, both are
attained, and a + b is twice the answer; enumerating the pairs (a, b) instead is far slower.
Every variable gets a hint, those of the medians too: an incomplete hint is no start at all.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from casemate.exact import Exact, OrderQuestion

LARGEST = 2**40  # of a value; sums of many must stay well inside the solver's 64 bits
Term = cp_model.IntVar | int


class IntegerModel:
    """Integer values of some records in their bounds; records with equal bounds are constants."""

    def __init__(self, low: NDArray[Any], high: NDArray[Any], truth: NDArray[Any]) -> None:
        self.model = cp_model.CpModel()
        self._low, self._high, self._truth = low, high, truth
        self.variables: dict[int, cp_model.IntVar] = {}
        self._at_least: dict[tuple[int, int], cp_model.IntVar] = {}

    def value(self, record: int) -> Term:
        """The variable of a record, or its only value."""
        low, high = int(self._low[record]), int(self._high[record])
        if low == high:
            return low
        if record not in self.variables:
            self.variables[record] = self.model.new_int_var(low, high, "")
            self.model.add_hint(self.variables[record], int(self._truth[record]))
        return self.variables[record]

    def at_least(self, record: int, bound: int) -> Term:
        """The literal "this record is at least `bound`", or 0 or 1 where its bounds say so."""
        if bound <= self._low[record]:
            return 1
        if bound > self._high[record]:
            return 0
        if (record, bound) not in self._at_least:
            literal = self.bool_var(bool(self._truth[record] >= bound))
            self._at_least[record, bound] = literal
            self.model.add(self.value(record) >= bound).only_enforce_if(literal)
            self.model.add(self.value(record) < bound).only_enforce_if(~literal)
        return self._at_least[record, bound]

    def bool_var(self, hint: bool) -> cp_model.IntVar:
        """A new literal that starts at `hint`."""
        literal = self.model.new_bool_var("")
        self.model.add_hint(literal, hint)
        return literal

    def moved(self, record: int, width: int) -> cp_model.LiteralT | None:
        """A literal that is true only where the record is `width` or more from the truth."""
        truth = int(self._truth[record])
        above, below = (
            self.at_least(record, truth + width),
            self.at_least(record, truth - width + 1),
        )
        ways: list[cp_model.LiteralT] = [above] if isinstance(above, cp_model.IntVar) else []
        ways += [~below] if isinstance(below, cp_model.IntVar) else []
        if len(ways) < 2:
            return ways[0] if ways else None
        literal = self.bool_var(False)
        self.model.add_bool_or([*ways, ~literal])
        return literal

    def between(self, terms: Iterable[Any], low: int | float, high: int | float) -> None:
        """Some terms add up to an integer in an interval that may be open to one side."""
        total = sum(terms)
        if isinstance(total, int):
            if not low <= total <= high:
                self.model.add_bool_or([])  # constants that contradict: no solution
        elif math.isfinite(low) and math.isfinite(high):
            self.model.add_linear_constraint(total, int(low), int(high))
        else:
            self.model.add(total >= int(low) if math.isfinite(low) else total <= int(high))

    def multiples(self, records: Sequence[int], unit: Exact | None) -> None:
        """Some records are multiples of a whole number."""
        step = int(unit or 1)
        for record in records:
            value = self.value(record)
            if step > 1 and not isinstance(value, int):
                low, high = int(self._low[record]), int(self._high[record])
                times = self.model.new_int_var(-(-low // step), high // step, "")
                self.model.add_hint(times, int(self._truth[record]) // step)
                self.model.add(value == step * times)

    def any_of(self, literals: Sequence[Any]) -> None:
        """At least one of some literals and constants is true."""
        if not any(isinstance(each, int) and each for each in literals):
            self.model.add_bool_or([each for each in literals if not isinstance(each, int)])

    def truth_of(self, records: Sequence[int]) -> list[int]:
        """The true values, where a hint needs them."""
        return [int(self._truth[each]) for each in records]

    def range_of(self, records: Sequence[int]) -> tuple[int, int]:
        """The bounds that hold all of some records."""
        lows = [int(self._low[each]) for each in records]
        return min(lows), max(int(self._high[each]) for each in records)


def narrowed(
    questions: Iterable[OrderQuestion], low: NDArray[Any], high: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The bounds after every maximum and minimum has pressed on its members."""
    low, high = low.copy(), high.copy()
    for question in questions:
        members = question.members
        if question.kind == "max":
            high[members] = np.minimum(high[members], math.floor(question.high))
        elif question.kind == "min":
            low[members] = np.maximum(low[members], math.ceil(question.low))
    return low, high


def publish(model: IntegerModel, question: OrderQuestion) -> None:
    """Add what one published answer says; a maximum's or minimum's bound is in the model's."""
    members = question.members.tolist()
    low, high = question.low, question.high
    if question.kind == "max":
        model.any_of([model.at_least(each, math.ceil(low)) for each in members])
    elif question.kind == "min":
        least = math.floor(high) + 1
        model.any_of([_not(model.at_least(each, least)) for each in members])
    elif question.kind == "median":
        (_odd_median if len(members) % 2 else _even_median)(model, members, question)
    elif question.kind == "step":
        _step(model, question)
    elif question.kind == "whole":
        model.multiples(members, question.value)
    else:
        size = len(members) if question.kind == "avg" else 1
        terms = _terms(model, members, question)
        model.between(terms, math.ceil(low * size), math.floor(high * size))


def _step(model: IntegerModel, question: OrderQuestion) -> None:
    record, reached = question.members.tolist()
    value = Fraction(question.value or 0)
    least = math.floor(value) + 1 if question.strict else math.ceil(value)
    unit = int(question.high)
    model.between([model.value(reached), -unit * model.at_least(record, least)], 0, 0)


def _not(literal: Any) -> Any:
    return 1 - literal if isinstance(literal, int) else ~literal


def _terms(model: IntegerModel, members: list[int], question: OrderQuestion) -> list[Any]:
    """What a sum, an average or a count adds up."""
    if question.value is None:
        factors = [1] * len(members) if question.coefficients is None else question.coefficients
        return [int(f) * model.value(each) for f, each in zip(factors, members, strict=True)]
    bound = math.ceil(question.value)
    reached: list[Any] = [model.at_least(each, bound) for each in members]
    if question.kind == "count_equal":
        # A threshold that is no integer is equalled by nobody: what reaches it has passed it.
        beyond = bound + (bound == question.value)
        reached += [-1 * model.at_least(each, beyond) for each in members]
    return reached


def _odd_median(model: IntegerModel, members: list[int], question: OrderQuestion) -> None:
    half = len(members) // 2 + 1
    reach = [model.at_least(each, math.ceil(question.low)) for each in members]
    exceed = [model.at_least(each, math.floor(question.high) + 1) for each in members]
    model.between(reach, half, math.inf)
    model.between(exceed, -math.inf, half - 1)


def _even_median(model: IntegerModel, members: list[int], question: OrderQuestion) -> None:
    truth, half = model.truth_of(members), len(members) // 2
    order = sorted(range(len(members)), key=truth.__getitem__)
    upper_places = set(order[half:])
    least, most = math.ceil(2 * question.low), math.floor(2 * question.high)
    a, b = _middle_pair(model, members, (truth[order[half - 1]], truth[order[half]]))
    model.model.add_linear_constraint(a + b, least, most)
    model.model.add(a <= b)
    upper = [model.bool_var(place in upper_places) for place in range(len(members))]
    model.between(upper, half, half)
    for record, above in zip(members, upper, strict=True):
        _one_half(model, record, above, (a, b), question)
    lower = [~each for each in upper]
    _attained(model, members, lower, order[half - 1], lambda value: value >= a)
    _attained(model, members, upper, order[half], lambda value: value <= b)


def _one_half(
    model: IntegerModel,
    record: int,
    above: cp_model.IntVar,
    pair: tuple[cp_model.IntVar, cp_model.IntVar],
    question: OrderQuestion,
) -> None:
    """A member is at most a or at least b, whichever half it is in."""
    value = model.value(record)
    model.model.add(value <= pair[0]).only_enforce_if(~above)
    model.model.add(value >= pair[1]).only_enforce_if(above)
    # Implied: whoever is above is at least the median, whoever is below at most.
    model.any_of([~above, model.at_least(record, math.ceil(question.low))])
    model.any_of([above, _not(model.at_least(record, math.floor(question.high) + 1))])


def _attained(
    model: IntegerModel,
    members: list[int],
    half: Sequence[Any],
    at: int,
    reaches: Callable[[Any], Any],
) -> None:
    """Somebody of a half is at its end of the middle pair; in the truth, the one at this place."""
    attains = [model.bool_var(place == at) for place in range(len(members))]
    for record, inside, literal in zip(members, half, attains, strict=True):
        model.model.add_implication(literal, inside)
        model.model.add(reaches(model.value(record))).only_enforce_if(literal)
    model.any_of(attains)


def _middle_pair(
    model: IntegerModel, members: list[int], hints: tuple[int, int]
) -> tuple[cp_model.IntVar, cp_model.IntVar]:
    low, high = model.range_of(members)
    pair = model.model.new_int_var(low, high, ""), model.model.new_int_var(low, high, "")
    for variable, hint in zip(pair, hints, strict=True):
        model.model.add_hint(variable, hint)
    return pair
