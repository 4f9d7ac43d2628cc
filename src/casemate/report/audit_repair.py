"""A repair for the terminal and in JSON: what can be published instead, and what is withheld.

Keys are public, so they are written out whether or not anything is revealed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from casemate.audit.result import Repaired
from casemate.published.equations import Place
from casemate.query.expression import Scalar

Key = Sequence[tuple[str, Scalar]] | None


def repair_lines(repair: Repaired, named: Callable[[Place], str], most: int) -> list[str]:
    """A repair as lines to read, with so many of the rows that it withholds."""
    share = f"{len(repair.withheld)} of {repair.cells_before} rows"
    if not repair.is_safe:
        rest = f"what is left without {share} is {repair.audited.verdict} as well"
        return [f"repair: nothing was written, since {rest}"]
    where = "" if repair.file is None else f" in {repair.file}"
    lines = [f"repair: the queries{where} expose nobody, with {share} withheld"]
    rows = [each for each in repair.withheld if each.query not in repair.dropped]
    lines += [f"  {named(Place(each.query, '', each.cell))}" for each in rows[:most]]
    if len(rows) > most:
        lines.append(f"  and {len(rows) - most} more")
    if repair.dropped:
        listed = ", ".join(str(query) for query in repair.dropped)
        lines.append(f"  left out as a whole: query {listed}")
    return lines


def repair_object(
    repair: Repaired | None, cell: Callable[[Key], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """A repair as the object that stands in the audit's."""
    if repair is None:
        return None
    return {
        "file": None if repair.file is None else str(repair.file),
        "withheld": [{"query": each.query, "cell": cell(each.cell)} for each in repair.withheld],
        "dropped": list(repair.dropped),
        "verdict": repair.audited.verdict.value,
        "cells_before": repair.cells_before,
        "cells_after": repair.cells_after,
    }
