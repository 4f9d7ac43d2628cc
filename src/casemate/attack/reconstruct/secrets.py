"""What was found, by record: numbers with intervals, categories with their likeliest value."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from casemate.attack.reconstruct.reconstruction import Reconstruction
from casemate.published import Equations
from casemate.query.language import Scalar
from casemate.query.records import Category, Unknown, possible_values
from casemate.table import Policy


@dataclass(frozen=True, repr=False)
class ReconstructedSecret:
    """What an attack says about one private value of one record.

    `low` and `high` are None for categories, and where a number has no end; `probability` is how
    likely the value is right, None where nobody can say.
    """

    record: Scalar
    person: Scalar
    column: str
    value: Scalar
    low: float | None
    high: float | None
    probability: float | None

    def __repr__(self) -> str:
        """Which column it is; never whose value, or what it is."""
        return f"<Secret: a value of {self.column}>"


def secrets(
    equations: Equations, policy: Policy, reconstruction: Reconstruction
) -> Iterator[ReconstructedSecret]:
    """What was found about every secret that anything was published about, by record."""
    for record, columns in sorted(_columns_of(equations).items()):
        unknown = _unknown(columns[0], equations)
        sure = (
            _number(columns[0], reconstruction)
            if unknown.category is None
            else _category(columns, equations, policy, reconstruction)
        )
        place, people = record[0], equations.people
        yield ReconstructedSecret(people.record(place), people.person(place), unknown.column, *sure)


def _columns_of(equations: Equations) -> dict[tuple[int, str], list[int]]:
    """The unknowns of every number and of every category, by the record's place and the name.

    Whether a number is past a cut is no secret of its own beside the number.
    """
    found: dict[tuple[int, str], list[int]] = {}
    for column in range(equations.system.columns):
        unknown = _unknown(column, equations)
        if unknown.category is None or isinstance(unknown.category, Category):
            where = int(equations.record[column]), unknown.column
            found.setdefault(where, []).append(column)
    return found


def _unknown(column: int, equations: Equations) -> Unknown:
    return equations.unknowns[int(equations.unknown[column])]


Sure = tuple[Scalar, float | None, float | None, float | None]


def _number(column: int, found: Reconstruction) -> Sure:
    value = float(found.values[column])
    ends = _finite(found.low[column]), _finite(found.high[column])
    return value, *ends, _finite(found.probability[column])


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _category(
    columns: list[int], equations: Equations, policy: Policy, found: Reconstruction
) -> Sure:
    """The likeliest value of a category: its 0/1 unknowns, and what they leave for the others.

    Values that nothing was published about are equally likely; the first of them stands for all.
    """
    declared = policy.column(_unknown(columns[0], equations).column)
    values = (possible_values(declared) if declared is not None else None) or ()
    shares: dict[Scalar, float] = {}
    for column in columns:
        category = _unknown(column, equations).category
        if isinstance(category, Category):
            shares[category.value] = float(found.values[column])
    others = [value for value in values if value not in shares]
    left = (1.0 - sum(shares.values())) / max(1, len(others))
    best = max(values, key=lambda value: shares.get(value, left))
    odds = min((float(found.probability[column]) for column in columns), default=np.nan)
    return best, None, None, _finite(odds if best in shares else odds / max(1, len(others)))
