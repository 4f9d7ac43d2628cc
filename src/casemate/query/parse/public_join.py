"""Statements with joins to public tables as statements without: everything said of one column.

The public row that a record meets is a function of one protected column's cell. So a joined column
is a CASE over the protected one, and the condition of the join says which of its values meet a row
at all. What is left has no joins, and the same answer on every table that keeps to its policy.

A public table is joined by its key, which is unique, to one protected column, or to a column of a
public table that is itself joined. The conditions are tried until every table has its column.
Public rows are public: reading them costs nothing, and they are read once.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from casemate.errors import Unsupported
from casemate.query.aggregate import Aggregate, Join, Select, Statement
from casemate.query.engines.answering import values
from casemate.query.language.coercion import Mismatch
from casemate.query.language.expression import (
    FALSE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
    columns_of,
    conjuncts,
    substitute,
)
from casemate.query.language.interpret import evaluate
from casemate.query.language.operations import MAX_DEPTH, MAX_NODES, check_digits
from casemate.table import AttributeKind, ColumnType, Point, Policy, Universe
from casemate.table.sources import Source, quote_name

MAX_JOINED_ROWS = 4096
"""A public table of which more rows can be met is refused: each is written into the statement."""

Rows = Mapping[str, Sequence[Scalar]]
"""The columns of a public table, by name."""

Lookup = Mapping[str, Rows]
"""The public tables of a statement, by name."""


@dataclass(frozen=True, eq=False)
class JoinedRows:
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


def resolve_joins(
    joins: Sequence[Join], predicate: Expression, lookup: Lookup, universe: Universe
) -> dict[str, JoinedRows]:
    """What is met of every joined table, by alias; Unsupported where a cell does not tell."""
    meeting = _JoinResolver(conjuncts(predicate), lookup, universe)
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
class _JoinResolver:
    """The tables of which it is known already how they are met."""

    conditions: Sequence[Expression]
    lookup: Lookup
    universe: Universe
    found: dict[str, JoinedRows] = field(default_factory=dict)

    def add(self, join: Join) -> bool:
        """Find out how one more table is met, if one of the conditions tells."""
        for condition in self.conditions:
            for key, other in _sides(condition, join):
                root = self._root(other)
                if root is not None:
                    rows = self.lookup[join.public]
                    places = self._places(join, key, other, root)
                    self.found[join.alias] = JoinedRows(root, places, rows, condition)
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
        keys = _positions(join, (evaluate(key, _constant_reader(each)) for each in rows), wanted)
        return {value: keys[each] for value, each in wanted.items() if each in keys}

    def _reader(self, value: Point) -> Callable[[Any], Scalar]:
        def read(reference: ColumnRef) -> Scalar:
            alias = reference.alias
            return self.found[alias].value(reference, value) if alias else value

        return read


def _constant_reader(value: Scalar) -> Callable[[Any], Scalar]:
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
    match expression:
        case (ColumnRef() as column) | Call(Operation.CAST, (ColumnRef() as column, *_)):
            return (column.alias, column.column.name) == (join.alias, join.key)
    return False


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
    if len(positions) > MAX_JOINED_ROWS:
        raise Unsupported(
            f"more than {MAX_JOINED_ROWS:,} rows of the public table {join.public} can be met; ask "
            f"without it, or declare fewer values of the column it is joined to"
        )
    return positions


def _domain(root: ColumnRef, universe: Universe) -> Sequence[Point]:
    """The values of a protected column, each of which is a cell of its own."""
    name = root.column.name
    if name not in universe.places:
        raise Unsupported(universe.why_not(name))
    attribute = universe.attributes[universe.places[name]]
    if attribute.kind is AttributeKind.VALUES:
        return attribute.points
    if not attribute.single:
        raise Unsupported(
            f"{name} is known by bins of several values, so what it is joined to cannot be told; "
            f"declare its values, or a bin for each"
        )
    return attribute.edges[:-1]


# Statements without joins ------------------------------------------------------------------------


def public_rows(source: Source, policy: Policy, statement: Statement) -> Lookup:
    """What a statement needs of the public tables it joins; the protected one is not read."""
    wanted = _columns_read(statement)
    tables = [table.name for table in policy.public_tables if table.name in wanted]
    return {name: _read(source, name, sorted(wanted[name])) for name in tables}


def _columns_read(statement: Statement) -> dict[str, set[str]]:
    """The columns of each public table that a statement reads, its key included."""
    found: dict[str, set[str]] = defaultdict(set)
    for select in statement.selects:
        tables = {join.alias: join.public for join in select.joins}
        for join in select.joins:
            found[join.public].add(join.key)
        for reference in (each for part in _expressions(select) for each in columns_of(part)):
            if reference.alias:
                found[tables[reference.alias]].add(reference.column.name)
    return found


def _expressions(select: Select) -> Iterator[Expression]:
    yield from (select.predicate, *select.keys)
    for each in select.aggregates:
        yield from (each.predicate, *each.keys)
        if each.argument is not None:
            yield each.argument


def _read(source: Source, name: str, columns: Sequence[str]) -> Rows:
    shown = ", ".join(f"{quote_name(each)} AS c{place}" for place, each in enumerate(columns))
    frame = source.read(f"SELECT {shown} FROM {source.relation(name)} AS t")
    return {each: values(frame[f"c{place}"]) for place, each in enumerate(columns)}


def eliminate_joins(statement: Statement, lookup: Lookup, universe: Universe) -> Statement:
    """The statement without its joins; Unsupported where the cells of a column do not tell."""
    selects = tuple(_eliminate_joins(each, lookup, universe) for each in statement.selects)
    return replace(statement, selects=selects)


def _eliminate_joins(select: Select, lookup: Lookup, universe: Universe) -> Select:
    if not select.joins:
        return select
    tables = resolve_joins(select.joins, select.predicate, lookup, universe)
    read = (each for part in _expressions(select) for each in columns_of(part) if each.alias)
    flat = _JoinElimination(
        tables, {each: _joined_column(each, tables[each.alias]) for each in set(read)}
    )
    return replace(
        select,
        aggregates=tuple(map(flat.aggregate, select.aggregates)),
        keys=tuple(map(flat.rewrite, select.keys)),
        predicate=flat.rewrite_predicate(select.predicate),
        joins=(),
    )


@dataclass(frozen=True, eq=False)
class _JoinElimination:
    """How the joins of a select are left out: what is met, and what each joined column becomes."""

    tables: Mapping[str, JoinedRows]
    columns: Mapping[ColumnRef, Expression]

    def aggregate(self, aggregate: Aggregate) -> Aggregate:
        """An aggregate over the protected table alone."""
        given = aggregate.argument
        return replace(
            aggregate,
            argument=None if given is None else self.rewrite(given),
            predicate=self.rewrite_predicate(aggregate.predicate),
            keys=tuple(map(self.rewrite, aggregate.keys)),
            joins=(),
        )

    def rewrite_predicate(self, predicate: Expression) -> Expression:
        """A condition whose joins have become lists of the values that meet a row."""
        tables = self.tables.values()
        joining = [table.condition for table in tables]
        inside = [_is_among(table.root, list(table.places)) for table in tables]
        others = [each for each in conjuncts(predicate) if each not in joining]
        return all_of(*inside, *(_check_one_column(each, self.rewrite(each)) for each in others))

    def rewrite(self, expression: Expression) -> Expression:
        """An expression that reads no joined column."""
        found = substitute(expression, self._column)
        if isinstance(found, Call) and (found.size > MAX_NODES or found.depth > MAX_DEPTH):
            raise Unsupported("this reads joined columns too often; ask for fewer of them at once")
        return found

    def _column(self, node: Expression) -> Expression | None:
        return self.columns.get(node) if isinstance(node, ColumnRef) else None


def _check_one_column(condition: Expression, rewritten: Expression) -> Expression:
    """The rewritten condition, unless it joins a public table by a second column."""
    equal = isinstance(condition, Call) and condition.operation is Operation.EQUAL
    joined = any(reference.alias for reference in columns_of(condition))
    if equal and joined and len(columns_of(rewritten)) > 1:
        names = " and ".join(sorted(each.column.name for each in columns_of(rewritten)))
        raise Unsupported(
            f"a public table is joined by {names} together; for private answers join it by its "
            f"key, to one column"
        )
    return rewritten


def _joined_column(reference: ColumnRef, table: JoinedRows) -> Expression:
    """A joined column as a CASE over the protected one.

    Records that meet no row are never selected, so they may count to the first value: then no
    group is there that no record can fall into.
    """
    found: dict[Scalar, list[Point]] = defaultdict(list)
    for value in table.places:
        found[_check_value(table.value(reference, value), reference)].append(value)
    kind = reference.type
    otherwise, *others = [Literal(each, kind) for each in found] or [Literal(None, kind)]
    branches = [
        part for each in others for part in (_is_among(table.root, found[each.value]), each)
    ]
    return Call(Operation.CASE, (*branches, otherwise), kind) if branches else otherwise


def _check_value(value: Scalar, reference: ColumnRef) -> Scalar:
    """A public value, which must have a place in every engine."""
    where = f"{reference.column.name} of a public table"
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise Unsupported(f"{where} is not finite in some rows")
    try:
        if isinstance(value, Decimal):
            check_digits(value)
    except Mismatch as mismatch:
        raise Unsupported(f"{where} cannot be used: {mismatch}") from None
    return value


def _is_among(root: ColumnRef, chosen: Sequence[Point]) -> Expression:
    """That a protected column has one of some values."""
    if not chosen:
        return FALSE
    constants = (Literal(each, root.type) for each in chosen)
    return Call(Operation.IN, (root, *constants), ColumnType.BOOLEAN)
