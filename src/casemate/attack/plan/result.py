"""What a plan is: queries, what their answers add up to, and what is proved about it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from casemate.attack.plan.detecting_matrix import Design
from casemate.attack.plan.setting import PlanSetting
from casemate.query.language import Scalar

Answer = Fraction | Decimal | int | float | None
"""What a query shows; a sum of nothing shows NULL."""


@dataclass(frozen=True)
class DeterminedRecord:
    """A record, and the queries (numbered from 0) that add up to its value, with coefficients."""

    record: Scalar
    combination: Mapping[int, Fraction]


@dataclass(frozen=True)
class Planned:
    """Queries whose answers determine the value of one record, or of all.

    For one record the answers, each times its coefficient of `combination`, add up to the value;
    for all, `determined` has a combination for each, or `design` decodes them together. What they
    add up to for a category is the place of the value in `values`, from 0. Without queries,
    `reason` says why there is no plan, and `impossible` whether that is proved. `inseparable` are
    records that others agree with in every public column: the target's, or all such records.
    """

    target: Scalar
    private: str
    records: int
    min_count: int
    queries: tuple[str, ...] = ()
    combination: tuple[Fraction, ...] = ()
    determined: tuple[DeterminedRecord, ...] = ()
    counts: tuple[int, ...] = ()
    verified: bool = False
    optimal: bool = False
    lower_bound: int | None = None
    inseparable: tuple[Scalar, ...] = ()
    undetermined: tuple[Scalar, ...] = ()
    values: tuple[Scalar, ...] | None = None
    impossible: bool = False
    reason: str | None = None
    design: Design | None = field(default=None, compare=False, repr=False)
    names: tuple[Scalar, ...] = field(default=(), compare=False, repr=False)
    seconds: float = field(default=0.0, compare=False)

    @classmethod
    def blank(cls, setting: PlanSetting, target: Scalar, inseparable: Iterable[int]) -> "Planned":
        """A plan without queries."""
        private, values = setting.secret.column.name, setting.secret.values
        alike = tuple(setting.name(place) for place in inseparable)
        count, least = setting.language.count, setting.least
        return cls(target, private, count, least, inseparable=alike, values=values)

    def value(self, answers: Sequence[Answer]) -> Scalar | Fraction:
        """The value of the one record, from the answers to the queries in their order."""
        if not self.combination:
            raise ValueError("this plan is not for one record; use decode")
        self._check(answers)
        return self.decode_number(linear_combination(dict(enumerate(self.combination)), answers))

    def decode(self, answers: Sequence[Answer]) -> dict[Scalar, Scalar | Fraction]:
        """The value of every record that the plan determines."""
        self._check(answers)
        if self.design is not None:
            bits = self.design.decode([int(each or 0) for each in answers]).tolist()
            pairs = zip(self.names, bits, strict=True)
            return {record: self.decode_number(Fraction(bit)) for record, bit in pairs}
        if self.combination:
            return {self.target: self.value(answers)}
        return {
            each.record: self.decode_number(linear_combination(each.combination, answers))
            for each in self.determined
        }

    def decode_number(self, value: Fraction) -> Scalar | Fraction:
        """A number as it is, or the category that it is the place of."""
        if self.values is None:
            return value
        if value not in range(len(self.values)):
            raise ValueError("the answers add up to no value of the category; give exact ones")
        return self.values[int(value)]

    def _check(self, answers: Sequence[Answer]) -> None:
        if len(answers) != len(self.queries):
            raise ValueError(
                f"this plan has {len(self.queries)} queries, and {len(answers)} answers came"
            )


def linear_combination(combination: Mapping[int, Fraction], answers: Sequence[Answer]) -> Fraction:
    """Answers times coefficients; NULL, the sum of nothing, is 0."""
    terms = (weight * Fraction(answers[q] or 0) for q, weight in combination.items())
    return sum(terms, Fraction(0))
