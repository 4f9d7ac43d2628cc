"""Questions on the cells of a universe: which cells a statement reads, and how.

`cells` finds where along a column anything changes, and what an expression comes to in each cell;
`snapping` makes sets of cells of predicates, sums and groups; `steps` makes step functions of keys
and conditions; `histograms` counts records by cell in one grouped statement for each scope.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.snapping.cells import StepFunction, breaks, merge_pieces, step_function
    from casemate.query.snapping.histograms import (
        MAX_UNITS_PER_ROW,
        Summand,
        code,
        grouped_first,
        histogram,
        reference_to,
    )
    from casemate.query.snapping.snapping import (
        Bits,
        KeyGroups,
        Product,
        Snapped,
        attribute_of,
        cells_of,
        selection,
        sum_spans,
        unconditional,
    )
    from casemate.query.snapping.steps import (
        Condition,
        StepKeys,
        condition_of,
        keys_of,
        with_engine_conditions,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
