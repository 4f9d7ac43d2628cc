"""Where to put the threshold for a belief of some width, and how to read the bit: by law.

A rule holds no state. `UniformRule` has closed forms for every offset; `TableRule` looks its own
offsets up, and reads any other by quadrature.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from casemate.solve.one_bit.edge_reading import (
    EDGE_RHO,
    SEARCH_RHO,
    Reading,
    reading_of,
    uniform_moments,
)
from casemate.solve.one_bit.edge_table import (
    COUNTED,
    LEAN,
    OFFSET,
    EdgeTable,
    damping,
    edge_table,
    is_counted,
    law_reading,
)
from casemate.solve.one_bit.laws import Law, Uniform, effective_scale
from casemate.solve.one_bit.protocol import Floats

WIDE = 0.45
"""Deviations above this part of the bound ask at the median of uniform noise."""

INWARD = (0.9, 0.7, 0.9)
"""How many deviations inside the edge to ask, as a polynomial of the deviation over the bound."""

Compiled = tuple[float, float, float, Floats]
"""What compiled steps take from a rule: bound (0: none), squared scale, table scale, table rows."""


class Rule(Protocol):
    """Thresholds and readings for one law."""

    def lean(self, deviation: float) -> float:
        """The chance with which the upper side of the law is asked."""
        ...

    def offset(self, deviation: float, upper: bool) -> float:
        """Where to ask on one side, counted from the mean of the belief."""
        ...

    def read(self, deviation: float, offset: float) -> tuple[Reading, float, bool]:
        """The reading, the part of its shrinking to believe, and whether a guard counts it."""
        ...

    @property
    def compiled(self) -> Compiled:
        """The same for compiled steps."""
        ...


def rule_for(law: Law) -> Rule:
    """The closed form where there is one, otherwise a table."""
    return UniformRule(law.u) if isinstance(law, Uniform) else TableRule(law)


@dataclass(frozen=True)
class UniformRule:
    """Noise even on [-bound, bound]."""

    bound: float

    def lean(self, deviation: float) -> float:  # noqa: ARG002 - as the protocol has it
        """Either side alike."""
        return 0.5

    def offset(self, deviation: float, upper: bool) -> float:
        """The middle for a wide belief; for a narrow one a little inside an edge."""
        ratio = deviation / self.bound
        if ratio > WIDE:
            return 0.0
        inside = deviation * (INWARD[0] + ratio * (INWARD[1] + ratio * INWARD[2]))
        return self.bound - inside if upper else inside - self.bound

    def read(self, deviation: float, offset: float) -> tuple[Reading, float, bool]:
        """By the closed form."""
        reading = reading_of(uniform_moments(self.bound, offset, deviation))
        counted = is_counted(reading)
        if counted:
            return reading, EDGE_RHO, True
        share = deviation**2 / (deviation**2 + effective_scale(Uniform(self.bound)) ** 2)
        return reading, 1 - (1 - SEARCH_RHO) * share, False

    @property
    def compiled(self) -> Compiled:
        """The bound; no table."""
        squared = effective_scale(Uniform(self.bound)) ** 2
        return self.bound, squared, 1.0, np.zeros((1, 2, 8))


@dataclass(frozen=True)
class TableRule:
    """Noise of any law."""

    law: Law

    @cached_property
    def table(self) -> EdgeTable:
        """The law's table, made when it is first needed."""
        return edge_table(self.law)

    def lean(self, deviation: float) -> float:
        """The side with the larger gain; either where they are alike."""
        return float(self.table.rows[self.table.place(deviation), 0, LEAN])

    def offset(self, deviation: float, upper: bool) -> float:
        """From the table."""
        return float(self.table.rows[self.table.place(deviation), 0 if upper else 1, OFFSET])

    def read(self, deviation: float, offset: float) -> tuple[Reading, float, bool]:
        """From the table if it is one of its offsets, otherwise by quadrature."""
        for row in self.table.rows[self.table.place(deviation)]:
            if abs(row[OFFSET] - offset) <= 1e-6 * deviation:
                return Reading(*row[1:6].tolist()), 1.0, bool(row[COUNTED])
        reading = law_reading(self.law, offset, deviation)
        return reading, damping(self.law, deviation, offset), is_counted(reading)

    @property
    def compiled(self) -> Compiled:
        """The table; no bound."""
        return 0.0, 0.0, self.table.scale, self.table.rows
