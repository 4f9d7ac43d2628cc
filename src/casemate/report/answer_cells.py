"""What private answers are made of, in words and in JSON: cells, amounts of privacy, sources."""

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from casemate.answer.answer import Answer, Spending
from casemate.answer.outcome import Origin
from casemate.answer.shown import Cell
from casemate.answer.shown_number import Noised
from casemate.query.expression import Scalar

UNKNOWN = "–"
MOST_DECIMALS = 6

SOURCES = {
    Origin.SURROGATE: "from the stand-in, and the gate let it pass",
    Origin.MEASURED: "measured in the table, with noise",
    Origin.CACHED: "answered before: the same answer, at no cost",
    Origin.UNVERIFIED: "from the stand-in, and nothing checked it: nothing is proven",
}


EXACT = "exact", "counted in the table without noise, since everybody may know it"
"""How an answer is called that was measured and needed no noise."""


def source_words(answer: Answer) -> tuple[str, str]:
    """Where an answer comes from: in a word, and in a few."""
    if answer.exact and answer.origin is Origin.MEASURED:
        return EXACT
    return answer.origin.value, SOURCES[answer.origin]


# JSON -----------------------------------------------------------------------------------------


def cell_json(cell: Cell, origin: Origin, session: bool) -> Any:
    """A key as itself; a noised cell with what is proven and what is estimated of it."""
    if not isinstance(cell, Noised):
        return scalar_json(cell)
    fields = {
        "value": scalar_json(cell.value),
        "lo": scalar_json(cell.lo),
        "hi": scalar_json(cell.hi),
        "error": scalar_json(cell.error),
        "source": origin.value,
    }
    if session:
        fields["session_lo"] = scalar_json(cell.session_lo)
        fields["session_hi"] = scalar_json(cell.session_hi)
    return fields


def scalar_json(value: Scalar) -> Any:
    """A value as JSON writes it: a date as ISO text, and null for a number without an end."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def spending_json(spending: Spending) -> dict[str, float | None]:
    """An amount of privacy: rho, null where delta is 0, and epsilon at the policy's delta."""
    rho = None if spending.rho is None else float(spending.rho)
    return {"rho": rho, "epsilon": float(spending.epsilon)}


# Words ----------------------------------------------------------------------------------------


def spending_words(spending: Spending) -> str:
    """An amount of privacy in words."""
    if not spending.epsilon and not spending.rho:
        return "nothing"
    epsilon = f"epsilon {float(spending.epsilon):.3g}"
    return epsilon if spending.rho is None else f"rho {float(spending.rho):.3g} ({epsilon})"


def decimals(cells: Sequence[Noised]) -> int:
    """With how many decimals a column is written: two digits of its smallest typical error."""
    errors = [each.error for each in cells if each.error is not None and 0 < each.error < math.inf]
    if errors:
        return min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(min(errors)))))
    numbers = [each.value for each in cells if isinstance(each.value, int | float | Decimal)]
    whole = all(each == round(each) for each in numbers if math.isfinite(each))
    return 0 if whole else MOST_DECIMALS // 2


def written(value: Scalar, places: int = 0) -> str:
    """A value in plain words; a number with its thousands set off.

    >>> written(-1234.567, 1), written(-0.2), written(None), written("Female")
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
    return f"{written(low, places)} to {written(high, places)}"


def percent(share: float) -> str:
    """A probability in words.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.6g} %"
