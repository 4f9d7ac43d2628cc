"""What an audit says of each record, and the second tables that show it."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from casemate.solve.order_case import Case
from casemate.solve.order_question import Exact

Proof = Literal["order", "bounds", "integer"]


@dataclass(frozen=True)
class Exposed:
    """Every table that gives the published answers has this value here."""

    value: Exact
    proof: Proof


@dataclass(frozen=True)
class Free:
    """Another table gives the published answers and differs here by the protection width."""

    witness: int  # its place among the verdicts' witnesses


@dataclass(frozen=True)
class Tight:
    """No table that gives the published answers differs here by the protection width."""


@dataclass(frozen=True)
class Undecided:
    """Neither was shown within the limit; it counts as not safe."""


Verdict = Exposed | Free | Tight | Undecided


@dataclass(frozen=True, eq=False)
class Witness:
    """A second table: the truth, except at these positions."""

    positions: NDArray[np.int64]
    values: tuple[Exact, ...]

    def applied_to(self, truth: list[Exact]) -> list[Exact]:
        """The whole second table.

        >>> Witness(np.array([1]), (7,)).applied_to([1, 2, 3])
        [1, 7, 3]
        """
        table = list(truth)
        for position, value in zip(self.positions.tolist(), self.values, strict=True):
            table[position] = value
        return table


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The verdict of every record, in order, with what they refer to.

    `together` bounds how many of the undecided can differ in one and the same second table.
    """

    records: tuple[Verdict, ...]
    witnesses: tuple[Witness, ...]
    contradicted: tuple[int, ...]  # places of questions that the table does not answer so
    together: int

    def positions(self, kind: type[Verdict]) -> list[int]:
        """The records with a verdict of this kind."""
        return [place for place, verdict in enumerate(self.records) if isinstance(verdict, kind)]


class Findings:
    """What an audit has shown so far; a second table is re-evaluated before it is believed."""

    def __init__(self, case: Case) -> None:
        size = len(case.truth)
        self.case = case
        self.exposed = np.zeros(size, bool)
        self.free = np.zeros(size, bool)
        self.loose = np.zeros(size, bool)  # some second table differs here, by however little
        self.narrow = np.zeros(size, bool)  # no second table differs here by the width
        self._proof: dict[int, Proof] = {}
        self._witness_of = np.full(size, -1)
        self._witnesses: list[Witness] = []
        self._together = 0

    @property
    def open(self) -> NDArray[np.bool_]:
        """Records about which something is still to be shown."""
        return ~(self.exposed | self.free | (self.narrow & self.loose))

    def expose(self, records: NDArray[np.int64], proof: Proof) -> None:
        """These are determined."""
        fresh = records[~self.exposed[records]]
        self.exposed[fresh] = True
        self._proof.update(dict.fromkeys(fresh.tolist(), proof))

    def confine(self, records: NDArray[np.int64]) -> None:
        """These cannot differ by the width."""
        self.narrow[records] = True

    def offer(self, records: NDArray[np.int64], values: NDArray[Any]) -> bool:
        """Take the truth with these values put in as a witness, if it gives every answer."""
        case = self.case
        differs = values != case.truth[records]
        records, values = records[differs], values[differs]
        table = case.truth.copy()
        table[records] = values
        if not case.believes(table, records):
            return False
        self.loose[records] = True
        far = abs(values - case.truth[records]) >= case.width[records]
        fresh = records[far & ~self.free[records]]
        if len(fresh):
            self.free[fresh] = True
            self._witness_of[fresh] = len(self._witnesses)
            self._witnesses.append(Witness(records, tuple(map(case.unscaled, values.tolist()))))
        return True

    def give_up(self, bound: int) -> None:
        """Some records of one part stay undecided; at most `bound` of them differ together."""
        self._together += bound

    def verdicts(self, contradicted: tuple[int, ...]) -> Verdicts:
        """All of it as a value."""
        records = tuple(map(self._verdict, range(len(self.free))))
        undecided = sum(isinstance(verdict, Undecided) for verdict in records)
        together = min(undecided, self._together)
        return Verdicts(records, tuple(self._witnesses), contradicted, together)

    def _verdict(self, record: int) -> Verdict:
        if self.exposed[record]:
            truth = self.case.unscaled(self.case.truth[record])
            return Exposed(truth, self._proof[record])
        if self.free[record]:
            return Free(int(self._witness_of[record]))
        return Tight() if self.narrow[record] else Undecided()
