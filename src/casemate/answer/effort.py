"""How much work a question is: limits that follow from the question and the grid alone.

Guarantee  A question within the limits is answered in bounded memory and time, whatever the table
           holds; one beyond them is refused before a run is opened or anything is charged. So
           neither a failure nor the lack of one after a charge says anything about the data.
Classes    Noised, kept and read, a table has a number for each combination of the classes that the
           question tells apart, or for each of the codes where those are few.
Looks      Every product looks at the cells inside it: in the private counts, in the stand-in, in
           its replicates and in the table that is measured. A second is about 10^9 looks.
"""

import math
from collections.abc import Sequence

import numpy as np

from casemate.answer import schedule as surprise
from casemate.errors import Unsupported
from casemate.grid import (
    MOST_AREA_AXES,
    MOST_WHOLE,
    Classes,
    Floats,
    GridQuestion,
    Product,
    Scope,
    spanned,
)
from casemate.surrogate import DENSEST, LARGEST, WORLDS, remembers

MOST_CELLS = 2**20
"""Cells of a measured table."""

MOST_LOOKS = 2**35
"""Looks at cells for one question: about half a minute."""

FEW_LOOKS = MOST_LOOKS // 2**9
"""So many are not counted one by one."""


def require_answerable(asked: GridQuestion) -> None:
    """Refuse a question that takes too much memory or too much time, whatever the data are."""
    classes = spanned(asked)
    if classes.cells > MOST_CELLS:
        raise Unsupported(
            f"this statement tells more than {MOST_CELLS:,} kinds of people apart; "
            f"ask for fewer groups or conditions at once"
        )
    if looks(asked, classes) > MOST_LOOKS:
        raise Unsupported(
            f"this statement would look at cells more than {MOST_LOOKS:,} times; "
            f"ask for fewer groups or conditions at once"
        )


def looks(asked: GridQuestion, classes: Classes) -> int:
    """How often a cell is looked at for a question at most."""
    products = [product for part in asked.parts for product in part.products]
    shape, codes = asked.shape, _cells(asked.shape, asked.scope)
    listed = [each for each in products if each.ranges is None or len(each.scope) > MOST_AREA_AXES]
    if math.prod(shape) <= DENSEST:
        total = _inside([each for each in products if not remembers(shape, each.scope)], shape)
    else:
        total = 0
    if codes <= LARGEST:
        total += 2 * WORLDS * _inside(listed, shape, asked.scope)
    if codes <= MOST_WHOLE:
        total += 2 * _inside(listed, shape, asked.scope)
    if codes <= surprise.MOST_WHOLE:
        return total + _inside(products, shape, asked.scope)
    return total + 2 * _inside_classes(products, classes)


def _cells(shape: tuple[int, ...], scope: Scope) -> int:
    return math.prod(shape[attribute] for attribute in scope)


def _inside(products: Sequence[Product], shape: tuple[int, ...], scope: Scope | None = None) -> int:
    """The cells of a scope inside all products; not worked out where it is few in any case."""
    scope = tuple(range(len(shape))) if scope is None else scope
    cells = _cells(shape, scope)
    if len(products) * cells <= FEW_LOOKS:
        return len(products) * cells
    return sum(_support([each.factor(attribute) for attribute in scope]) for each in products)


def _inside_classes(products: Sequence[Product], classes: Classes) -> int:
    if len(products) * classes.cells <= FEW_LOOKS:
        return len(products) * classes.cells
    return sum(_support(classes.factors(product)) for product in products)


def _support(factors: Sequence[Floats]) -> int:
    """How many cells have no factor of zero."""
    return math.prod(int(np.count_nonzero(factor)) for factor in factors)
