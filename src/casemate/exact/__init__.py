"""Exact arithmetic: linear systems in integers, what they determine, and proofs of it.

`System` holds sparse integer equations; `rank` takes them one at a time and `unknowns` all at once,
in prime fields (`modular`, `elimination`, `primes`) with exact rational solutions by `lifting`;
`certificate` and `joint_proof` are the proofs. `Box` and `Region` are what is known beforehand,
`linear_program` bounds columns over a region, `rows` are equations in doubles, `sketch` exposure
without stored equations, and `order_question` what extremes and medians say.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.exact.box import Bound, Box, Region, is_empty, within
    from casemate.exact.certificate import (
        Certificate,
        IntegerRows,
        Target,
        certify,
        certify_targets,
        tipped_by,
    )
    from casemate.exact.joint_proof import prove
    from casemate.exact.lifting import over_common_denominator, rational, simple
    from casemate.exact.linear_program import (
        TOLERANCE,
        LinearProgram,
        Scaled,
        Status,
        Vertex,
        centre,
    )
    from casemate.exact.modular import Vector
    from casemate.exact.order_question import (
        COUNTS,
        THRESHOLDS,
        Contradictory,
        Domain,
        Exact,
        Kind,
        OrderQuestion,
        denominator_of,
        integers,
    )
    from casemate.exact.primes import WIDE, RandomBytes, random_below, random_prime, random_primes
    from casemate.exact.rank import PRIMES, Added, Pivot, PivotBasis, RankStep, RowSpace
    from casemate.exact.rows import ANY_ORDER, Floats, Passes, Rows, ends, times
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
        exposed,
        weighed_together,
    )
    from casemate.exact.system import Equation, System, equations, weighted_sum
    from casemate.exact.unknowns import (
        Exposure,
        NullVectors,
        determined,
        exposure,
        more_null_vectors,
        on_equations,
        short,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
