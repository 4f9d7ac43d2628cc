"""How much work a question may be: limits that follow from the question and the grid alone.

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

from casemate.answer.schedule import MAX_MEASURED_CODES
from casemate.errors import Unsupported
from casemate.grid import (
    MAX_AREA_AXES,
    MAX_COUNTED_CODES,
    CellClasses,
    GridQuestion,
    Product,
    all_codes,
    coarsest_classes,
)
from casemate.surrogate import MAX_DENSE_CELLS, MAX_REFITTED_CELLS, MAX_REPLICATES, caches_marginal

MAX_MEASURED_CELLS = 2**20
"""Cells of a measured table."""

MAX_CELL_READS = 2**35
"""Looks at cells for one question: about half a minute."""

UNCOUNTED_CELL_READS = MAX_CELL_READS // 2**9
"""So many are not counted one by one."""


def require_answerable(asked: GridQuestion) -> None:
    """Refuse a question that takes too much memory or too much time, whatever the data are."""
    classes = coarsest_classes(asked)
    if classes.cells > MAX_MEASURED_CELLS:
        raise Unsupported(
            f"this statement tells more than {MAX_MEASURED_CELLS:,} kinds of people apart; "
            f"ask for fewer groups or conditions at once"
        )
    if cell_reads(asked, classes) > MAX_CELL_READS:
        raise Unsupported(
            f"this statement would look at cells more than {MAX_CELL_READS:,} times; "
            f"ask for fewer groups or conditions at once"
        )


def cell_reads(asked: GridQuestion, classes: CellClasses) -> int:
    """How often a cell is looked at for a question at most."""
    products = [product for part in asked.parts for product in part.products]
    shape, whole, total = asked.shape, all_codes(asked.scope, asked.shape), 0
    listed = [each for each in products if each.ranges is None or len(each.scope) > MAX_AREA_AXES]
    if math.prod(shape) <= MAX_DENSE_CELLS:
        everything = all_codes(tuple(range(len(shape))), shape)
        total = _cells_inside(
            [each for each in products if not caches_marginal(shape, each.scope)], everything
        )
    if whole.cells <= MAX_REFITTED_CELLS:
        total += 2 * MAX_REPLICATES * _cells_inside(listed, whole)
    if whole.cells <= MAX_COUNTED_CODES:
        total += 2 * _cells_inside(listed, whole)
    if whole.cells <= MAX_MEASURED_CODES:
        return total + _cells_inside(products, whole)
    return total + 2 * _cells_inside(products, classes)


def _cells_inside(products: Sequence[Product], classes: CellClasses) -> int:
    """The cells of a table inside all products; not worked out where it is few in any case."""
    if len(products) * classes.cells <= UNCOUNTED_CELL_READS:
        return len(products) * classes.cells
    supports = ([np.count_nonzero(f) for f in classes.factors(product)] for product in products)
    return sum(math.prod(map(int, each)) for each in supports)
