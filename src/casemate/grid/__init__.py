"""Statements on the policy's cells, without looking at any data.

`compile` makes a question of a statement (`aggregates`, `sums`, `ranks`), `question` is that
question as weighted sums of counts, `classes` the coarsest table that it needs and the private
cells that the doors read; `direct` measures a statement beside the grid. `readings`, `rows` and
`outcome` go back from numbers to SQL rows; `product`, `measured_table` and `summed_area` are
tables of counts and sums over ranges of them.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.grid.classes import (
        MOST_AREA_AXES,
        MOST_WHOLE,
        Classes,
        PrivateCells,
        all_codes,
        spanned,
    )
    from casemate.grid.compile import Compiled, compiled
    from casemate.grid.direct import Direct, Spread
    from casemate.grid.measured_table import MeasuredTable, TableQuestion, measure_table
    from casemate.grid.outcome import Estimate, Noised, Origin, Outcome
    from casemate.grid.product import (
        Floats,
        Marginal,
        Mask,
        MeasuredMarginal,
        MeasuredProduct,
        Measurement,
        Product,
        Scope,
    )
    from casemate.grid.question import LARGEST_SHOWN, GridQuestion, LinearCells, Relation, off_ratio
    from casemate.grid.rows import Cell, ShownTable
    from casemate.grid.summed_area import (
        MarginalTables,
        agreed,
        contracted,
        gather,
        marginals,
        over_many_ranges,
        over_ranges,
        spread,
        spread_then_gather,
        summed_over,
        tilt,
        tilt_then_weigh,
        weigh,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
