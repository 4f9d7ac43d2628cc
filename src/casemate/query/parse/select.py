"""SELECT: from its clauses to rows, or to cells with their aggregates.

A query without aggregates is a view of rows and is merged into the query around it. A query with
aggregates gives cells; around those only arithmetic, filters and order are accepted.

GROUP BY, ROLLUP, CUBE and GROUPING SETS as the list of key sets they stand for.
"""

from collections.abc import Iterable
from dataclasses import replace as changed
from itertools import product

from sqlglot import exp

from casemate.query.aggregate import Output, Select
from casemate.query.language import operations as make
from casemate.query.language.coercion import Mismatch
from casemate.query.language.expression import (
    TRUE,
    Expression,
    KeyRef,
    Literal,
    Operation,
    all_of,
    columns_of,
    replace,
)
from casemate.query.parse.functions import Collector, is_aggregate
from casemate.query.parse.overlay import Read, overlay, position, read_order, union
from casemate.query.parse.scope import (
    AggregatedRows,
    Named,
    SourceRows,
    Tables,
    alias_of,
    condition,
    folded,
    lookup,
    named,
    read_condition,
    realiased,
    renamed,
    resolve,
    shown_name,
    spelled,
    stars,
)
from casemate.query.parse.translate import NULL, NameReaders, Refusal, only, translate

MOST_SETS = 256
KeySet = tuple[Expression, ...]


def grouping_sets(node: exp.Select, read: Read) -> tuple[list[KeySet], KeySet]:
    """The key sets of a query's GROUP BY, and every key of any of them."""
    clause = node.args.get("group")
    if clause is None:
        return [()], ()
    only(clause, frozenset({"expressions", "grouping_sets", "rollup", "cube"}))
    items = [
        *clause.expressions,
        *(
            each
            for part in ("grouping_sets", "rollup", "cube")
            for each in clause.args.get(part) or []
        ),
    ]
    choices = [item_sets(item, read) for item in items]
    if count_products(choices) > MOST_SETS:
        raise Refusal(clause, f"this makes more than {MOST_SETS} grouping sets")
    sets = [unique(key for part in chosen for key in part) for chosen in product(*choices)]
    if (
        clause.args.get("all") is False
    ):  # GROUP BY DISTINCT; else a set asked for twice is shown twice
        sets = list({frozenset(each): each for each in reversed(sets)}.values())[::-1]
    return sets, unique(key for each in sets for key in each)


def count_products(choices: list[list[KeySet]]) -> int:
    total = 1
    for each in choices:
        total *= len(each)
    return total


def unique(keys: Iterable[Expression]) -> KeySet:
    return tuple(dict.fromkeys(keys))


def item_sets(item: exp.Expr, read: Read) -> list[KeySet]:
    """The key sets that one item of GROUP BY stands for."""
    if isinstance(item, exp.Rollup):
        parts = [key_set(each, read) for each in item.expressions]
        return [flatten(parts[:size]) for size in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        parts = [key_set(each, read) for each in item.expressions]
        if len(parts) > 8:
            raise Refusal(item, "CUBE of more than 8 keys is not accepted")
        masks = range(2 ** len(parts) - 1, -1, -1)
        return [flatten([p for i, p in enumerate(parts) if mask >> i & 1]) for mask in masks]
    if isinstance(item, exp.GroupingSets):
        return [found for each in item.expressions for found in item_sets(each, read)]
    return [key_set(item, read)]


def flatten(parts: list[KeySet]) -> KeySet:
    return tuple(key for part in parts for key in part)


def key_set(item: exp.Expr, read: Read) -> KeySet:
    """One key, or several in parentheses."""
    if isinstance(item, exp.Tuple):
        return tuple(read(each) for each in item.expressions)
    return (read(item.this if isinstance(item, exp.Paren) else item),)


# Select -----------------------------------------------------------------------------------------


CLAUSES = frozenset({"expressions", "from_", "joins", "where", "group", "having"})
ENDING = frozenset({"order", "limit", "offset", "with_"})


def read_query(node: exp.Expr, tables: Tables) -> SourceRows | AggregatedRows:
    """What a query gives: rows of a view, or cells."""
    if isinstance(node, exp.Subquery):
        only(node, frozenset({"this", "alias"}))
        return read_query(node.this, tables)
    if isinstance(node, exp.Union):
        return read_union(node, tables)
    if not isinstance(node, exp.Select):
        raise Refusal(node, "only SELECT and UNION ALL are accepted")
    only(node, CLAUSES | ENDING)
    if not node.expressions:
        raise Refusal(node, "this SELECT shows nothing")
    with tables.scope():
        read_views(node, tables)
        source = read_from(node, tables)
        return (
            overlay(node, source)
            if isinstance(source, AggregatedRows)
            else read_select(node, source)
        )


def read_union(node: exp.Union, tables: Tables) -> AggregatedRows:
    """UNION ALL of aggregating queries: all of their cells."""
    with tables.scope():
        read_views(node, tables)
        branches = []
        for branch in union_branches(node):
            cells = read_query(branch, tables)
            if not isinstance(cells, AggregatedRows):
                raise Refusal(branch, "nothing is aggregated here, and single rows are not shown")
            branches.append((branch, cells))
    return union(node, branches)


def union_branches(node: exp.Union) -> list[exp.Expr]:
    """The queries between the UNION ALLs; a long chain leans to the left."""
    branches: list[exp.Expr] = []
    pending: list[exp.Expr] = [node]
    while pending:
        branch = pending.pop()
        inner = branch is not node and any(branch.args.get(part) for part in ENDING)
        if not isinstance(branch, exp.Union) or inner:
            branches.append(branch)
            continue
        only(branch, frozenset({"this", "expression", "distinct"}) | ENDING)
        if branch.args.get("distinct"):
            raise Refusal(branch, "UNION without ALL is not accepted")
        pending += [branch.expression, branch.this]
    return branches


def read_views(node: exp.Expr, tables: Tables) -> None:
    """WITH: each query under its name, seen by those after it."""
    clause = node.args.get("with_")
    if clause is None:
        return
    only(clause, frozenset({"expressions"}))
    for view in clause.expressions:
        only(view, frozenset({"this", "alias", "materialized"}))
        name = alias_of(view)
        if name in tables.views[-1]:
            raise Refusal(view, f"WITH names {name} twice")
        tables.views[-1][name] = renamed(read_query(view.this, tables), name, view)


# FROM ---------------------------------------------------------------------------------------


def read_from(node: exp.Select, tables: Tables) -> SourceRows | AggregatedRows:
    """FROM and JOIN: the columns that can be seen, and the conditions that tie tables together."""
    clause = node.args.get("from_")
    if clause is None:
        return tables.protected()
    only(clause, frozenset({"this"}))
    joins = node.args.get("joins") or []
    nested = clause.this.args.get("joins") or []
    source = read_source(clause.this, tables)
    if isinstance(source, AggregatedRows):
        for join in (*nested, *joins):
            raise Refusal(join, "an aggregated table cannot be joined")
        return source
    for join in joins:
        source = read_join(join, source, tables)
    return source


def read_source(node: exp.Expr, tables: Tables) -> SourceRows | AggregatedRows:
    """One table, view or derived table of FROM."""
    if isinstance(node, exp.Table):
        return tables.rows(node)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        only(node, frozenset({"this", "alias"}))
        return renamed(read_query(node.this, tables), alias_of(node), node)
    raise Refusal(node, "only tables and derived tables are accepted here")


def read_join(node: exp.Join, left: SourceRows, tables: Tables) -> SourceRows:
    """An inner join: both sides' columns, and the condition."""
    plain = not node.args.get("side") and not node.args.get("method")
    if not plain or node.args.get("kind") not in (None, "", "INNER", "CROSS"):
        raise Refusal(node, "only inner joins with a condition are accepted")
    only(node, frozenset({"this", "on", "using", "kind"}))
    right = joined(node, left, read_source(node.this, tables))
    using = node.args.get("using") or []
    conditions = [equated(name, left, right) for name in using]
    columns = merged(left.columns, right.columns, using)
    if node.args.get("on") is not None:
        conditions.append(read_condition(node.args["on"], columns))
    return SourceRows(
        columns,
        left.protected or right.protected,
        (*left.joins, *right.joins),
        all_of(left.predicate, right.predicate, *conditions),
        left.positions and right.positions,
    )


def joined(node: exp.Join, left: SourceRows, right: SourceRows | AggregatedRows) -> SourceRows:
    """The right side of a join, which must be another table under another name."""
    if isinstance(right, AggregatedRows):
        raise Refusal(node, "an aggregated table cannot be joined")
    if left.protected and right.protected:
        raise Refusal(node.this, "the protected table cannot be joined to itself")
    names = {each.table for each in left.columns} & {each.table for each in right.columns}
    if names - {""}:
        raise Refusal(node.this, f"two tables are called {min(names)} here; rename one")
    return right


def equated(name: exp.Expr, left: SourceRows, right: SourceRows) -> Expression:
    """One column of USING: equality of the columns of that name on both sides."""
    sides = (named(name, name, side.columns) for side in (left, right))
    try:
        return make.compare(Operation.EQUAL, *sides)
    except Mismatch as mismatch:
        raise Refusal(name, str(mismatch)) from None


def merged(
    left: tuple[Named, ...], right: tuple[Named, ...], using: list[exp.Expr]
) -> tuple[Named, ...]:
    """The columns of both sides; those of USING come first, and once unless asked for by table."""

    def shared(each: Named) -> bool:
        return not each.merged and any(spelled(name, each.name) for name in using)

    first = [each for name in using for each in left if shared(each) and spelled(name, each.name)]
    rest = [each for each in left if not shared(each)]
    other = [changed(each, merged=each.merged or shared(each)) for each in right]
    return (*first, *rest, *other)


# Views --------------------------------------------------------------------------------------


def read_select(node: exp.Select, source: SourceRows) -> SourceRows | AggregatedRows:
    """A query over rows: a view if nothing is aggregated, cells otherwise."""
    where = node.args.get("where")
    if where is not None:
        filtered = read_condition(where.this, source.columns)
        source = changed(source, predicate=all_of(source.predicate, filtered))
    aggregated = node.args.get("group") or node.args.get("having")
    if not aggregated and not any(is_aggregate(each) for each in node.expressions):
        return read_view(node, source)
    return read_cells(node, source)


def read_view(node: exp.Select, source: SourceRows) -> SourceRows:
    """A query without aggregates: expressions under new names, over the same rows."""
    for part in ("limit", "offset"):
        if node.args.get(part):
            raise Refusal(node.args[part], f"{part.upper()} on single rows is not accepted")
    names = NameReaders(lambda column: resolve(column, source.columns))
    columns: list[Named] = []
    positions = True
    for item in node.expressions:
        expanded = stars(item, source.columns)
        if expanded is not None:
            columns.extend(Named("", each.name, each.expression) for each in expanded)
            positions = positions and source.positions
        else:
            columns.append(Named("", shown_name(item), view_column(item, names, source)))
    shown = [Output(each.name, each.expression) for each in columns]
    read_order(node, shown, lambda each: translate(each, names))  # read, though it changes nothing
    return changed(source, columns=tuple(columns), positions=positions)


def view_column(item: exp.Expr, names: NameReaders, source: SourceRows) -> Expression:
    """One column of a view; an identifier may pass through it, to be refused where it is used."""
    inner = item.unalias()
    return (
        lookup(inner, source.columns) if isinstance(inner, exp.Column) else translate(item, names)
    )


# Cells --------------------------------------------------------------------------------------


def read_cells(node: exp.Select, source: SourceRows) -> AggregatedRows:
    """A query with aggregates: one select for each grouping set."""
    if not source.protected:
        raise Refusal(node.args["from_"].this, "this asks nothing about the protected table")
    for item in node.expressions:
        if stars(item, source.columns) is not None:
            raise Refusal(item, "single rows are not shown; ask for an aggregate")
    source = realiased(source, {join.alias: f"j{i}" for i, join in enumerate(source.joins, 1)})
    sets, every = grouping_sets(node, lambda each: group_key(each, node, source))
    return AggregatedRows(tuple(read_set(node, source, keys, every) for keys in sets))


def group_key(item: exp.Expr, node: exp.Select, source: SourceRows) -> Expression:
    """One expression of GROUP BY: a position, a column, a name given in SELECT, or itself."""
    meant = grouped_item(item, node, source)
    if is_aggregate(meant):
        raise Refusal(meant, "an aggregate does not stand in GROUP BY")
    return translate(meant, NameReaders(lambda column: resolve(column, source.columns)))


def grouped_item(item: exp.Expr, node: exp.Select, source: SourceRows) -> exp.Expr:
    """What an item of GROUP BY stands for; a column of FROM goes before a name of SELECT."""
    if isinstance(item, exp.Literal):
        return node.expressions[position(item, len(node.expressions), "GROUP BY")].unalias()  # type: ignore[no-any-return]  # sqlglot's own node
    if not isinstance(item, exp.Column) or item.table:
        return item
    if any(spelled(item.this, each.name) for each in source.columns):
        return item
    aliases = [each for each in node.expressions if isinstance(each, exp.Alias)]
    return next(
        (each.this for each in aliases if spelled(item.this, folded(each.args["alias"]))), item
    )


def read_set(
    node: exp.Select,
    source: SourceRows,
    keys: tuple[Expression, ...],
    every: tuple[Expression, ...],
) -> Select:
    """One grouping set: aggregates by these keys; keys of other sets are NULL here."""
    collector = Collector(source, keys)
    names = NameReaders(lambda column: resolve(column, source.columns), collector.read)

    def read(item: exp.Expr) -> Expression:
        return over_cells(item, names, keys, every)

    outputs = [Output(shown_name(item), read(item)) for item in node.expressions]
    clause = node.args.get("having")
    having = TRUE if clause is None else condition(clause.this, read(clause.this))
    order = read_order(node, outputs, read)
    if not collector.found:
        raise Refusal(node, "nothing is aggregated here, and single rows are not shown")
    found = tuple(collector.found)
    return Select(found, keys, tuple(outputs), source.predicate, source.joins, having, order)


def over_cells(
    node: exp.Expr,
    names: NameReaders,
    keys: tuple[Expression, ...],
    every: tuple[Expression, ...],
) -> Expression:
    """An expression over results and keys; a column that is neither is refused."""
    mixed = translate(node, names)

    def grouped(part: Expression) -> Expression | None:
        if isinstance(part, Literal) and part is not mixed:
            return None  # a constant inside an expression is itself, though one is a key as well
        if part in keys:
            return KeyRef(keys.index(part), part.type)
        return changed(NULL, type=part.type) if part in every else None

    shown = replace(mixed, grouped)
    for loose in columns_of(shown):
        where = next(
            (each for each in node.find_all(exp.Column) if names.column(each) == loose), node
        )
        raise Refusal(where, f"{loose.column.name} is neither aggregated nor in GROUP BY")
    return shown
