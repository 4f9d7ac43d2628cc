"""What to measure when the gate fires, by the error that is predicted for the question.

Every candidate costs the same, because one person moves one cell of any table. The table of all
codes of the scope also answers what will be asked next about it, so it is taken where it answers
this question well enough; a sum over thousands of noisy cells does not, and then the coarsest table
that answers the question is. Both are functions of the question and of public noise.
"""

import math
from fractions import Fraction

from casemate.answer.asked import Asked
from casemate.answer.classes import Classes, all_codes, spanned
from casemate.answer.measured_table import variance
from casemate.answer.relation import Relation
from casemate.doors.law import Law
from casemate.surrogate.product import Product

MOST_WHOLE = 2**17
"""Cells of a table of all codes: what is measured is learnt, which takes time by the cell."""

TOLERATED = Fraction(1, 2)
"""The whole table is taken if its error is within this share of what the gate lets pass."""


def table_for(
    asked: Asked, shape: tuple[int, ...], law: Law, relation: Relation, threshold: int
) -> Classes:
    """The table to measure for a question that the gate found too far off."""
    whole = all_codes(asked.scope, shape)
    if whole.cells > MOST_WHOLE:
        return spanned(asked)
    fits = predicted(asked, whole, law, relation) <= TOLERATED * threshold
    return whole if fits else spanned(asked)


def predicted(asked: Asked, classes: Classes, law: Law, relation: Relation) -> float:
    """The largest standard error of a cell that is read from a table, in sensitivities."""
    worst = 0.0
    for part in asked.parts:
        for cell in part.cells:
            square = sum(_square(classes, product) for product in cell)
            worst = max(worst, math.sqrt(square) / part.sensitivity(relation))
    return worst * math.sqrt(variance(law))


def _square(classes: Classes, product: Product) -> float:
    """The sum of the squared weights of the cells of a table in a product, without listing them."""
    return math.prod(float((factor**2).sum()) for factor in classes.factors(product))
