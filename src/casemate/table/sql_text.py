"""Names and values as SQL text that every engine reads alike."""

from datetime import date, datetime
from decimal import Decimal

from casemate.table.schema import Value


def quoted(*parts: str) -> str:
    """A name, with the schema before it where there is one.

    >>> print(quoted("Blood sugar"), quoted("main", 'a "b" c'))
    "Blood sugar" "main"."a ""b"" c"
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def literal(value: Value) -> str:
    """A value.

    >>> print(literal("it's"), literal(-3), literal(date(2020, 12, 31)), literal(True))
    'it''s' (-3) DATE '2020-12-31' TRUE
    """
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value) if value >= 0 else f"({value})"
        case Decimal():
            return f"({value:f})"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
