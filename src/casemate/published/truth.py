"""The table's own values of determined secrets: what the published numbers come to.

Where the answers are the table's, a determined value is the true one; solving for it would give
the same number with much more work.
"""

from collections.abc import Iterable
from fractions import Fraction

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


def column_values(name: str, source: Source) -> dict[Scalar, Scalar]:
    """The value of a column for each record."""
    written = f"{quote(PROTECTED)}.{quote(name)}"
    frame = source.read(f"SELECT {RECORD_COLUMN} AS r, {written} AS v FROM {tables(source, ())}")
    return dict(zip(values(frame["r"]), values(frame["v"]), strict=True))
