"""What was said: a log of statements and answers as equations in the secrets of records.

`evidence` reads a log against an open table: a publication (`statements`, with what each column
shows from `shown`) and the policy it was read with. `equation_system` makes one row for each
published number and one column for each secret, with the coefficients from `cell_secrets`;
`plain_sums` are the numbers of tables too long for that, and `predicates` their equations, which
are not stored. `knowledge` is what everybody knows beforehand, `premises` how far the table keeps
to it, `ranges` where formulas are exact, `people` whose row a record is, `read_out` whose values
single rows show, and `verified` compares the table's own answers with the formulas that stand for
them.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.published.cell_secrets import Secrets, integer_row, numerators
    from casemate.published.equation_system import (
        Equations,
        Place,
        equations,
        place_of,
        with_rows,
        with_sides,
    )
    from casemate.published.evidence import (
        LogEvidence,
        evidence_of,
        missing_counts,
        with_missingness,
    )
    from casemate.published.knowledge import (
        Knowledge,
        Range,
        about_people,
        box_of,
        prior_of,
        read_bounds,
        read_knowledge,
        record_name,
        region_of,
        share,
    )
    from casemate.published.people import People, check_constant, plain
    from casemate.published.plain_sums import (
        MAX_STORED_ENTRIES,
        Number,
        is_large,
        numbers,
        plain_sum_term,
    )
    from casemate.published.predicates import fitting
    from casemate.published.premises import Premises, true_bounds, true_values_known
    from casemate.published.read_out import ReadValue, RowsRead, rows_read, with_implied_sums
    from casemate.published.shown import (
        ShownForm,
        exact,
        exact_value,
        presence,
        shown_as,
        shown_cells,
        whole_answer,
    )
    from casemate.published.statements import (
        Publication,
        RefusedQuery,
        ShownColumn,
        publication,
    )
    from casemate.published.verified import (
        column_values,
        multiply_exactly,
        true_values,
        verified_equations,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
