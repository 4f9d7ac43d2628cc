"""Questions as sets of cells: which cells of the universe a COUNT or SUM reads, and how.

A predicate over single columns is a union of products of cells. It is decided on the table as the
policy declares it: numbers clamped to their bounds, undeclared values NULL. A condition that holds
on a part of a cell only is snapped: the cell is in if the condition holds on half of it or more,
which moves a limit to the nearest cell boundary. The cells wholly inside and those touched bracket
the condition as it was written, and a note says to which side it was moved.

Cost  A few evaluations for each cell of each attribute in the predicate; no data.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Unsupported
from casemate.query.aggregate import Aggregate, Function, Select
from casemate.query.engines.answering import Key
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
    columns_of,
)
from casemate.query.language.interpret import constant, evaluate
from casemate.query.language.intervals import Interval, interval
from casemate.query.language.operations import simplify
from casemate.query.records.coding import (
    Atom,
    Subject,
    Term,
    formula,
    terms,
)
from casemate.query.snapping.cells import CellResults, computing, holding, results
from casemate.table import Attribute, AttributeKind, ColumnType, Point, Universe, image

Bits = NDArray[np.bool_]
Product = Mapping[int, Bits]
"""By position of an attribute: the cells that are in."""


# Sets of cells as unions of products: for some attributes, which of their cells ------------------
#
# An attribute that is not named may have any cell. The products of a union are kept apart, so what
# they hold adds up.


class Bracket(NamedTuple):
    """Two unions around a condition that cuts cells: those wholly inside, and those touched."""

    inner: tuple[Product, ...]
    outer: tuple[Product, ...]


def trim(product: Product) -> Product | None:
    """Without attributes of which every cell is in; None for a product that holds nothing."""
    if not all(mask.any() for mask in product.values()):
        return None
    return {place: mask for place, mask in sorted(product.items()) if not mask.all()}


def meet(left: Product, right: Product) -> Product | None:
    """The cells in both."""
    joined = dict(left)
    for place, mask in right.items():
        joined[place] = joined[place] & mask if place in joined else mask
    return trim(joined)


def meet_unions(left: Sequence[Product], right: Sequence[Product]) -> tuple[Product, ...]:
    """The cells in both of two unions."""
    found = (meet(one, other) for one in left for other in right)
    return tuple(each for each in found if each is not None)


def without(whole: Product, part: Product) -> list[Product]:
    """The cells of one product that are not in another, as products apart from each other."""
    if meet(whole, part) is None:
        return [whole]
    rest: list[Product | None] = []
    inside: Product | None = whole
    for place, mask in part.items():
        if inside is not None:
            rest.append(meet(inside, {place: ~mask}))
            inside = meet(inside, {place: mask})
    return [each for each in rest if each is not None]


def apart(products: Sequence[Product], most: int) -> list[Product] | None:
    """The same union out of products that are apart, or None where that takes too many."""
    found: list[Product] = []
    for each in products:
        pieces = [each]
        for known in found:
            pieces = [rest for piece in pieces for rest in without(piece, known)]
            if len(found) + len(pieces) > most:
                return None
        found += pieces
    return found


# Snapped sets ------------------------------------------------------------------------------------


MAX_PRODUCTS = 64
"""A predicate that takes more products apart from each other is refused."""

TOO_MANY = "this predicate has too many alternatives; ask for fewer of them at once"


@dataclass(frozen=True, eq=False)
class Snapped:
    """The cells that a question reads, in products apart from each other.

    `bracket` is there where a condition holds on a part of a cell.
    """

    products: tuple[Product, ...]
    bracket: Bracket | None = None
    notes: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether no cell is cut."""
        return self.bracket is None

    @property
    def inner(self) -> tuple[Product, ...]:
        """The cells on which the condition holds wholly."""
        return self.products if self.bracket is None else self.bracket.inner

    @property
    def outer(self) -> tuple[Product, ...]:
        """The cells on a part of which the condition holds, or on all."""
        return self.products if self.bracket is None else self.bracket.outer

    def within(self, other: "Snapped") -> "Snapped":
        """The same question about the cells of another: one group of it."""
        products = meet_unions(self.products, other.products)
        if self.exact and other.exact:
            return replace(self, products=products)
        ends = (self.inner, other.inner), (self.outer, other.outer)
        return replace(self, products=products, bracket=Bracket(*starmap(meet_unions, ends)))


def unconditional(aggregate: Aggregate) -> Aggregate:
    """SUM(CASE WHEN p THEN x ELSE 0 END) as SUM(x) where p, and COUNT of a CASE alike."""
    nothing = (None, 0) if aggregate.function is Function.SUM else (None,)
    match aggregate.argument:
        case Call(Operation.CASE, (condition, result, Literal(otherwise))) if otherwise in nothing:
            narrowed = all_of(aggregate.predicate, condition)
            return replace(aggregate, argument=result, predicate=narrowed)
    return aggregate


# Predicates -----------------------------------------------------------------------------------


def selection(predicate: Expression, universe: Universe) -> Snapped:
    """The cells on which a predicate holds."""
    conjunctions = [_conjunction(term, universe) for term in alternatives(predicate)]
    nearest = _union(conjunctions, _is_in)
    limits = [limit for each in conjunctions for limit in each.items() if cut_cells(limit[1])]
    if not limits:
        return Snapped(nearest)
    bracket = Bracket(_union(conjunctions, _is_whole), _union(conjunctions, _is_touched))
    notes = [_note(universe.attributes[place], cells) for place, cells in limits]
    return Snapped(nearest, bracket=bracket, notes=tuple(sorted(set(notes))))


def alternatives(predicate: Expression) -> list[Term]:
    """The conjunctions of conditions on single columns of which one must hold."""
    found = terms(formula(simplify(predicate)))
    if found is None:
        raise Unsupported(TOO_MANY)
    return found


Conjunction = Mapping[int, list[CellResults]]
"""By attribute: where the condition on it holds."""


def _conjunction(term: Term, universe: Universe) -> Conjunction:
    found: dict[int, list[CellResults]] = {}
    for about, condition in term.items():
        place = attribute_of(about, universe)
        found[place] = results(universe.attributes[place], *holding(condition))
    return found


def _union(
    conjunctions: Sequence[Conjunction], inside: Callable[[CellResults], bool]
) -> tuple[Product, ...]:
    """The cells that are inside for all attributes of one conjunction at least."""
    products = [
        trim({place: mask_of(cells, inside) for place, cells in each.items()})
        for each in conjunctions
    ]
    union = apart([each for each in products if each is not None], MAX_PRODUCTS)
    if union is None:
        raise Unsupported(TOO_MANY)
    return tuple(union)


def mask_of(cells: Sequence[CellResults], inside: Callable[[CellResults], bool]) -> Bits:
    """The cells that are inside."""
    return np.array([inside(cell) for cell in cells], np.bool_)


def attribute_of(about: Subject, universe: Universe) -> int:
    """The position of the attribute that a condition is about."""
    if isinstance(about, Atom):
        names = " and ".join(sorted(ref.column.name for ref in columns_of(about.condition)))
        raise Unsupported(
            f"a condition that compares {names} with each other has no cells; compare each of "
            f"them with constants"
        )
    if about.alias:
        raise Unsupported("a joined table has no cells in the universe; ask without the join")
    if about.column.name not in universe.places:
        raise Unsupported(universe.why_not(about.column.name))
    return universe.places[about.column.name]


def _is_in(cell: CellResults) -> bool:
    """Whether a condition holds on half of a cell or more."""
    true, false = (cell.results.get(result, 0) for result in (True, False))
    return True in cell.results and true >= false


def _is_whole(cell: CellResults) -> bool:
    return False not in cell.results


def _is_touched(cell: CellResults) -> bool:
    return True in cell.results


# Notes ----------------------------------------------------------------------------------------

MAX_NAMED_CELLS = 3
"""Cells, or runs of cells, that a note names."""


def snapping_note(attribute: Attribute, cells: Sequence[CellResults], what: str, how: str) -> str:
    """The note on something that changes inside cells: where, and how it was answered."""
    names = [_bin_name(attribute, number) for number in cut_cells(cells)]
    one = len(names) == 1
    return (
        f"{attribute.name}: {what} inside the cell{'' if one else 's'} {join_names(names)}; "
        f"it was {how}, and the bounds have room for {'that cell' if one else 'those cells'}"
    )


def cut_cells(cells: Sequence[CellResults]) -> list[int]:
    """The numbers of the cells in which something changes."""
    return [number for number, cell in enumerate(cells) if not cell.constant]


def _note(attribute: Attribute, cells: Sequence[CellResults]) -> str:
    values = _values(attribute, mask_of(cells, _is_in))
    return snapping_note(attribute, cells, "a limit lies", f"answered as if for {values}")


def _values(attribute: Attribute, mask: Bits) -> str:
    """The values of some bins, run by run."""
    edges = np.flatnonzero(np.diff(mask[:-1], prepend=False, append=False)).tolist()
    runs = [_run(attribute, first, end) for first, end in zip(edges[::2], edges[1::2], strict=True)]
    found = f"values {join_names(runs, ' or ')}" if all(runs) else "every value"
    return (found if runs else "no value") + (" or NULL" if mask[-1] else "")


def _run(attribute: Attribute, first: int, end: int) -> str:
    """The bins from one to another in terms of their boundaries; nothing where that is all."""
    last = len(attribute.edges) - 1
    below = [f">= {attribute.edges[first]}"] if first else []
    above = [f"< {attribute.edges[end]}"] if end < last else []
    return " and ".join([*below, *above])


def join_names(names: Sequence[str], between: str = ", ") -> str:
    """The first few of some names."""
    more = " and others" if len(names) > MAX_NAMED_CELLS else ""
    return between.join(names[:MAX_NAMED_CELLS]) + more


def _bin_name(attribute: Attribute, cell: int) -> str:
    low, high = attribute.edges[cell], attribute.edges[cell + 1]
    return f"[{low}, {high}{']' if cell + 2 == len(attribute.edges) else ')'}"


# Sums -----------------------------------------------------------------------------------------


def sum_spans(argument: Expression, universe: Universe) -> tuple[int, list[Interval]]:
    """The attribute that is added up, and for each of its cells what a record there may add."""
    references = sorted(columns_of(argument), key=lambda each: each.column.name)
    if len(references) > 1:
        names = " and ".join(each.column.name for each in references)
        raise Unsupported(f"{names} are added up together; add up one column at a time")
    if not references and not universe.attributes:
        raise Unsupported("the universe has no attribute, so there is nothing to add up")
    place = attribute_of(references[0], universe) if references else 0
    attribute = universe.attributes[place]
    spans = [_span(argument, attribute, cell) for cell in range(attribute.size)]
    return place, spans


def _span(argument: Expression, attribute: Attribute, cell: int) -> Interval:
    if cell == attribute.reserved:
        return _exactly(argument, None)
    if attribute.kind is AttributeKind.VALUES:
        return _exactly(argument, attribute.points[cell])
    low, high = attribute.images[cell : cell + 2]
    if attribute.type is ColumnType.INTEGER and cell + 2 < len(attribute.edges):
        high -= 1
    if low == high:
        return _exactly(argument, attribute.edges[cell])
    return interval(argument, lambda _: Interval(low, high))


def _exactly(argument: Expression, value: Point | None) -> Interval:
    """What a record with this value adds; NULL adds nothing."""
    found = evaluate(argument, lambda _: value)
    number = image(found) if found is not None and not isinstance(found, str) else image(0)
    return Interval(number, number)


# Groups: every key that the policy declares, in order, with its cells ----------------------------
#
# The keys are a function of the policy and the statement alone, so a group is there whether or not
# anybody is in it, and nothing is learnt from which groups are shown. NULL comes last, and stands
# for undeclared values too.


EVERYBODY = Snapped(({},))
MAX_GROUPS = 100_000
"""A statement of more groups is refused."""


@dataclass(frozen=True, eq=False)
class KeyGroup:
    """One combination of keys, and the cells that have it: most of each, where a key is cut."""

    key: Key
    snapped: Snapped


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
    if math.prod(len(each.values) for each in keys) > MAX_GROUPS:
        raise Unsupported(f"this has more than {MAX_GROUPS:,} groups; group by fewer columns")
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
        return _Keys({constant(key): EVERYBODY})
    if len(references) > 1:
        names = " and ".join(each.column.name for each in references)
        raise Unsupported(f"a group computed from {names} together has no cells; group by each")
    place = attribute_of(references[0], universe)
    attribute = universe.attributes[place]
    if isinstance(key, ColumnRef) and not attribute.single:
        raise Unsupported(
            f"{attribute.name} is known by bins of several values; group by CASE with the limits "
            f"of bins, or declare a bin for each value"
        )
    return _group_cells(place, attribute, results(attribute, *computing(key)))


def _group_cells(place: int, attribute: Attribute, cells: list[CellResults]) -> _Keys:
    """The cells by the key that most of each has; every key must have one."""
    usual = [cell.usual for cell in cells]
    named = sorted(dict.fromkeys(usual), key=lambda value: value is None)  # stable: NULL last
    if {value for cell in cells for value in cell.results} - set(named):
        raise narrower(attribute)
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
    return _Keys(found, _groups_note(attribute, cells))


def narrower(attribute: Attribute) -> Unsupported:
    """The refusal of groups that no cell has."""
    return Unsupported(
        f"some groups of {attribute.name} are narrower than its cells; group by wider ones, or "
        f"declare more bins"
    )


def _unions(
    place: int, size: int, pairs: Iterable[tuple[int, Scalar]]
) -> dict[Scalar, tuple[Product, ...]]:
    """The cells of each value, from pairs of a cell and a value of it."""
    masks: dict[Scalar, Bits] = {}
    for number, value in pairs:
        masks.setdefault(value, np.zeros(size, np.bool_))[number] = True
    return {value: ({place: mask},) for value, mask in masks.items()}


def _groups_note(attribute: Attribute, cells: list[CellResults]) -> str:
    """What is said of keys that were snapped."""
    usual = [cells[number].usual for number in cut_cells(cells)]
    names = ["NULL" if each is None else str(each) for each in usual]
    return snapping_note(attribute, cells, "a group ends", f"counted whole as {join_names(names)}")
