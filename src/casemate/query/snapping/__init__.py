"""Questions on the cells of a universe: which cells a statement reads, and how.

`breakpoints` finds where along a column anything changes; `steps` makes step functions of keys and
conditions; `histograms` counts records by cell in one grouped statement for each scope.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.snapping.breakpoints import breaks
    from casemate.query.snapping.cells import StepFunction, merged, step_function
    from casemate.query.snapping.groups import KeyGroups, cells_of
    from casemate.query.snapping.histograms import (
        LARGEST,
        Summand,
        code,
        grouped_first,
        histogram,
        reference_to,
    )
    from casemate.query.snapping.snapping import (
        Bits,
        Product,
        Snapped,
        attribute_of,
        selection,
        summed,
        unconditional,
    )
    from casemate.query.snapping.steps import (
        Condition,
        StepKeys,
        condition_of,
        keys_of,
        with_decided_cases,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
