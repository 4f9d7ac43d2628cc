"""Private values that are missing although the policy says that none are: what that leaves open.

Such a record was audited as if it had a value that adds nothing. Whoever knows that it has none
knows more of the others, so nobody can be called safe by that audit.
"""

from dataclasses import replace

from casemate.audit.result import Audited, Verdict
from casemate.query.engine import tables
from casemate.query.render import PROTECTED, quote
from casemate.table.schema import Policy
from casemate.table.source import Source


def with_missing(audited: Audited, policy: Policy, source: Source) -> Audited:
    """The result, which is incomplete instead of safe where values are missing undeclared."""
    names = _missing(policy, source)
    if not names:
        return audited
    safe = audited.verdict is Verdict.NONE_EXPOSED
    notes = (
        f"{name} is missing in some records, and the policy does not say `nullable`: they were "
        f"audited as if everybody had a value; declare it, or leave those records out"
        for name in names
    )
    return replace(
        audited,
        verdict=Verdict.INCOMPLETE if safe else audited.verdict,
        assumptions=(*audited.assumptions, *notes),
    )


def _missing(policy: Policy, source: Source) -> list[str]:
    columns = [column.name for column in policy.private() if not column.nullable]
    if not columns:
        return []
    counts = ", ".join(
        f"count(*) - count({quote(PROTECTED)}.{quote(name)}) AS m{place}"
        for place, name in enumerate(columns)
    )
    frame = source.read(f"SELECT {counts} FROM {tables(source, ())}")
    return [name for place, name in enumerate(columns) if frame[f"m{place}"].values[0]]
