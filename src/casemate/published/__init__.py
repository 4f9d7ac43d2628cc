"""What was said: a log of statements and answers as equations in the secrets of records.

`publication` reads a log against an open table; `equations` makes one row for each published number
and one column for each secret, through what a statement shows (`shown`, `readable`, `rounding`) and
which coefficients stand behind it (`coefficients`); `knowledge` is what everybody knows beforehand,
`ranges` where formulas are exact, `people` whose row a record is, `predicates` equations that are
not stored, and `verified` compares the table's own answers with the formulas that stand for them.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.published.coefficients import integers, multiplied, unique_columns
    from casemate.published.knowledge import (
        Knowledge,
        about_people,
        box_of,
        prior_of,
        read_bounds,
        read_knowledge,
        record_name,
        region_of,
        share,
    )
    from casemate.published.links import Range
    from casemate.published.people import People, check_constant, plain
    from casemate.published.predicates import Number, fitting, is_large, numbers, summed
    from casemate.published.ranges import exact_ranges
    from casemate.published.shown import (
        ShownForm,
        exact,
        exact_value,
        presence,
        shown_as,
        shown_cells,
        whole_answer,
    )
    from casemate.published.statements import Publication, RefusedQuery, ShownColumn, publication
    from casemate.published.system import Equations, Place, equations, place_of, with_sides
    from casemate.published.verified import (
        column_values,
        multiplied_exactly,
        numerators,
        true_values,
        verified_equations,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
