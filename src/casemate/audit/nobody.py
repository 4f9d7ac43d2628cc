"""Statements that are about nobody: a mistake in their conditions, more often than not."""

from collections.abc import Iterable

import numpy as np

from casemate.audit.case import Case
from casemate.audit.order import Ordered


def about_nobody(case: Case, ordered: Iterable[Ordered]) -> tuple[str, ...]:
    """A sentence for each statement in which no record counts."""
    system, places = case.equations.system, case.equations.places
    counted = {places[row].query for row in np.unique(system.row).tolist()}
    counted.update(query for each in ordered for query in each.queries)
    read = {column.query for column in (*case.publication.columns, *case.publication.ordered)}
    left_out = {each.query for each in case.publication.refused}
    return tuple(
        f"query {query} is about nobody: no record counts in it; check its conditions"
        for query in sorted(read - counted - left_out)
    )
