"""What was published about some records, and what everybody knows about their values.

A question is an aggregate of the values of its members; its answer is exact, or an interval when
it was rounded before it was published. Everything is an integer or a fraction: an answer is
compared, never approximated.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

Kind = Literal[
    "sum", "avg", "max", "min", "median", "count_at_least", "count_equal", "step", "whole"
]
Exact = int | Fraction
COUNTS = ("count_at_least", "count_equal")
THRESHOLDS = (*COUNTS, "step", "whole")


@dataclass(frozen=True, eq=False)
class OrderQuestion:
    """An aggregate of the values at distinct positions, and the closed interval of its answer.

    `value` is the threshold of a count; `coefficients` are integers and belong to a sum. Two kinds
    are not published but known: in a step the second member is 1 (`high`) where the first is at
    least `value`, or with `strict` more than it, and 0 elsewhere; what is whole is a multiple of
    `value`.
    """

    kind: Kind
    members: NDArray[np.int64]
    low: Exact = field(repr=False)
    high: Exact = field(repr=False)
    value: Exact | None = field(default=None, repr=False)
    coefficients: NDArray[Any] | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if (self.value is not None) != (self.kind in THRESHOLDS):
            raise ValueError(f"a threshold belongs to {', '.join(THRESHOLDS)}, not to {self.kind}")
        if self.strict and self.kind != "step":
            raise ValueError(f"strict belongs to a step, not to {self.kind}")
        if self.kind == "step" and len(self.members) != 2:
            raise ValueError("a step has two members: a value, and whether it is reached")
        if self.coefficients is not None and self.kind != "sum":
            raise ValueError(f"coefficients belong to a sum, not to {self.kind}")
        if self.coefficients is not None and len(self.coefficients) != len(self.members):
            raise ValueError("a sum has one coefficient for each of its members")
        ordered = np.sort(self.members)
        if len(ordered) > 1 and not (ordered[1:] > ordered[:-1]).all():
            raise ValueError("the members of a question are distinct positions")

    @classmethod
    def of(
        cls,
        kind: Kind,
        members: Iterable[int],
        answer: Exact,
        *,
        within: Exact = 0,
        value: Exact | None = None,
        coefficients: Sequence[int] | None = None,
    ) -> Self:
        """A question from plain values; `within` is half a unit of the last printed digit.

        >>> OrderQuestion.of("avg", [0, 1, 2], Fraction(367, 10), within=Fraction(1, 20)).low
        Fraction(733, 20)
        """
        positions = np.fromiter(members, np.int64)
        factors = None if coefficients is None else np.array(coefficients, object)
        return cls(kind, positions, answer - within, answer + within, value, factors)

    @classmethod
    def step(cls, record: int, reached: int, value: Exact, strict: bool = False) -> Self:
        """That the value at `reached` is 1 or 0 as that at `record` reaches a threshold or not."""
        return cls("step", np.array([record, reached]), 1, 1, value, strict=strict)

    @classmethod
    def whole(cls, members: Iterable[int]) -> Self:
        """That some values are whole numbers where others need not be."""
        return cls("whole", np.fromiter(members, np.int64), 0, 0, 1)

    @property
    def exact(self) -> bool:
        """Whether the answer was published without rounding."""
        return self.low == self.high

    def answer(self, table: NDArray[Any]) -> Exact | None:
        """What this table gives, exactly; None where an aggregate of nobody is NULL."""
        if self.kind == "sum" and self.coefficients is not None:
            pairs = zip(self.coefficients.tolist(), table[self.members].tolist(), strict=True)
            total: Exact = sum((factor * each for factor, each in pairs), 0)
            return total
        if self.kind == "step":
            record, reached = table[self.members].tolist()
            return self.high if reached == self.reach(record) * self.high else None
        if self.kind == "whole" and self.value is not None:
            return max((each % self.value for each in table[self.members].tolist()), default=0)
        return aggregate(self.kind, table[self.members], self.value)

    def reach(self, value: Exact) -> bool:
        """Whether a value is at least the threshold, or more than it where that is asked."""
        if self.value is None:
            raise ValueError(f"{self.kind} has no threshold")
        return value > self.value if self.strict else value >= self.value

    def holds(self, table: NDArray[Any]) -> bool:
        """Whether this table gives the published answer."""
        answer = self.answer(table)
        return answer is not None and self.low <= answer <= self.high

    def rescale(self, factor: int) -> "OrderQuestion":
        """The same question about values multiplied by `factor`."""
        if factor == 1:
            return self
        value = None if self.value is None else self.value * factor
        if self.kind in COUNTS:
            return replace(self, value=value)
        return replace(self, low=self.low * factor, high=self.high * factor, value=value)


def aggregate(kind: Kind, values: NDArray[Any], threshold: Exact | None) -> Exact | None:
    """One aggregate of some values, in exact arithmetic; None for NULL, and for one missing."""
    listed: list[Exact] = [each for each in values.tolist() if each is not None]
    if kind == "sum":
        return sum(listed, 0)
    if threshold is not None:
        above = values >= threshold if kind == "count_at_least" else values == threshold
        return int(np.count_nonzero(above))
    if not listed:
        return None
    if kind in ("max", "min"):
        return max(listed) if kind == "max" else min(listed)
    if kind == "avg":
        return Fraction(sum(listed)) / len(listed)
    ordered, middle = sorted(listed), len(listed) // 2
    return Fraction(ordered[middle] + ordered[-1 - middle]) / 2


@dataclass(frozen=True)
class Domain:
    """What is known of each value beforehand: bounds (None: no bound), and type."""

    low: tuple[Exact | None, ...]
    high: tuple[Exact | None, ...]
    integer: bool = True

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high):
            raise ValueError("a domain has one lower and one upper bound for each record")

    @classmethod
    def of(
        cls, size: int, low: Exact | None = None, high: Exact | None = None, integer: bool = True
    ) -> Self:
        """The same bounds for every record.

        >>> Domain.of(2, 0, 100).high
        (100, 100)
        """
        return cls((low,) * size, (high,) * size, integer)

    def __len__(self) -> int:
        return len(self.low)


def denominator_of(numbers: Iterable[Exact | None]) -> int:
    """The smallest factor that makes all of the numbers integers."""
    found = {each.denominator for each in numbers if each is not None}
    return math.lcm(*found) if found else 1


def integer_array(numbers: Sequence[int]) -> NDArray[Any]:
    """The numbers as int64, or as Python integers where some come close to its limits."""
    largest = max((abs(each) for each in set(numbers)), default=0)
    return np.array(numbers, np.int64 if largest < 2**60 else object)
