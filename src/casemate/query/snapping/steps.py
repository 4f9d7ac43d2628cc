"""The keys and conditions of a statement as step functions of single columns.

A condition is a union of conjunctions, each of which holds where all its step functions do. Only
their pieces are numbered by an engine, so a statement means the same on every engine, and on the
grid.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from casemate.query.engines.answering import Key
from casemate.query.language.expression import (
    Call,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
    any_of,
    columns_of,
    substitute,
)
from casemate.query.language.operations import simplify
from casemate.query.records.coding import Term, formula
from casemate.query.snapping.cells import (
    MAX_LISTED_VALUES,
    StepFunction,
    combinations,
    computing,
    holding,
    step_function,
)
from casemate.query.snapping.histograms import code, missing, reference_to
from casemate.query.snapping.snapping import alternatives, attribute_of, narrower
from casemate.table import WHOLE, Attribute, AttributeKind, ColumnType, Universe, point

BOOLEAN = ColumnType.BOOLEAN
ONE = Literal(1, ColumnType.INTEGER)


# Conditions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """The rows on which all step functions of one conjunction hold, or of another."""

    conjunctions: tuple[tuple[StepFunction, ...], ...]

    @property
    def functions(self) -> tuple[StepFunction, ...]:
        """Every step function in it."""
        return tuple(each for conjunction in self.conjunctions for each in conjunction)

    @property
    def expression(self) -> Expression:
        """The condition for an engine: comparisons with constants; NULL is as good as false."""
        return any_of([all_of(*map(_holds, each)) for each in self.conjunctions])


def condition_of(predicate: Expression, universe: Universe) -> Condition:
    """A predicate over single columns; others are refused."""
    several = [_conjunction(term, universe) for term in alternatives(predicate)]
    kept = [each for each in several if all(any(function.results) for function in each)]
    if () in kept:
        return Condition(((),))
    return Condition(tuple(sorted(dict.fromkeys(kept), key=repr)))


def _conjunction(term: Term, universe: Universe) -> tuple[StepFunction, ...]:
    """What must hold, column by column; what always does is left out."""
    functions = [
        step_function(universe.attributes[attribute_of(about, universe)], *holding(condition))
        for about, condition in term.items()
    ]
    return tuple(sorted((each for each in functions if not all(each.results)), key=_by_name))


def _by_name(function: StepFunction) -> str:
    return function.name


def engine_condition(condition: Expression, attribute: Attribute) -> Expression:
    """A condition on one column, for an engine."""
    return _holds(step_function(attribute, *holding(formula(simplify(condition)))))


def _holds(function: StepFunction) -> Expression:
    """A step function of truth values, for an engine; a single run is left open to indexes."""
    simple = _in_list(function) if function.pieces.kind is AttributeKind.VALUES else _run(function)
    if simple is not None:
        return simple
    if len(function.results) > MAX_SEARCHED_PIECES and _is_listable(function.pieces):
        return any_of(_values(function))
    number = code(function.pieces, labels=[int(each is True) for each in function.results])
    return Call(Operation.EQUAL, (number, ONE), BOOLEAN)


def _is_listable(pieces: Attribute) -> bool:
    few = (
        pieces.kind is AttributeKind.BINS
        and pieces.images[-1] - pieces.images[0] < MAX_LISTED_VALUES
    )
    return few and pieces.type in WHOLE


MAX_SEARCHED_PIECES = 16
"""Of so many an engine finds that of a row faster than in a list of values."""


def _values(function: StepFunction) -> list[Expression]:
    """The whole values at which it holds; the first and the last stand for all beyond them."""
    kind, reference = function.pieces.type, reference_to(function.pieces)
    first, last = function.pieces.images[0], function.pieces.images[-1]
    inside = [point(first + i, kind) for i in range(1, int(last - first))]
    chosen = [Literal(each, kind) for each in inside if function.at(each)]
    low, high = (Literal(function.pieces.edges[each], kind) for each in (0, -1))
    found = [
        (bool(chosen), Call(Operation.IN, (reference, *chosen), BOOLEAN)),
        (function.at(low.value), Call(Operation.LESS_EQUAL, (reference, low), BOOLEAN)),
        (function.at(high.value), Call(Operation.GREATER_EQUAL, (reference, high), BOOLEAN)),
        (function.at(None), missing(reference)),
    ]
    return [expression for holds_there, expression in found if holds_there]


def _in_list(function: StepFunction) -> Expression | None:
    *inside, reserved = function.results
    chosen = [value for value, result in zip(function.pieces.points, inside, strict=True) if result]
    if reserved or not chosen:
        return None
    reference = reference_to(function.pieces)
    constants = (Literal(each, reference.type) for each in chosen)
    return Call(Operation.IN, (reference, *constants), BOOLEAN)


def _run(function: StepFunction) -> Expression | None:
    """The comparisons that hold on one run of pieces, where it is one."""
    *inside, reserved = function.results
    if reserved or inside.count(True) != 1:
        return None
    place, reference = inside.index(True), reference_to(function.pieces)
    first, following = (function.pieces.points[each : each + 1] for each in (place - 1, place))
    limits = [(Operation.GREATER_EQUAL, each) for each in first if place]
    limits += [(Operation.LESS, each) for each in following]
    written = [
        Call(operation, (reference, Literal(limit, reference.type)), BOOLEAN)
        for operation, limit in limits
    ]
    there = Call(Operation.NOT, (missing(reference),), BOOLEAN)
    return all_of(*written) if following else all_of(*written, there)


def with_engine_conditions(expression: Expression, attribute: Attribute) -> Expression:
    """An expression of one column in which no engine decides between the branches of a CASE."""

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Call) or node.operation is not Operation.CASE:
            return None
        *pairs, otherwise = node.arguments
        changed = [
            part
            for condition, result in zip(pairs[::2], pairs[1::2], strict=True)
            for part in (engine_condition(condition, attribute), substitute(result, change))
        ]
        return Call(node.operation, (*changed, substitute(otherwise, change)), node.type)

    return substitute(expression, change)


# Keys -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepKeys:
    """The keys of a statement, each as the number of its value, and the numbers of each group."""

    functions: tuple[StepFunction, ...]
    groups: tuple[tuple[int, ...], ...]


def keys_of(keys: Sequence[Expression], groups: Sequence[Key], universe: Universe) -> StepKeys:
    """Keys of one column each, of which these are all combinations that can be.

    A constant key tells no groups apart, and is left out.
    """
    read = [place for place, key in enumerate(keys) if columns_of(key)]
    values = [list(dict.fromkeys(group[place] for group in groups)) for place in read]
    numbers = [{value: number for number, value in enumerate(each)} for each in values]
    functions = [
        _number_key(keys[place], each, universe) for place, each in zip(read, numbers, strict=True)
    ]
    found = tuple(
        tuple(each[group[place]] for place, each in zip(read, numbers, strict=True))
        for group in groups
    )
    _check_complete(functions, found)
    return StepKeys(tuple(functions), found)


def _number_key(key: Expression, numbers: Mapping[Scalar, int], universe: Universe) -> StepFunction:
    (reference,) = columns_of(key)
    attribute = universe.attributes[attribute_of(reference, universe)]
    values = step_function(attribute, *computing(key))
    if not numbers.keys() >= set(values.results):
        raise narrower(attribute)
    return values.then(lambda value: numbers[value])


def _check_complete(functions: Sequence[StepFunction], groups: Sequence[tuple[int, ...]]) -> None:
    """Two keys of one column may come to a combination, on a part of a cell, that is no group."""
    by_column: dict[str, list[int]] = defaultdict(list)
    for place, function in enumerate(functions):
        by_column[function.name].append(place)
    for places in by_column.values():
        known = {tuple(group[place] for place in places) for group in groups}
        several = [functions[place] for place in places]
        if combinations(several) - known:
            raise narrower(several[0].pieces)
