"""What everybody knows before anything is published: types, bounds, and single values.

The rank of the equations alone protects against somebody who thinks any number possible. Types and
bounds are public, so they always enter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.cells import exact
from casemate.audit.equations import Equations
from casemate.query.expression import Scalar
from casemate.solve.box import Bound, Box, Region
from casemate.solve.system import System
from casemate.table.schema import ColumnType, Policy


@dataclass(frozen=True)
class Knowledge:
    """What is known beside the policy: other bounds, whole numbers, and ranges of records."""

    low: Fraction | None = None
    high: Fraction | None = None
    integer: bool = False
    known: Mapping[Scalar, tuple[Bound, Bound]] = field(default_factory=dict)


def box_of(equations: Equations, policy: Policy, knowledge: Knowledge) -> Box:
    """The range and type of every secret before any answer is used."""
    ends = [_prior(equations, column, policy, knowledge) for column in range(_width(equations))]
    lows, highs, whole = zip(*ends, strict=True) if ends else ((), (), ())
    return Box(tuple(lows), tuple(highs), tuple(whole))


def _width(equations: Equations) -> int:
    return equations.system.columns


def _prior(
    equations: Equations, column: int, policy: Policy, knowledge: Knowledge
) -> tuple[Bound, Bound, bool]:
    unknown = equations.unknowns[equations.unknown[column]]
    if unknown.category is not None:
        return Fraction(0), Fraction(1), True
    return prior_of(unknown.column, record_name(equations, column), policy, knowledge)


def prior_of(
    name: str, record: Scalar, policy: Policy, knowledge: Knowledge
) -> tuple[Bound, Bound, bool]:
    """The range of a private number of a record, and whether it is whole."""
    declared = policy.column(name)
    low, high = knowledge.low, knowledge.high
    if low is None and declared is not None and declared.low is not None:
        low = exact(declared.low)
    if high is None and declared is not None and declared.high is not None:
        high = exact(declared.high)
    whole = knowledge.integer or (declared is not None and declared.type is ColumnType.INTEGER)
    known = knowledge.known.get(record)
    if known is not None:
        low, high = tighter(low, known[0], max), tighter(high, known[1], min)
    return low, high, whole


def record_name(equations: Equations, column: int) -> Scalar:
    """The identity of the record whose secret a column is."""
    return record_of(equations.records, int(equations.record[column]))


def record_of(records: NDArray[Any], place: int) -> Scalar:
    """The identity of a record as a plain value."""
    record: Scalar = records[place]
    return record.item() if isinstance(record, np.generic) else record


def tighter(one: Bound, other: Bound, choose: Callable[..., Fraction]) -> Bound:
    """The stronger of two bounds, either of which may be absent."""
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def region_of(equations: Equations, box: Box) -> Region:
    """The published numbers, and that the values of one category add up to at most 1."""
    system = equations.system
    extra = [columns for columns in _families(equations) if len(columns) > 1]
    rows = np.repeat(np.arange(system.rows, system.rows + len(extra)), [len(e) for e in extra])
    columns = np.array([column for columns in extra for column in columns], np.int64)
    ones = np.ones(len(columns), system.value.dtype)
    widened = System(
        system.rows + len(extra),
        system.columns,
        np.concatenate([system.row, rows.astype(np.int64)]),
        np.concatenate([system.column, columns]),
        np.concatenate([system.value, ones]),
    )
    low = (*equations.low, *(Fraction(0) for _ in extra))
    high = (*equations.high, *(Fraction(1) for _ in extra))
    return Region(widened, box, low, high)


def _families(equations: Equations) -> list[list[int]]:
    """The columns that are values of one category of one record."""
    found: dict[tuple[int, str], list[int]] = {}
    for column, (record, which) in enumerate(
        zip(equations.record.tolist(), equations.unknown.tolist(), strict=True)
    ):
        unknown = equations.unknowns[which]
        if unknown.category is not None:
            found.setdefault((record, unknown.column), []).append(column)
    return list(found.values())
