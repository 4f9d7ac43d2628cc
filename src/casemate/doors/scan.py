"""Reading private cells on behalf of a door, so that a failure says nothing about them."""

from collections.abc import Callable, Sequence
from operator import index

from casemate.errors import CasemateError, ScanFailed

Cells = Sequence[int]
"""Integers on a grid: counts, or sums that were clamped and scaled."""

Scan = Callable[[], Sequence[Cells]]
"""Reads the exact cells of a question, one sequence for each of its parts."""

FAILURES = (CasemateError, ArithmeticError, LookupError, OSError, ValueError)


def scanned(scan: Scan, sizes: Sequence[int]) -> list[list[int]]:
    """The exact cells, of these public sizes; whatever goes wrong gives one constant message.

    Both doors come here after they have charged, so a failure is never free.
    """
    try:
        parts = [[index(cell) for cell in cells] for cells in scan()]
    except FAILURES:
        raise ScanFailed from None
    if [len(cells) for cells in parts] != list(sizes):
        raise ScanFailed
    return parts
