"""Questions as sets of cells: which cells of the universe a COUNT or SUM reads, and how.

A predicate over single columns is a union of products of cells. It is decided on the table as the
policy declares it: numbers clamped to their bounds, undeclared values NULL. A condition that holds
on a part of a cell only is snapped: the cell is in if the condition holds on half of it or more,
which moves a limit to the nearest cell boundary. The cells wholly inside and those touched bracket
the condition as it was written, and a note says to which side it was moved.

Cost  A few evaluations for each cell of each attribute in the predicate; no data.

Sets of cells as unions of products: for some attributes, which of their cells.

An attribute that is not named may have any cell. The products of a union are kept apart, so what
they hold adds up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Unsupported
from casemate.query.aggregate import Aggregate, Function
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    all_of,
    columns_of,
)
from casemate.query.language.interpret import evaluate
from casemate.query.language.intervals import Interval, interval
from casemate.query.language.operations import simplify
from casemate.query.records.atoms import (
    Atom,
    Both,
    Formula,
    Subject,
    Term,
    atoms_of,
    formula,
    terms,
)
from casemate.query.snapping.breakpoints import NONE, Breaks, breaks
from casemate.query.snapping.cells import CellResults, results
from casemate.table import Attribute, AttributeKind, ColumnType, Point, Universe, image

Bits = NDArray[np.bool_]
Product = Mapping[int, Bits]
"""By position of an attribute: the cells that are in."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """Two unions around a condition that cuts cells: those wholly inside, and those touched."""

    inner: tuple[Product, ...]
    outer: tuple[Product, ...]

    def meet(self, other: "Bracket") -> "Bracket":
        """The bracket of both conditions at once."""
        return Bracket(met(self.inner, other.inner), met(self.outer, other.outer))


def trimmed(product: Product) -> Product | None:
    """Without attributes of which every cell is in; None for a product that holds nothing."""
    if not all(mask.any() for mask in product.values()):
        return None
    return {place: mask for place, mask in sorted(product.items()) if not mask.all()}


def meet(left: Product, right: Product) -> Product | None:
    """The cells in both."""
    joined = dict(left)
    for place, mask in right.items():
        joined[place] = joined[place] & mask if place in joined else mask
    return trimmed(joined)


def met(left: Sequence[Product], right: Sequence[Product]) -> tuple[Product, ...]:
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


# Snapping ---------------------------------------------------------------------------------------


Floats = NDArray[np.float64]
MOST_PRODUCTS = 64
"""A predicate that takes more products apart from each other is refused."""

TOO_MANY = "this predicate has too many alternatives; ask for fewer of them at once"


@dataclass(frozen=True, eq=False)
class Snapped:
    """A question in the universe: the cells it reads, in products apart from each other.

    A COUNT adds up the records of the cells. A SUM multiplies those of a cell of the attribute in
    `weights` by its weight, the middle of what a record there may add; `slack` is how far from the
    middle that may be. `bracket` is there where a condition holds on a part of a cell.
    """

    products: tuple[Product, ...]
    weights: Mapping[int, Floats] | None = None
    slack: Mapping[int, Floats] | None = None
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

    @property
    def masks(self) -> Product:
        """The only product."""
        if len(self.products) != 1:
            raise ValueError(f"this question has {len(self.products)} products; read `products`")
        return self.products[0]

    @property
    def scope(self) -> tuple[int, ...]:
        """The attributes that the question reads, in order."""
        named = {place for product in self.products for place in product}
        return tuple(sorted(named | set(self.weights or {})))

    def within(self, other: "Snapped") -> "Snapped":
        """The same question about the cells of another: one group of it."""
        bracket = None
        if self.bracket is not None or other.bracket is not None:
            one, two = (Bracket(each.inner, each.outer) for each in (self, other))
            bracket = one.meet(two)
        return changed(self, products=met(self.products, other.products), bracket=bracket)

    def total(self, scope: tuple[int, ...], marginal: NDArray[np.int64]) -> int:
        """What the cells of a marginal over a scope, which has all attributes read, come to."""
        return sum(int(marginal[_selection(each, scope, marginal)].sum()) for each in self.products)


def _selection(
    product: Product, scope: tuple[int, ...], marginal: NDArray[np.int64]
) -> tuple[NDArray[np.intp], ...]:
    whole = [np.ones(size, np.bool_) for size in marginal.shape]
    return np.ix_(*(product.get(place, all_) for place, all_ in zip(scope, whole, strict=True)))


def unconditional(aggregate: Aggregate) -> Aggregate:
    """SUM(CASE WHEN p THEN x ELSE 0 END) as SUM(x) where p, and COUNT of a CASE alike."""
    argument = aggregate.argument
    if not isinstance(argument, Call) or argument.operation is not Operation.CASE:
        return aggregate
    if len(argument.arguments) != 3:
        return aggregate
    condition, result, otherwise = argument.arguments
    nothing = (None, 0) if aggregate.function is Function.SUM else (None,)
    if not isinstance(otherwise, Literal) or otherwise.value not in nothing:
        return aggregate
    narrowed = all_of(aggregate.predicate, condition)
    return changed(aggregate, argument=result, predicate=narrowed)


# Predicates -----------------------------------------------------------------------------------


def selection(predicate: Expression, universe: Universe) -> Snapped:
    """The cells on which a predicate holds."""
    found = terms(formula(simplify(predicate)))
    if found is None:
        raise Unsupported(TOO_MANY)
    conjunctions = [_conjunction(term, universe) for term in found]
    nearest = _union(conjunctions, _is_in)
    limits = [limit for each in conjunctions for limit in each.items() if cut_cells(limit[1])]
    if not limits:
        return Snapped(nearest)
    bracket = Bracket(_union(conjunctions, _is_whole), _union(conjunctions, _is_touched))
    notes = [_note(universe.attributes[place], cells) for place, cells in limits]
    return Snapped(nearest, bracket=bracket, notes=tuple(sorted(set(notes))))


Conjunction = Mapping[int, list[CellResults]]
"""By attribute: where the condition on it holds."""


def _conjunction(term: Term, universe: Universe) -> Conjunction:
    found: dict[int, list[CellResults]] = {}
    for about, condition in term.items():
        place = attribute_of(about, universe)
        found[place] = _decided(universe.attributes[place], condition)
    return found


def _union(
    conjunctions: Sequence[Conjunction], inside: Callable[[CellResults], bool]
) -> tuple[Product, ...]:
    """The cells that are inside for all attributes of one conjunction at least."""
    products = [
        trimmed({place: mask_of(cells, inside) for place, cells in each.items()})
        for each in conjunctions
    ]
    union = apart([each for each in products if each is not None], MOST_PRODUCTS)
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


def _decided(attribute: Attribute, condition: Formula) -> list[CellResults]:
    def compute(value: Point | None) -> bool:
        return holds(condition, value)

    def broken() -> Breaks:
        return NONE.union(*(breaks(atom.condition) for atom in atoms_of(condition)))

    return results(attribute, compute, broken)


def holds(found: Formula, value: Point | None) -> bool:
    """Whether a formula of one column holds where the column has a value."""
    if isinstance(found, Atom):
        return evaluate(found.condition, lambda _: value) is found.holds
    parts = (holds(part, value) for part in found.parts)
    return all(parts) if isinstance(found, Both) else any(parts)


def _is_in(cell: CellResults) -> bool:
    """Whether a condition holds on half of a cell or more."""
    true, false = (cell.results.get(result, 0) for result in (True, False))
    return True in cell.results and true >= false


def _is_whole(cell: CellResults) -> bool:
    return False not in cell.results


def _is_touched(cell: CellResults) -> bool:
    return True in cell.results


# Notes ----------------------------------------------------------------------------------------

MOST_NAMED = 3
"""Cells, or runs of cells, that a note names."""


def moved(attribute: Attribute, cells: Sequence[CellResults], what: str, how: str) -> str:
    """The note on something that changes inside cells: where, and how it was answered."""
    names = [_bin_name(attribute, number) for number in cut_cells(cells)]
    one = len(names) == 1
    return (
        f"{attribute.name}: {what} inside the cell{'' if one else 's'} {listed(names)}; "
        f"it was {how}, and the bounds have room for {'that cell' if one else 'those cells'}"
    )


def cut_cells(cells: Sequence[CellResults]) -> list[int]:
    """The numbers of the cells in which something changes."""
    return [number for number, cell in enumerate(cells) if not cell.constant]


def _note(attribute: Attribute, cells: Sequence[CellResults]) -> str:
    values = _values(attribute, mask_of(cells, _is_in))
    return moved(attribute, cells, "a limit lies", f"answered as if for {values}")


def _values(attribute: Attribute, mask: Bits) -> str:
    """The values of some bins, run by run."""
    edges = np.flatnonzero(np.diff(mask[:-1], prepend=False, append=False)).tolist()
    runs = [_run(attribute, first, end) for first, end in zip(edges[::2], edges[1::2], strict=True)]
    found = f"values {listed(runs, ' or ')}" if all(runs) else "every value"
    return (found if runs else "no value") + (" or NULL" if mask[-1] else "")


def _run(attribute: Attribute, first: int, end: int) -> str:
    """The bins from one to another in terms of their boundaries; nothing where that is all."""
    last = len(attribute.edges) - 1
    below = [f">= {attribute.edges[first]}"] if first else []
    above = [f"< {attribute.edges[end]}"] if end < last else []
    return " and ".join([*below, *above])


def listed(names: Sequence[str], between: str = ", ") -> str:
    """The first few of some names."""
    more = " and others" if len(names) > MOST_NAMED else ""
    return between.join(names[:MOST_NAMED]) + more


def _bin_name(attribute: Attribute, cell: int) -> str:
    low, high = attribute.edges[cell], attribute.edges[cell + 1]
    return f"[{low}, {high}{']' if cell + 2 == len(attribute.edges) else ')'}"


# Sums -----------------------------------------------------------------------------------------


def summed(argument: Expression, universe: Universe) -> tuple[int, list[Interval]]:
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

    def read(_: ColumnRef | object) -> Point | None:
        return value

    found = evaluate(argument, read)
    number = image(found) if found is not None and not isinstance(found, str) else image(0)
    return Interval(number, number)
