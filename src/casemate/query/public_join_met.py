"""Which row of a joined public table a record meets, told by the cell of one protected column.

A public table is joined by its key, which is unique, to one protected column, or to a column of a
public table that is itself joined. The conditions are tried until every table has its column.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casemate.errors import Unsupported
from casemate.query.aggregate import Join
from casemate.query.expression import (
    Call,
    ColumnRef,
    Expression,
    Operation,
    Scalar,
    columns_of,
    conjuncts,
)
from casemate.query.interpret import evaluate
from casemate.table.universe import Attribute, Kind, Universe
from casemate.table.universe_cuts import WHOLE, Point

MOST_MET = 4096
"""A public table of which more rows can be met is refused: each is written into the statement."""

Rows = Mapping[str, Sequence[Scalar]]
"""The columns of a public table, by name."""

Lookup = Mapping[str, Rows]
"""The public tables of a statement, by name."""


@dataclass(frozen=True, eq=False)
class Met:
    """The row of a joined table that each value of one protected column meets, if any.

    `condition` is the equality by which the table is joined.
    """

    root: ColumnRef
    places: Mapping[Point, int]
    rows: Rows
    condition: Expression

    def value(self, reference: ColumnRef, at: Point) -> Scalar:
        """What a joined column is where the protected one has this value."""
        return self.rows[reference.column.name][self.places[at]]


def met(
    joins: Sequence[Join], predicate: Expression, lookup: Lookup, universe: Universe
) -> dict[str, Met]:
    """What is met of every joined table, by alias; Unsupported where a cell does not tell."""
    meeting = _Meeting(conjuncts(predicate), lookup, universe)
    waiting = list(joins)
    while waiting:
        told = next((join for join in waiting if meeting.add(join)), None)
        if told is None:
            raise Unsupported(
                f"the public table {waiting[0].public} is not joined by its key; for private "
                f"answers equate {waiting[0].public}.{waiting[0].key} with one column of the "
                f"protected table"
            )
        waiting.remove(told)
    return meeting.found


@dataclass
class _Meeting:
    """The tables of which it is known already how they are met."""

    conditions: Sequence[Expression]
    lookup: Lookup
    universe: Universe
    found: dict[str, Met] = field(default_factory=dict)

    def add(self, join: Join) -> bool:
        """Find out how one more table is met, if one of the conditions tells."""
        for condition in self.conditions:
            for key, other in _sides(condition, join):
                root = self._root(other)
                if root is not None:
                    rows = self.lookup[join.public]
                    places = self._places(join, key, other, root)
                    self.found[join.alias] = Met(root, places, rows, condition)
                    return True
        return False

    def _root(self, expression: Expression) -> ColumnRef | None:
        """The one protected column on which an expression depends."""
        references = columns_of(expression)
        if any(each.alias and each.alias not in self.found for each in references):
            return None
        roots = {self.found[each.alias].root if each.alias else each for each in references}
        return next(iter(roots)) if len(roots) == 1 else None

    def _places(
        self, join: Join, key: Expression, other: Expression, root: ColumnRef
    ) -> dict[Point, int]:
        """The position of the row that each value of the protected column meets."""
        through = [self.found[each.alias] for each in columns_of(other) if each.alias]
        domain = (
            value
            for value in _domain(root, self.universe)
            if all(value in table.places for table in through)
        )
        wanted = {value: evaluate(other, self._reader(value)) for value in domain}
        rows = self.lookup[join.public][join.key]
        keys = _positions(join, (evaluate(key, _constantly(each)) for each in rows), wanted)
        return {value: keys[each] for value, each in wanted.items() if each in keys}

    def _reader(self, value: Point) -> Callable[[Any], Scalar]:
        def read(reference: ColumnRef) -> Scalar:
            alias = reference.alias
            return self.found[alias].value(reference, value) if alias else value

        return read


def _constantly(value: Scalar) -> Callable[[Any], Scalar]:
    return lambda _: value


def _sides(condition: Expression, join: Join) -> Iterator[tuple[Expression, Expression]]:
    """The key of a joined table, perhaps widened, and what it is equated with."""
    if not isinstance(condition, Call) or condition.operation is not Operation.EQUAL:
        return
    left, right = condition.arguments
    for one, other in ((left, right), (right, left)):
        outside = all(each.alias != join.alias for each in columns_of(other))
        if outside and _is_key(one, join):
            yield one, other


def _is_key(expression: Expression, join: Join) -> bool:
    if isinstance(expression, Call) and expression.operation is Operation.CAST:
        expression = expression.arguments[0]
    if not isinstance(expression, ColumnRef):
        return False
    return (expression.alias, expression.column.name) == (join.alias, join.key)


def _positions(
    join: Join, keys: Iterator[Scalar], wanted: Mapping[Point, Scalar]
) -> dict[Scalar, int]:
    """Where the rows are that are met; a cast may have made two keys one."""
    asked = {each for each in wanted.values() if each is not None}
    positions: dict[Scalar, int] = {}
    for place, key in enumerate(keys):
        if key in positions:
            raise Unsupported(
                f"several rows of the public table {join.public} meet one record; join it by a key "
                f"that is unique"
            )
        if key in asked:
            positions[key] = place
    if len(positions) > MOST_MET:
        raise Unsupported(
            f"more than {MOST_MET:,} rows of the public table {join.public} can be met; ask "
            f"without it, or declare fewer values of the column it is joined to"
        )
    return positions


def _domain(root: ColumnRef, universe: Universe) -> Sequence[Point]:
    """The values of a protected column, each of which is a cell of its own."""
    name = root.column.name
    if name not in universe.places:
        raise Unsupported(universe.why_not(name))
    attribute = universe.attributes[universe.places[name]]
    if attribute.kind is Kind.VALUES:
        return attribute.points
    if not _is_single(attribute):
        raise Unsupported(
            f"{name} is known by bins of several values, so what it is joined to cannot be told; "
            f"declare its values, or a bin for each"
        )
    return attribute.edges[:-1]


def _is_single(attribute: Attribute) -> bool:
    low, high = attribute.images[0], attribute.images[-1]
    return attribute.type in WHOLE and high - low == len(attribute.points)
