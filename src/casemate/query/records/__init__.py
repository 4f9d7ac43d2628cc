"""Which records enter which number: memberships as bits, and coefficients of what is secret.

`linear` writes an aggregate as a linear form in secrets, where `exactness` of the language proves
that every engine computes that form, and `coefficients` reads how much of each record's secret
enters; `coding` and `bitsets` say which records a predicate selects.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.language.exactness import inexact
    from casemate.query.records.bitsets import Membership, Records, membership
    from casemate.query.records.coding import factorise
    from casemate.query.records.coefficients import Cell, Lineage, all_records, lineage
    from casemate.query.records.linear import (
        ONE,
        Category,
        Cut,
        Term,
        Unknown,
        affine,
        counting,
        inexact_parts,
        linear_form,
        next_whole,
        possible_values,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
