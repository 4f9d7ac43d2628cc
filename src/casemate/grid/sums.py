"""Sums in whole units of a public grid, so that no order of adding up has a part in them.

On the grid a record adds the middle of its cell; how far the truth may be from it is the cell's
slack, rounded up, and a mistake from rounding the middle is part of it. A direct measurement rounds
what each record adds to the nearest unit instead; a sum of which some record might leave the range
of a type is refused. Units follow from the policy alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from casemate.errors import Unsupported
from casemate.grid.product import Floats
from casemate.query.language import (
    LARGEST_STEP,
    NUMBERS,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    Operation,
    arithmetic,
    cast,
    exact,
    within_range,
)
from casemate.query.snapping import (
    MAX_UNITS_PER_ROW,
    Summand,
    breaks,
    step_function,
    sum_spans,
    with_engine_conditions,
)
from casemate.table import Attribute, ColumnType, Universe

MAX_SHORT_DENOMINATOR = 10**9
"""Denominators up to this are looked for behind a double: 0.1 is written for a tenth."""

MAX_DOUBLE_RELATIVE_ERROR = Fraction(1, 2**50)
"""Relative distance of a double from the number that it is written for, with room to spare."""

MAX_DECIMAL_DIGITS = 9
"""Digits after the point of a unit among decimals."""

MAX_BINARY_DIGITS = 40
"""The same among doubles, in binary digits."""

MAX_ADDED_PER_RECORD = LARGEST_STEP[ColumnType.DOUBLE]
"""A sum to which a record may add more is refused."""


@dataclass(frozen=True, eq=False)
class SumGrid:
    """What a record of each cell adds, and how far from that the truth may be, in units."""

    unit: Fraction
    weights: Floats
    slack: Floats

    @property
    def exact(self) -> bool:
        """Whether every cell is one value."""
        return not self.slack.any()


def grid_of(spans: Sequence[Interval]) -> SumGrid:
    """The grid on which cells with these spans are added up.

    >>> found = grid_of([Interval(Fraction(0), Fraction(9)), Interval(Fraction(20), Fraction(20))])
    >>> found.unit, found.weights.tolist(), found.slack.tolist()
    (Fraction(1, 2), [9.0, 40.0], [9.0, 0.0])
    """
    middles = [_shortest_form(each.middle) for each in spans]
    top = max((max(abs(each.low), abs(each.high)) for each in spans), default=Fraction(0))
    unit = _unit([*middles, *(_shortest_form(each.half) for each in spans)], top)
    weights = [round(middle / unit) for middle in middles]
    slack = [
        math.ceil(each.half / unit + abs(middle / unit - weight))
        for each, middle, weight in zip(spans, middles, weights, strict=True)
    ]
    return SumGrid(unit, np.array(weights, np.float64), np.array(slack, np.float64))


def _shortest_form(number: Fraction) -> Fraction:
    """The short number that a double stands for, if there is one."""
    short = number.limit_denominator(MAX_SHORT_DENOMINATOR)
    return short if abs(short - number) <= abs(number) * MAX_DOUBLE_RELATIVE_ERROR else number


def _unit(numbers: Sequence[Fraction], top: Fraction) -> Fraction:
    """The unit in which all numbers are whole, if they stay small; else a power of two."""
    together = 1
    for number in numbers:
        together = math.lcm(together, number.denominator)
        if top * together > MAX_UNITS_PER_ROW:
            return _power(2, top, MAX_BINARY_DIGITS)
    return Fraction(1, together)


def _power(base: int, top: Fraction, most: int) -> Fraction:
    """The finest power of a base in which numbers up to `top` stay small."""
    unit = Fraction(1, base**most)
    while top / unit > MAX_UNITS_PER_ROW - 1:
        unit *= base
    return unit


@dataclass(frozen=True, eq=False)
class DeclaredSums:
    """What the codes of a numeric attribute are worth in sums and means of the column itself.

    `weights` are the middles of cells and what is left around them, around the centre and as they
    are, first the `centred` middles, in units; `slack` is the most that is left.
    """

    weights: tuple[Floats, ...]
    centred: Floats
    unit: Fraction
    slack: float


def declared_sums(universe: Universe) -> dict[int, DeclaredSums]:
    """The declared worth of every numeric attribute."""
    found = {}
    for place, attribute in enumerate(universe.attributes):
        if attribute.type not in NUMBERS:
            continue
        _, spans = sum_spans(ColumnRef(attribute.column, attribute.type), universe)
        kept = spans[: attribute.reserved]
        centre = centre_of(kept, attribute.type)
        shifted = [Interval(each.low - centre, each.high - centre) for each in kept]
        plain, centred = (grid_of([*each, spans[attribute.reserved]]) for each in (kept, shifted))
        every = (centred.weights, plain.weights, plain.slack, centred.slack)
        weights = tuple(each for each in every if each.any())
        slack = float(centred.slack.max(initial=0.0))
        found[place] = DeclaredSums(weights, centred.weights, centred.unit, slack)
    return found


# Measured directly -----------------------------------------------------------------------------


def centre_of(spans: Sequence[Interval], kind: ColumnType) -> Fraction:
    """The middle of a range, as a constant that every engine subtracts exactly."""
    middle = (min(each.low for each in spans) + max(each.high for each in spans)) / 2
    if kind is ColumnType.DOUBLE:
        return Fraction(float(middle))
    return Fraction(round(middle * 10**MAX_DECIMAL_DIGITS), 10**MAX_DECIMAL_DIGITS)


def summand_of(
    argument: Expression,
    attribute: Attribute,
    spans: Sequence[Interval],
    centre: Fraction = Fraction(0),
) -> tuple[Summand, Fraction]:
    """What each record adds to a direct sum, less a centre, and the unit it is counted in."""
    low = min(each.low for each in spans) - centre
    high = max(each.high for each in spans) - centre
    if max(abs(low), abs(high)) > MAX_ADDED_PER_RECORD:
        raise _out_of_range(attribute)
    unit = _fine_unit(argument.type, max(abs(low), abs(high)), centre)
    shifted = _minus(argument, centre)
    ends = math.floor(low / unit), math.ceil(high / unit)
    found = Summand(_in_units(shifted, unit), *ends, scale=unit.denominator)
    return _total(found, shifted, attribute), unit


def _in_units(shifted: Expression, unit: Fraction) -> Expression:
    if unit <= 1:
        return shifted
    return arithmetic(
        Operation.DIVIDE,
        cast(shifted, ColumnType.DOUBLE),
        Literal(float(unit), ColumnType.DOUBLE),
    )


def _total(summand: Summand, shifted: Expression, attribute: Attribute) -> Summand:
    """The same units in a way in which no row can fail: exactly, by pieces, or within range.

    An engine computes only what the bounds of the column keep within the types of every step; of
    anything else the interpreter computes the units, for each piece of the column.
    """
    in_range = _is_in_range(shifted)
    if in_range and exact(shifted):
        return _with_decided_cases(summand, attribute)
    try:
        steps = step_function(attribute, summand.units_at, lambda: breaks(shifted))
    except Unsupported:
        if in_range:
            return _with_decided_cases(summand, attribute)
        raise _out_of_range(attribute) from None
    return replace(summand, steps=steps)


def _out_of_range(attribute: Attribute) -> Unsupported:
    return Unsupported(
        f"what is added up here may leave the range of its type within the bounds of "
        f"{attribute.name}; use smaller constants, or declare narrower bounds"
    )


def _is_in_range(shifted: Expression) -> bool:
    try:
        return within_range(shifted)
    except Unsupported:
        return False


def _with_decided_cases(summand: Summand, attribute: Attribute) -> Summand:
    return replace(summand, expression=with_engine_conditions(summand.expression, attribute))


def _minus(argument: Expression, centre: Fraction) -> Expression:
    if not centre:
        return argument
    if argument.type is ColumnType.DOUBLE:
        constant = Literal(float(centre), ColumnType.DOUBLE)
    elif argument.type is ColumnType.INTEGER and centre.denominator == 1:
        constant = Literal(int(centre), ColumnType.INTEGER)
    else:
        shown = (
            Decimal(round(centre * 10**MAX_DECIMAL_DIGITS)).scaleb(-MAX_DECIMAL_DIGITS).normalize()
            + 0
        )
        constant = Literal(shown, ColumnType.DECIMAL)
    return arithmetic(Operation.SUBTRACT, argument, constant)


def _fine_unit(kind: ColumnType, top: Fraction, centre: Fraction) -> Fraction:
    if kind is ColumnType.INTEGER:
        whole = Fraction(1, centre.denominator)
        return whole if top / whole <= MAX_UNITS_PER_ROW else max(whole, _power(2, top, 0))
    if kind is ColumnType.DECIMAL and top <= MAX_UNITS_PER_ROW - 1:
        return _power(10, top, MAX_DECIMAL_DIGITS)
    return _power(2, top, MAX_BINARY_DIGITS if kind is ColumnType.DOUBLE else 0)
