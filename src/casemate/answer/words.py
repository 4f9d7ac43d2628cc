"""Numbers and keys of private answers, in words and as JSON."""

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from casemate.grid import Noised
from casemate.query.language import Scalar

UNKNOWN = "–"
MAX_DECIMALS = 6


def scalar_json(value: Scalar) -> Any:
    """A value as JSON writes it: a date as ISO text, and null for a number without an end."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def decimals(cells: Sequence[Noised]) -> int:
    """With how many decimals a column is written: two digits of its smallest typical error."""
    errors = [cell.error for cell in cells if cell.error is not None and 0 < cell.error < math.inf]
    if errors:
        return min(MAX_DECIMALS, max(0, 1 - math.floor(math.log10(min(errors)))))
    values = [cell.value for cell in cells if isinstance(cell.value, int | float | Decimal)]
    integers = all(value == round(value) for value in values if math.isfinite(value))
    return 0 if integers else MAX_DECIMALS // 2


def number_words(value: Scalar, places: int = 0) -> str:
    """A value in plain words; a number with its thousands set off.

    >>> number_words(-1234.567, 1), number_words(-0.2), number_words(None), number_words("Female")
    ('-1,234.6', '0', 'NULL', 'Female')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value.isoformat() if isinstance(value, date) else str(value)
    if not math.isfinite(value):
        return UNKNOWN
    return f"{round(float(value), places) + 0.0:,.{places}f}"


def key_words(key: Scalar) -> str:
    """A key in plain words: a number is a name here, so nothing in it is set off."""
    return "NULL" if key is None else str(scalar_json(key))


def range_words(low: Scalar, high: Scalar, places: int) -> str:
    """Two ends with the truth between them."""
    if low is None or high is None:
        return UNKNOWN
    return f"{number_words(low, places)} to {number_words(high, places)}"


def percent(share: float) -> str:
    """A probability in words.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.6g} %"
