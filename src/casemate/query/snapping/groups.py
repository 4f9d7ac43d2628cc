"""GROUP BY in the universe: every key that the policy declares, in order, with its cells.

The keys are a function of the policy and the statement alone, so a group is there whether or not
anybody is in it, and nothing is learnt from which groups are shown. NULL comes last, and stands
for undeclared values too.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from casemate.errors import Unsupported
from casemate.query.aggregate import Select
from casemate.query.engines.answering import Key
from casemate.query.language.expression import ColumnRef, Expression, Scalar, columns_of
from casemate.query.language.interpret import evaluate
from casemate.query.snapping.breakpoints import breaks
from casemate.query.snapping.cells import CellResults, results
from casemate.query.snapping.snapping import (
    Bits,
    Bracket,
    Product,
    Snapped,
    attribute_of,
    cut_cells,
    listed,
    moved,
)
from casemate.table import WHOLE, Attribute, AttributeKind, Universe

EVERYBODY = Snapped(({},))
MOST_GROUPS = 100_000
"""A statement of more groups is refused."""


@dataclass(frozen=True, eq=False)
class KeyGroup:
    """One combination of keys, and the cells that have it: most of each, where a key is cut."""

    key: Key
    snapped: Snapped

    @property
    def cells(self) -> Product:
        """The cells that are counted in it."""
        return self.snapped.masks


@dataclass(frozen=True, eq=False)
class KeyGroups:
    """Every group of a statement; `exact` unless a key changes within a cell."""

    groups: tuple[KeyGroup, ...]
    exact: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Keys:
    """The values of one key, each with its cells, and what was moved."""

    values: dict[Scalar, Snapped]
    note: str | None = None


def cells_of(select: Select, universe: Universe) -> KeyGroups:
    """The groups of a statement: all combinations of its keys' declared values."""
    keys = [_keys(each, universe) for each in select.keys]
    if math.prod(len(each.values) for each in keys) > MOST_GROUPS:
        raise Unsupported(f"this has more than {MOST_GROUPS:,} groups; group by fewer columns")
    groups: list[KeyGroup] = []
    for chosen in product(*(each.values.items() for each in keys)):
        found = EVERYBODY
        for _, cells in chosen:
            found = found.within(cells)
        if found.products:
            groups.append(KeyGroup(tuple(value for value, _ in chosen), found))
        elif found.outer:
            raise Unsupported(
                "two keys change inside one cell, so that some groups may be narrower than it; "
                "group by limits of bins, or declare more bins"
            )
    notes = tuple(dict.fromkeys(each.note for each in keys if each.note is not None))
    return KeyGroups(tuple(groups), not notes, notes)


def _keys(key: Expression, universe: Universe) -> _Keys:
    references = sorted(columns_of(key), key=lambda each: each.column.name)
    if not references:
        return _Keys({evaluate(key, _nothing): EVERYBODY})
    if len(references) > 1:
        names = " and ".join(each.column.name for each in references)
        raise Unsupported(f"a group computed from {names} together has no cells; group by each")
    place = attribute_of(references[0], universe)
    attribute = universe.attributes[place]
    if isinstance(key, ColumnRef):
        _check_single(attribute)
    cells = results(attribute, lambda value: evaluate(key, lambda _: value), lambda: breaks(key))
    return _grouped(place, attribute, cells)


def _nothing(_: object) -> None:
    raise LookupError("a constant reads nothing")


def _check_single(attribute: Attribute) -> None:
    """A column can be a key itself if each of its cells is one value."""
    if attribute.kind is AttributeKind.VALUES:
        return
    low, high = attribute.images[0], attribute.images[-1]
    if attribute.type not in WHOLE or high - low != len(attribute.points):
        raise Unsupported(
            f"{attribute.name} is known by bins of several values; group by CASE with the limits "
            f"of bins, or declare a bin for each value"
        )


def _grouped(place: int, attribute: Attribute, cells: list[CellResults]) -> _Keys:
    """The cells by the key that most of each has; every key must have one."""
    usual = [cell.usual for cell in cells]
    named = sorted(dict.fromkeys(usual), key=lambda value: value is None)  # stable: NULL last
    if {value for cell in cells for value in cell.results} - set(named):
        raise Unsupported(
            f"some groups of {attribute.name} are narrower than its cells; group by wider ones, or "
            f"declare more bins"
        )
    numbered = list(enumerate(cells))
    nearest = _unions(place, len(cells), enumerate(usual))
    if all(cell.constant for cell in cells):
        return _Keys({value: Snapped(nearest[value]) for value in named})
    whole = ((number, cell.usual) for number, cell in numbered if cell.constant)
    parts = ((number, value) for number, cell in numbered for value in cell.results)
    inner, outer = (_unions(place, len(cells), each) for each in (whole, parts))
    found = {
        value: Snapped(nearest[value], bracket=Bracket(inner.get(value, ()), outer[value]))
        for value in named
    }
    return _Keys(found, _note(attribute, cells))


def _unions(
    place: int, size: int, pairs: Iterable[tuple[int, Scalar]]
) -> dict[Scalar, tuple[Product, ...]]:
    """The cells of each value, from pairs of a cell and a value of it."""
    masks: dict[Scalar, Bits] = {}
    for number, value in pairs:
        masks.setdefault(value, np.zeros(size, np.bool_))[number] = True
    return {value: ({place: mask},) for value, mask in masks.items()}


def _note(attribute: Attribute, cells: list[CellResults]) -> str:
    """What is said of keys that were snapped."""
    usual = [cells[number].usual for number in cut_cells(cells)]
    names = ["NULL" if each is None else str(each) for each in usual]
    return moved(attribute, cells, "a group ends", f"counted whole as {listed(names)}")
