"""A reconstruction that follows answers as they are published, and keeps no query.

Source     Source document 002, "Handling many queries": equations that are seen once, because there
           are too many of them to keep, or it is not allowed to.
Cost       One scan of the table for each statement, to see whom it is about; then a step of the
           method: the entries of the equation for `kaczmarz` and `sgd`, the square of the number of
           unknowns for `recursive`, which is exact after every answer.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured, Unsupported
from casemate.published.equations import Equations, equations
from casemate.published.knowledge import Knowledge, prior_of
from casemate.published.publication import publication
from casemate.query.lineage import all_records
from casemate.query.linear import Unknown
from casemate.query.log import Logged
from casemate.query.sql import DIALECT
from casemate.solve.kaczmarz import Stream
from casemate.solve.recursive_squares import RecursiveSquares
from casemate.solve.rows import Floats
from casemate.solve.sgd import SigmoidStream
from casemate.table.table import Table

Method = Literal["kaczmarz", "sgd", "recursive"]


class Seeing(Protocol):
    """A point that follows equations as they come."""

    @property
    def point(self) -> Floats:
        """Where it is now."""

    def see(
        self, columns: NDArray[np.integer[Any]], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients, and the answer."""


class OnlineReconstruction:
    """The private numbers of a table, as far as the answers seen so far tell them.

    >>> table = Table.open("hospital")
    >>> seen = OnlineReconstruction(table, "Blood sugar", method="recursive")
    >>> seen.see('SELECT SUM("Blood sugar") FROM t', 32.1)
    >>> seen.see('SELECT SUM("Blood sugar") FROM t WHERE ZIP <> 43813', 26.9)
    >>> round(float(seen.values[1]), 6), seen.seen
    (5.2, 2)
    >>> table.close()
    """

    def __init__(
        self,
        table: Table,
        private: str,
        *,
        method: Method = "kaczmarz",
        knowledge: Knowledge | None = None,
        noisy: bool = False,
        dialect: str = DIALECT,
    ) -> None:
        """Follow the numbers of one private column; `noisy` answers are averaged."""
        column = table.policy.column(private)
        if column is None or column not in table.policy.private():
            raise Misconfigured(f"{private} is not a private column of the table; name one that is")
        self._table, self._unknown, self._dialect = table, Unknown(private), dialect
        self.records = all_records(table.source)
        low, high, _ = prior_of(private, None, table.policy, knowledge or Knowledge())
        ends = (
            -np.inf if low is None else float(low),
            np.inf if high is None else float(high),
        )
        self._point = _METHODS[method](len(self.records), ends, noisy)
        self.seen = 0

    @property
    def values(self) -> Floats:
        """What each record's value is taken to be, in the order of `records`."""
        return self._point.point

    def see(self, sql: str, answer: float | Decimal) -> None:
        """Take in the answer of a statement that shows one number."""
        number = Decimal(str(answer))
        if not number.is_finite():
            raise Misconfigured("the answer is not a finite number; leave the statement out")
        policy, source = self._table.policy, self._table.source
        found = publication([Logged(sql, 1, number)], policy, self._dialect)
        if not found.columns:
            why = found.refused[0].reason if found.refused else "it is about nothing private"
            raise Unsupported(why, sql)
        self._take(equations(found.columns, policy, source), sql)
        self.seen += 1

    def _take(self, system: Equations, sql: str) -> None:
        if any(each != self._unknown for each in system.unknowns):
            raise Unsupported(f"it is not about sums of {self._unknown.column} alone", sql)
        for row in range(system.system.rows):
            mine = system.system.row == row
            where = system.record[system.system.column[mine]]
            factors = system.system.value[mine].astype(np.float64)
            self._point.see(where, float(system.low[row]), factors)


def _kaczmarz(width: int, box: tuple[float, float], noisy: bool) -> Seeing:
    return Stream(width, low=box[0], high=box[1], averaged=noisy)


def _sgd(width: int, box: tuple[float, float], noisy: bool) -> Seeing:
    return SigmoidStream(width, low=box[0], high=box[1], averaged=noisy)


def _recursive(width: int, _: tuple[float, float], __: bool) -> Seeing:
    return RecursiveSquares(width)


_METHODS: dict[str, Callable[[int, tuple[float, float], bool], Seeing]] = {
    "kaczmarz": _kaczmarz,
    "sgd": _sgd,
    "recursive": _recursive,
}
