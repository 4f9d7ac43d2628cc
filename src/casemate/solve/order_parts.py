"""Connected parts: records and questions that nothing published links can be judged apart."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from casemate.solve.order_clauses import Clauses, Propagation


def linked(size: int, groups: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The smallest member of each record's part, where the members of a group belong together.

    >>> linked(5, [np.array([1, 2]), np.array([2, 4])]).tolist()
    [0, 1, 1, 3, 1]
    """
    parent = list(range(size))

    def root(record: int) -> int:
        while parent[record] != record:
            parent[record] = parent[parent[record]]
            record = parent[record]
        return record

    for group in groups:
        roots = {root(record) for record in group.tolist()}
        least = min(roots, default=0)
        for each in roots:
            parent[each] = least
    return np.array([root(record) for record in range(size)], np.int64)


def parts(clauses: Clauses, propagation: Propagation) -> list[list[int]]:
    """The clauses that propagation left open, in connected parts."""
    open_clauses = np.flatnonzero(~propagation.satisfied).tolist()
    members = [np.array(clauses.records_of(clause), np.int64) for clause in open_clauses]
    free = [each[propagation.forced[each] == 0] for each in members]
    part = linked(len(clauses.low), free)
    found: dict[int, list[int]] = {}
    for clause, records in zip(open_clauses, free, strict=True):
        found.setdefault(int(part[records[0]]), []).append(clause)
    return list(found.values())
