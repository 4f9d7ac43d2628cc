"""Exact arithmetic: linear systems in integers, what they determine, and proofs of it.

`system` holds sparse integer equations; `rank` takes them one at a time and `determination` all at
once, in prime fields (`modular`, `elimination`) with exact rational solutions by
`lifting`; `certificate` is the proof of one unknown, and `proofs` are those for a reader: short
ones, and one for all. `region` is what is known beforehand, `linear_program` bounds columns over
one, `rows` are equations in doubles, `sketch` decides without stored equations, and
`order_question` is what extremes and medians say.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.exact.certificate import (
        Certificate,
        IntegerRows,
        Target,
        certify,
        certify_targets,
        tipping_equations,
    )
    from casemate.exact.determination import (
        Determined,
        NullVectors,
        determine,
        determined_columns,
        more_null_vectors,
    )
    from casemate.exact.lifting import (
        nearest_fractions,
        over_common_denominator,
        reconstruct_rational,
    )
    from casemate.exact.linear_program import (
        BOUND_TOLERANCE,
        LinearProgram,
        Scaled,
        Status,
        Vertex,
        analytic_centre,
        load_highs,
        status_of,
    )
    from casemate.exact.modular import (
        WIDE_PRIME_BITS,
        RandomBytes,
        Vector,
        random_below,
        random_prime,
        random_primes,
    )
    from casemate.exact.order_question import (
        COUNTS,
        THRESHOLDS,
        Domain,
        Exact,
        Kind,
        OrderQuestion,
        denominator_of,
        integer_array,
    )
    from casemate.exact.proofs import certify_with, prove, short_certificates
    from casemate.exact.rank import PRIME_COUNT, Added, Pivot, PivotBasis, RankStep, RowSpace
    from casemate.exact.region import Bound, Box, Region, is_empty, within
    from casemate.exact.rows import ANY_ORDER, Floats, Passes, RowArrays, Rows, box_ends
    from casemate.exact.sketch import (
        NOBODY,
        Combination,
        Name,
        Places,
        Proved,
        Residues,
        Sketches,
        SketchSearch,
        Vanishing,
        determine_sketched,
        pack_combinations,
    )
    from casemate.exact.system import Equation, System, equations, weighted_sum
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
