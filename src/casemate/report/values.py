"""Values of cells in words and in JSON."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any


def plain(value: object) -> str:
    """A value in plain words; a fraction as a decimal where it is one."""
    if value is None:
        return "NULL"
    if isinstance(value, tuple):
        return ", ".join(map(plain, value))
    return str(number(value)) if isinstance(value, Fraction) else str(value)


def number(value: object) -> Any:
    """A value as JSON writes it: a fraction that is no short decimal is written as text."""
    if isinstance(value, tuple):
        return [number(each) for each in value]
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return value.numerator
        short = Decimal(str(float(value)))
        return float(value) if Fraction(short) == value else str(value)
    if isinstance(value, Decimal):
        return number(Fraction(value))
    return value.isoformat() if isinstance(value, date) else value
