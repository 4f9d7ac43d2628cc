"""The table's own values of determined secrets: what the published numbers come to.

Where the answers are the table's, a determined value is the true one; solving for it would give
the same number with much more work.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.published.equations import Equations
from casemate.published.knowledge import record_name
from casemate.query.answers import values
from casemate.query.engine import RECORD_COLUMN, tables
from casemate.query.expression import Scalar
from casemate.query.render import PROTECTED, quote
from casemate.table.source import Source


def true_values(
    equations: Equations, columns: Iterable[int], source: Source
) -> dict[int, Fraction]:
    """The values of these secrets in the table; a missing number counts as 0.

    A secret that is constant for each person is read at the person's first row.
    """
    wanted = list(columns)
    names = {equations.unknowns[int(equations.unknown[c])].column for c in wanted}
    tables_values = {name: column_values(name, source) for name in names}
    found = {}
    for column in wanted:
        unknown = equations.unknowns[int(equations.unknown[column])]
        found[column] = unknown.of(tables_values[unknown.column][record_name(equations, column)])
    return found


def true_numerators(equations: Equations, source: Source) -> tuple[NDArray[Any], int]:
    """The table's values of all secrets, as integers over one denominator."""
    width = equations.system.columns
    found: list[Any] = [0] * width
    names = dict.fromkeys(each.column for each in equations.unknowns)
    tables_values = {name: column_values(name, source) for name in names} if width else {}
    names_of = [equations.people.record(place) for place in range(len(equations.records))]
    for column, (kind, record) in enumerate(
        zip(equations.unknown.tolist(), equations.record.tolist(), strict=True)
    ):
        unknown = equations.unknowns[kind]
        value = tables_values[unknown.column][names_of[record]]
        whole = unknown.category is None and isinstance(value, int)
        found[column] = value if whole else unknown.of(value)
    return numerators(found)


def numerators(numbers: Sequence[Any]) -> tuple[NDArray[Any], int]:
    """Numbers of any kind as integers over one denominator; None counts as 0."""
    exact = [each if isinstance(each, int) else Fraction(each or 0) for each in numbers]
    scale = lcm(1, *{each.denominator for each in exact})
    whole = [each.numerator * (scale // each.denominator) for each in exact]
    fits = all(abs(each) < 2**62 for each in whole)
    return np.array(whole, np.int64 if fits else object), scale


def column_values(name: str, source: Source) -> dict[Scalar, Scalar]:
    """The value of a column for each record."""
    written = f"{quote(PROTECTED)}.{quote(name)}"
    frame = source.read(f"SELECT {RECORD_COLUMN} AS r, {written} AS v FROM {tables(source, ())}")
    return dict(zip(values(frame["r"]), values(frame["v"]), strict=True))
