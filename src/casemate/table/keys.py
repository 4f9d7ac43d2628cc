"""Keys: a column that names each row once."""

from collections.abc import Mapping

from casemate.errors import Misconfigured, shown_name
from casemate.table.source import RECORD, Source
from casemate.table.sql_text import quoted
from casemate.table.toml import nearest

NEEDS_KEY = "a table of a database needs `key`: a column that is unique and never NULL"


def check_key(source: Source, key: str, public: str | None = None) -> None:
    """Refuse a key with equal values, or with NULL; the message says which, never a value."""
    what = "key" if public is None else f"public.{public}.key"
    if public is not None and key not in source.fields(public):
        raise no_column(what, key, source.fields(public))
    column = RECORD if public is None else quoted(key)
    counts = source.read(
        f"SELECT count(*) AS n, count({column}) AS filled, count(DISTINCT {column}) AS different "
        f"FROM {source.relation(public)} AS t"
    )
    rows, filled, different = (int(series.values[0]) for series in counts.values())
    if different < filled:
        raise Misconfigured(f"`{what}`: the column {key!r} has the same value in several rows")
    if filled < rows:
        raise Misconfigured(f"`{what}`: the column {key!r} is NULL in some rows")


def no_column(what: str, name: str, known: Mapping[str, object]) -> Misconfigured:
    """The error that a name names no column of a table."""
    hint = nearest(str(name), known) or "expected one of the table's columns"
    said = repr(name) if shown_name(name) == name else shown_name(name)
    return Misconfigured(f"`{what}` names the column {said}, which is not there; {hint}")
