"""A reconstruction that follows answers as they are published, and keeps no query.

Source     Source document 002, "Handling many queries": equations that are seen once, because there
           are too many of them to keep, or it is not allowed to.
Cost       One scan of the table for each statement, to see whom it is about; then a step of the
           method: the entries of the equation for `kaczmarz` and `sgd`, the square of the number of
           unknowns for `recursive` (`RecursiveSquares`), which is exact after every answer.
"""

from decimal import Decimal
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.sgd import EquationStream
from casemate.errors import Misconfigured, Unsupported
from casemate.exact import Floats
from casemate.published import Equations, Knowledge, equations, prior_of, publication
from casemate.query.parse import DIALECT, Logged
from casemate.query.records import Unknown, all_records
from casemate.table import Table


class RecursiveSquares:
    """Least squares of equations that come one by one, exact after each of them.

    Method     The square-root form: what was seen is kept as a triangle of as many rows as there
               are unknowns, of the same least squares. New rows stand below it until they are as
               many again; then an orthogonal transformation makes a new triangle of both.
               Coefficients are never squared, so that the condition does not get worse.
    Guarantee  The point is the shortest of the best, up to rounding, after every equation.
    Cost       Memory 16 n^2 bytes for n unknowns; about 3 n^2 operations an equation, and a
               singular value decomposition when the point is asked for.

    >>> seen = RecursiveSquares(3)
    >>> seen.see(np.array([0, 1]), 6.0)
    >>> seen.see(np.array([2]), 4.0, np.array([2.0]))
    >>> seen.point.round(9).tolist()
    [3.0, 3.0, 2.0]
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: Floats = np.zeros((2 * width + 2, width + 1))  # the last column: answers
        self._used = 0
        self._found: Floats | None = np.zeros(width)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""
        factors = np.ones(len(columns)) if values is None else values.astype(np.float64)
        length = float(np.linalg.norm(factors))
        if length == 0:
            return
        if self._used == len(self._rows):
            self._shrink()
        row = self._rows[self._used]
        row[:] = 0.0
        row[columns] = factors / length
        row[-1] = answer / length
        self._used += 1
        self._found = None

    @property
    def point(self) -> Floats:
        """The shortest of the points at which the equations come closest to holding."""
        if self._found is None:
            seen = self._rows[: self._used]
            self._found = np.linalg.lstsq(seen[:, :-1], seen[:, -1])[0].astype(np.float64)
        return self._found

    def _shrink(self) -> None:
        """As many rows as there are columns, of the same least squares."""
        triangle = np.linalg.qr(self._rows, mode="r")
        self._used = len(triangle)
        self._rows[: self._used] = triangle


# Online -----------------------------------------------------------------------------------------


Method = Literal["kaczmarz", "sgd", "recursive"]
_SIGMOID = {"kaczmarz": False, "sgd": True}
"""How streams are kept in their box: by clipping, or by the sigmoid."""


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
        self._point: RecursiveSquares | EquationStream = RecursiveSquares(len(self.records))
        if method != "recursive":
            self._point = EquationStream(
                len(self.records),
                low=ends[0],
                high=ends[1],
                sigmoid=_SIGMOID[method],
                averaged=noisy,
            )
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
