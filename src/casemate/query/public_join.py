"""Statements with joins to public tables as statements without: everything said of one column.

The public row that a record meets is a function of one protected column's cell. So a joined column
is a CASE over the protected one, and the condition of the join says which of its values meet a row
at all. What is left has no joins, and the same answer on every table that keeps to its policy.

Public rows are public: reading them costs nothing, and they are read once.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from decimal import Decimal

from casemate.errors import Unsupported
from casemate.query.aggregate import Aggregate, Select, Statement
from casemate.query.answers import values
from casemate.query.coercion import Mismatch
from casemate.query.expression import (
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
    replace,
)
from casemate.query.operations import DEEPEST, LARGEST, check_digits
from casemate.query.public_join_met import Lookup, Met, Rows, met
from casemate.query.render import quote
from casemate.table.schema import ColumnType, Policy
from casemate.table.source import Source
from casemate.table.universe import Universe
from casemate.table.universe_cuts import Point


def public_rows(source: Source, policy: Policy, statement: Statement) -> Lookup:
    """What a statement needs of the public tables it joins; the protected one is not read."""
    wanted = _needed(statement)
    tables = [table.name for table in policy.public_tables if table.name in wanted]
    return {name: _read(source, name, sorted(wanted[name])) for name in tables}


def _needed(statement: Statement) -> dict[str, set[str]]:
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
    shown = ", ".join(f"{quote(each)} AS c{place}" for place, each in enumerate(columns))
    frame = source.read(f"SELECT {shown} FROM {source.relation(name)} AS t")
    return {each: values(frame[f"c{place}"]) for place, each in enumerate(columns)}


def flattened(statement: Statement, lookup: Lookup, universe: Universe) -> Statement:
    """The statement without its joins; Unsupported where the cells of a column do not tell."""
    selects = tuple(_without_joins(each, lookup, universe) for each in statement.selects)
    return changed(statement, selects=selects)


def _without_joins(select: Select, lookup: Lookup, universe: Universe) -> Select:
    if not select.joins:
        return select
    tables = met(select.joins, select.predicate, lookup, universe)
    read = (each for part in _expressions(select) for each in columns_of(part) if each.alias)
    flat = _Flat(tables, {each: _chosen(each, tables[each.alias]) for each in set(read)})
    return changed(
        select,
        aggregates=tuple(map(flat.aggregate, select.aggregates)),
        keys=tuple(map(flat.rewritten, select.keys)),
        predicate=flat.narrowed(select.predicate),
        joins=(),
    )


@dataclass(frozen=True, eq=False)
class _Flat:
    """How the joins of a select are left out: what is met, and what each joined column becomes."""

    tables: Mapping[str, Met]
    columns: Mapping[ColumnRef, Expression]

    def aggregate(self, aggregate: Aggregate) -> Aggregate:
        """An aggregate over the protected table alone."""
        given = aggregate.argument
        return changed(
            aggregate,
            argument=None if given is None else self.rewritten(given),
            predicate=self.narrowed(aggregate.predicate),
            keys=tuple(map(self.rewritten, aggregate.keys)),
            joins=(),
        )

    def narrowed(self, predicate: Expression) -> Expression:
        """A condition whose joins have become lists of the values that meet a row."""
        tables = self.tables.values()
        joining = [table.condition for table in tables]
        inside = [_among(table.root, list(table.places)) for table in tables]
        others = [each for each in conjuncts(predicate) if each not in joining]
        return all_of(*inside, *(_by_one_column(each, self.rewritten(each)) for each in others))

    def rewritten(self, expression: Expression) -> Expression:
        """An expression that reads no joined column."""
        found = replace(expression, self._column)
        if isinstance(found, Call) and (found.size > LARGEST or found.depth > DEEPEST):
            raise Unsupported("this reads joined columns too often; ask for fewer of them at once")
        return found

    def _column(self, node: Expression) -> Expression | None:
        return self.columns.get(node) if isinstance(node, ColumnRef) else None


def _by_one_column(condition: Expression, rewritten: Expression) -> Expression:
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


def _chosen(reference: ColumnRef, table: Met) -> Expression:
    """A joined column as a CASE over the protected one.

    Records that meet no row are never selected, so they may count to the first value: then no
    group is there that no record can fall into.
    """
    found: dict[Scalar, list[Point]] = defaultdict(list)
    for value in table.places:
        found[_shown(table.value(reference, value), reference)].append(value)
    kind = reference.type
    otherwise, *others = [Literal(each, kind) for each in found] or [Literal(None, kind)]
    branches = [part for each in others for part in (_among(table.root, found[each.value]), each)]
    return Call(Operation.CASE, (*branches, otherwise), kind) if branches else otherwise


def _shown(value: Scalar, reference: ColumnRef) -> Scalar:
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


def _among(root: ColumnRef, chosen: Sequence[Point]) -> Expression:
    """That a protected column has one of some values."""
    if not chosen:
        return FALSE
    constants = (Literal(each, root.type) for each in chosen)
    return Call(Operation.IN, (root, *constants), ColumnType.BOOLEAN)
