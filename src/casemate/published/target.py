"""Between which numbers the sums behind a shown number lie."""

from fractions import Fraction

from casemate.published.cells import ShownCell, exact, shown_value
from casemate.published.publication import Column
from casemate.published.rounding import Span, span
from casemate.published.shown import Shown


def target(column: Column, cell: ShownCell, divisor: Fraction) -> Span:
    """The weighted sums of a cell, over `divisor`, as far as what it shows tells them."""
    return printed(column, cell, divisor).less(column.form.constant / divisor)


def printed(column: Column, cell: ShownCell, divisor: Fraction) -> Span:
    """The numbers for which a cell shows what it shows."""
    form = column.form
    given = column.answer(cell.key)
    if given is not None:
        return span(form, Fraction(given), column.within)
    if form.rounded:
        shown = exact(shown_value(column.output.expression, column.select, cell))
        return span(form, _on_grid(shown, form))
    sums = (w * exact(cell.sums[i]) / cell.divisors[i] for i, w in form.weights)
    value = (sum(sums, Fraction(0)) + form.constant) / divisor
    return Span(value, value)


def _on_grid(shown: Fraction, form: Shown) -> Fraction:
    """The number that was meant, where a double stands for a decimal."""
    unit = 2 * form.half_unit
    return unit * round(shown / unit) if unit else shown
