"""What to measure when the gate fires, by the error that is predicted for the question.

Every candidate costs the same, because one person moves one cell of any table. The table of all
codes of the scope also answers what will be asked next about it, so it is taken where it answers
this question well enough; a sum over thousands of noisy cells does not, and then the coarsest table
that answers the question is. Both are functions of the question and of public noise.
"""

import math
from fractions import Fraction

import numpy as np

from casemate.answer.asked import Asked
from casemate.answer.classes import Classes, all_codes, spanned
from casemate.answer.measured_table import variance
from casemate.answer.relation import Relation
from casemate.doors.law import Law
from casemate.errors import Unsupported

MOST_CELLS = 2**20
"""Cells of a measured table."""

TOLERATED = Fraction(1, 2)
"""The whole table is taken if its error is within this share of what the gate lets pass."""


def require_answerable(asked: Asked) -> None:
    """Refuse a question that no table of a measurable size answers."""
    if math.prod(spanned(asked).sizes) > MOST_CELLS:
        raise Unsupported(
            f"this statement tells more than {MOST_CELLS:,} kinds of people apart; "
            f"ask for fewer groups or conditions at once"
        )


def table_for(
    asked: Asked, shape: tuple[int, ...], law: Law, relation: Relation, threshold: int
) -> Classes:
    """The table to measure for a question that the gate found too far off."""
    whole = all_codes(asked.scope, shape)
    if whole.cells > MOST_CELLS:
        return spanned(asked)
    fits = predicted(asked, whole, law, relation) <= TOLERATED * threshold
    return whole if fits else spanned(asked)


def predicted(asked: Asked, classes: Classes, law: Law, relation: Relation) -> float:
    """The largest standard error of a cell that is read from a table, in sensitivities."""
    worst = 0.0
    for part in asked.parts:
        for cell in part.cells:
            weights = sum((classes.reading(each) for each in cell), start=np.zeros(()))
            square = float((weights**2).sum())
            worst = max(worst, math.sqrt(square) / part.sensitivity(relation))
    return worst * math.sqrt(variance(law))
