"""The private column that an attack is about."""

from casemate.errors import Misconfigured
from casemate.table import NO_PRIVATE, Column, Policy


def private_column(policy: Policy, private: str | None) -> Column:
    """The column of this name, or the only private one; with several, it has to be named."""
    columns = policy.private()
    if not columns:
        raise Misconfigured(NO_PRIVATE)
    if private is None and len(columns) > 1:
        names = ", ".join(column.name for column in columns)
        raise Misconfigured(f"several columns are private ({names}); name one with --private")
    column = next((each for each in columns if private in (None, each.name)), None)
    if column is None:
        raise Misconfigured(f"the column {private!r} is not private; name one that is")
    return column
