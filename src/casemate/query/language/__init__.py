"""The closed language into which accepted SQL is translated: typed expressions over one row.

`expression` has its values, and `operations` is the only way to make a `Call`, with the types of
`coercion`; `interpret` is its meaning, one value at a time, and the reference for every engine;
`intervals` says between which numbers an expression lies, and `exactness` proves that every engine
computes it as the formula says.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.language.coercion import NUMBERS, TIMES, coerce
    from casemate.query.language.exactness import LARGEST_STEP, exact, within_range
    from casemate.query.language.expression import (
        TRUE,
        Call,
        ColumnRef,
        Expression,
        KeyRef,
        Literal,
        Operation,
        ResultRef,
        Scalar,
        all_of,
        columns_of,
        conjuncts,
        present,
        private_columns,
        substitute,
        walk,
    )
    from casemate.query.language.interpret import LARGEST_DOUBLE, apply, cast_value, evaluate
    from casemate.query.language.intervals import Interval
    from casemate.query.language.operations import FRACTION_DIGITS, arithmetic, cast, simplify
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
