"""Statements on the policy's cells: SQL to one question, its tables of counts, and back to rows.

`compile` makes a question of a statement, with the units of `sums` and the steps of `ranks`;
`question` is that question as weighted sums of counts, and how far it moves between neighbours;
`product` is one term of it, and sums over tables of counts. Its classes are the coarsest table
that answers it, `measured_table` is that table once it was measured, and `effects` what several
of them together say of a question; `centred_sums` are tables of sums. `private_cells` reads the
exact counts for the doors, and `direct` measures a statement beside the grid: these two look at the
data, everything else here does not. `readings` and `rows` go back from numbers to SQL rows.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.grid.centred_sums import CentredSums, sums_by_attribute
    from casemate.grid.compile import Compiled, compile_statement
    from casemate.grid.direct import Direct, Spread
    from casemate.grid.effects import Effects, LinearEstimate
    from casemate.grid.measured_table import MeasuredTable, TableQuestion, measure_table
    from casemate.grid.private_cells import MAX_AREA_AXES, MAX_COUNTED_CODES, PrivateCells
    from casemate.grid.product import (
        Floats,
        Marginal,
        Mask,
        MeasuredMarginal,
        MeasuredProduct,
        Measurement,
        Product,
        Scope,
        contract,
        over_many_ranges,
        over_ranges,
        summed_area,
    )
    from casemate.grid.question import (
        MAX_CANONICAL_CELLS,
        CellClasses,
        CellSplit,
        GridQuestion,
        LinearCells,
        Relation,
        all_codes,
        coarsest_classes,
        ratio_residual,
        shifted_product,
        split_of,
    )
    from casemate.grid.readings import (
        USUAL_SKEW,
        Estimate,
        Noised,
        Origin,
        Outcome,
        ProofSource,
        Ratio,
        joint_proof,
    )
    from casemate.grid.rows import Cell, ShownTable
    from casemate.grid.sums import DeclaredSums, declared_sums
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
