"""Rounded numbers are intervals: what a printed number says about the one behind it.

A number rounded by SQL, or printed with few digits, lies within half a unit of its last digit.
Both ends count as possible, unless it is known how ties are rounded: exact numbers go away from
zero, and the quotient of two whole numbers is cut towards it.
"""

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from casemate.exact import OrderQuestion
from casemate.published.shown import ShownForm

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Span:
    """The numbers from `low` to `high`, without an end that is open."""

    low: Fraction
    high: Fraction
    open_low: bool = False
    open_high: bool = False

    def times(self, factor: Fraction) -> "Span":
        """All of the numbers multiplied.

        >>> Span(Fraction(1), Fraction(3), open_high=True).times(Fraction(-2))
        Span(low=Fraction(-6, 1), high=Fraction(-2, 1), open_low=True, open_high=False)
        """
        if factor < 0:
            return Span(self.high * factor, self.low * factor, self.open_high, self.open_low)
        return Span(self.low * factor, self.high * factor, self.open_low, self.open_high)

    def less(self, amount: Fraction) -> "Span":
        """All of the numbers less an amount."""
        return Span(self.low - amount, self.high - amount, self.open_low, self.open_high)


def half_unit(printed: Decimal) -> Fraction:
    """Half a unit of the last digit with which a number is printed.

    >>> half_unit(Decimal("12")), half_unit(Decimal("12.30")), half_unit(Decimal("1E+3"))
    (Fraction(1, 2), Fraction(1, 200), Fraction(500, 1))
    """
    exponent = printed.as_tuple().exponent
    return HALF * Fraction(10) ** int(exponent)


def whole_answer(question: OrderQuestion) -> OrderQuestion:
    """The same question about whole numbers: an answer between two others is none of them.

    >>> whole_answer(Question.of("max", [0, 1], 7, within=HALF)).exact
    True
    """
    if question.kind not in ("max", "min", "median"):
        return question
    unit = 2 if question.kind == "median" and len(question.members) % 2 == 0 else 1
    low = Fraction(math.ceil(question.low * unit), unit)
    high = Fraction(math.floor(question.high * unit), unit)
    return question if low > high else replace(question, low=low, high=high)


def span(form: ShownForm, shown: Fraction, printed: Fraction = Fraction(0)) -> Span:
    """The numbers for which a column shows this one, printed with half a unit of so much.

    Printing loses nothing of a number that was rounded to fewer digits before.
    """
    lost = printed if printed > (HALF if form.cut else form.half_unit) else Fraction(0)
    half = form.half_unit + lost
    below = half + (1 if form.cut and shown <= 0 else 0)
    above = half + (1 if form.cut and shown >= 0 else 0)
    open_low, open_high = (False, False) if lost else _open_ends(form, shown)
    return Span(shown - below, shown + above, open_low, open_high)


def _open_ends(form: ShownForm, shown: Fraction) -> tuple[bool, bool]:
    """Whether the ends of what is rounded or cut to a number are themselves shown as another."""
    if form.to_even and form.half_unit:
        odd = (shown / (2 * form.half_unit)) % 2 == 1
        return odd, odd
    rounded = form.rounded
    return rounded and shown <= 0, rounded and shown >= 0
