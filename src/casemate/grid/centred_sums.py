"""Sums of a numeric attribute around its centre by the codes of another: what means are proven by.

Counts by bins know a sum up to the width of bins only. These sums are exact but for their noise,
since every record adds its own value, less the centre of the declared range, in whole units.

Guarantee  A person moves one cell of such a table by half of the declared range at most.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from casemate.grid.direct import Direct, MeasuredPart, Sensitivity
from casemate.grid.product import Scope
from casemate.grid.question import Relation
from casemate.grid.sums import centre_of, summand_of
from casemate.query.language import NUMBERS, ColumnRef, Interval, present
from casemate.query.snapping import condition_of, keys_of, merge_pieces, sum_spans
from casemate.table import ColumnType, Universe
from casemate.table.sources import Source


@dataclass(frozen=True, eq=False)
class CentredSums:
    """One table: of attribute `value`, by attribute `by`."""

    universe: Universe
    relation: Relation
    value: int
    by: int

    def text(self) -> str:
        """As it stands in the transcript."""
        names = [self.universe.attributes[place].name for place in (self.value, self.by)]
        written = {"sums": names[0], "by": names[1], "start": True}
        return json.dumps(written, sort_keys=True, separators=(",", ":"))

    @property
    def cells(self) -> int:
        """How many sums there are."""
        return self.universe.attributes[self.by].size

    @cached_property
    def part(self) -> MeasuredPart:
        """What is added up over which rows, by which codes."""
        universe, attribute = self.universe, self.universe.attributes[self.value]
        argument = ColumnRef(attribute.column, attribute.type)
        spans = sum_spans(argument, universe)[1][: attribute.reserved]
        centre = centre_of(spans, attribute.type)
        summand, unit = summand_of(argument, attribute, [*spans, Interval(centre, centre)], centre)
        by = self.universe.attributes[self.by]
        return MeasuredPart(
            keys_of((), ((),), universe),
            condition_of(present(argument), universe),
            summand,
            unit,
            merge_pieces(by, tuple(range(by.size))),
        )

    @property
    def rounding(self) -> Fraction:
        """How far one record may be off by units that are rounded."""
        attribute = self.universe.attributes[self.value]
        whole = attribute.type is ColumnType.INTEGER and self.part.unit <= 1
        return Fraction(0) if whole else self.part.unit

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person moves the table, in units."""
        return Sensitivity.of(self.part, self.relation)

    def exact(self, source: Source, key: bytes | None) -> list[int]:
        """The sums themselves: never an answer."""
        return Direct(self.universe, self.relation, (self.part,), 1, (), ()).cells(source, key)[0]


def sums_by_attribute(
    universe: Universe, relation: Relation, public: Scope
) -> Sequence[CentredSums]:
    """Every numeric attribute with bins by every other one; not those that everybody knows.

    Where each cell is one value, counts know the sums.
    """
    places = range(len(universe.attributes))
    return tuple(
        CentredSums(universe, relation, value, by)
        for value in places
        for by in places
        if value != by
        and universe.attributes[value].type in NUMBERS
        and not universe.attributes[value].single
        and not {value, by} <= set(public)
    )
