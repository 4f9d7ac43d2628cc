"""SELECT: from its clauses to rows, or to cells with their aggregates.

A query without aggregates is a view of rows and is merged into the query around it. A query with
aggregates gives cells; around those only arithmetic, filters, order and UNION ALL are accepted.
ROLLUP, CUBE and GROUPING SETS are the list of key sets they stand for. ORDER BY and LIMIT are read
in full, and acted upon by whoever shows the answer.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TypeVar

from sqlglot import exp

from casemate.query.aggregate import Ordering, Output, Select
from casemate.query.language import operations as make
from casemate.query.language.coercion import Mismatch, unify
from casemate.query.language.expression import (
    TRUE,
    Expression,
    KeyRef,
    Literal,
    Operation,
    all_of,
    columns_of,
    substitute,
)
from casemate.query.parse.functions import Collector, is_aggregate
from casemate.query.parse.scope import (
    AggregatedRows,
    SourceRows,
    Tables,
    VisibleColumn,
    alias_of,
    condition,
    find_column,
    fold_identifier,
    lookup,
    matches_name,
    read_condition,
    rename_aliases,
    rename_columns,
    resolve,
    shown_name,
    stars,
)
from casemate.query.parse.translate import NULL, NameReaders, Refusal, only, translate

Read = Callable[[exp.Expr], Expression]


def read_order(node: exp.Expr, outputs: Sequence[Output], read: Read) -> tuple[Ordering, ...]:
    """ORDER BY of a query: positions and names of what it shows, or what `read` makes of it."""
    clause = node.args.get("order")
    if clause is None:
        return ()
    only(clause, frozenset({"expressions"}))
    return tuple(_ordering(item, outputs, read) for item in clause.expressions)


def _ordering(item: exp.Expr, outputs: Sequence[Output], read: Read) -> Ordering:
    only(item, frozenset({"this", "desc", "nulls_first"}))
    descending, nulls_first = (bool(item.args.get(part)) for part in ("desc", "nulls_first"))
    return Ordering(_ordering_expression(item.this, outputs, read), descending, nulls_first)


def _ordering_expression(node: exp.Expr, outputs: Sequence[Output], read: Read) -> Expression:
    """A name means an output first and a column of FROM second, the reverse of GROUP BY."""
    if isinstance(node, exp.Literal):
        return outputs[position(node, len(outputs), "ORDER BY")].expression
    named = [each for each in outputs if _is_named(node, each)]
    return named[0].expression if named else read(node)


def _is_named(node: exp.Expr, output: Output) -> bool:
    return isinstance(node, exp.Column) and not node.table and matches_name(node.this, output.name)


def position(node: exp.Expr, count: int, clause: str) -> int:
    """The column of SELECT, from 0, that a constant in ORDER BY or GROUP BY names."""
    written = "" if node.args.get("is_string") else node.name
    if not written.isdecimal() or not 1 <= int(written) <= count:
        raise Refusal(node, f"a constant in {clause} is the position of a column of SELECT")
    return int(written) - 1


def row_limit(query: exp.Expr) -> int | None:
    """LIMIT of the outermost query, the only one: how many of its rows are shown."""
    for clause in query.find_all(exp.Limit, exp.Fetch, exp.Offset):
        if clause.parent is not query:
            raise Refusal(clause, "LIMIT is accepted at the end of the whole statement only")
        if isinstance(clause, exp.Offset):
            raise Refusal(clause, "OFFSET is not accepted")
    limit = query.args.get("limit")
    if limit is None:
        return None
    only(limit, frozenset({"expression", "direction", "count", "limit_options"}))
    if limit.args.get("limit_options") is not None:
        only(limit.args["limit_options"], frozenset({"rows"}))
    return _row_count(limit, limit.args.get("expression") or limit.args.get("count"))


def _row_count(clause: exp.Expr, count: exp.Expr | None) -> int | None:
    """A number of rows, after LIMIT or after FETCH FIRST; None for all of them."""
    if isinstance(count, exp.Literal) and not count.is_string and count.name.isdecimal():
        return int(count.name)
    if isinstance(count, exp.Null) or (isinstance(count, exp.Var) and count.name.upper() == "ALL"):
        return None
    raise Refusal(count or clause, "LIMIT takes a constant number of rows")


# Around aggregated rows: outer queries and UNION ALL ---------------------------------------------


MAX_SELECTS = 4_096


def overlay(node: exp.Select, cells: AggregatedRows) -> AggregatedRows:
    """A query around an aggregating one, over each of its selects."""
    for part in ("group", "having"):
        if node.args.get(part):
            raise Refusal(node.args[part], "aggregated values cannot be aggregated again")
    for item in node.expressions:
        if is_aggregate(item):
            raise Refusal(item, "aggregated values cannot be aggregated again")
    return AggregatedRows(
        tuple(_overlay_select(node, select, cells.table) for select in cells.selects)
    )


def _overlay_select(node: exp.Select, select: Select, table: str) -> Select:
    """One select of the inner query as the outer query shows it."""
    visible = tuple(VisibleColumn(table, each.name, each.expression) for each in select.outputs)
    names = NameReaders(lambda column: resolve(column, visible))
    outputs = list(_expand_stars(node, visible, lambda item: translate(item, names)))
    where = node.args.get("where")
    filtered = () if where is None else (read_condition(where.this, visible),)
    order = read_order(node, outputs, lambda each: translate(each, names)) or select.order
    having = all_of(select.having, *filtered)
    return replace(select, outputs=tuple(outputs), having=having, order=order)


def _expand_stars(
    node: exp.Select, visible: tuple[VisibleColumn, ...], read: Read
) -> Iterator[Output]:
    """What a SELECT shows, with a star as the columns that it stands for."""
    for item in node.expressions:
        expanded = stars(item, visible)
        if expanded is None:
            yield Output(shown_name(item), read(item))
        else:
            yield from (Output(each.name, each.expression) for each in expanded)


def union(node: exp.Expr, branches: Sequence[tuple[exp.Expr, AggregatedRows]]) -> AggregatedRows:
    """UNION ALL: the branches' selects, under the names of the first and in common types."""
    first = branches[0][1].selects[0].outputs
    for branch, cells in branches:
        if len(cells.selects[0].outputs) != len(first):
            raise Refusal(branch, "this part of the UNION ALL has another number of columns")
    selects = [select for _, cells in branches for select in cells.selects]
    if len(selects) > MAX_SELECTS:
        raise Refusal(node, f"this makes more than {MAX_SELECTS:,} queries")
    names = [output.name for output in first]
    parts = zip(*([each.expression for each in select.outputs] for select in selects), strict=True)
    columns = [_common(node, column) for column in parts]
    renamed = [
        replace(select, outputs=tuple(map(Output, names, shown)))
        for select, shown in zip(selects, zip(*columns, strict=True), strict=True)
    ]
    return AggregatedRows(tuple(_with_union_order(node, select) for select in renamed))


def _common(node: exp.Expr, column: Sequence[Expression]) -> tuple[Expression, ...]:
    """One column of a UNION ALL, its parts brought to one type."""
    try:
        return unify(column)[0]
    except Mismatch as mismatch:
        raise Refusal(node, f"in a column of this UNION ALL, {mismatch}") from None


def _with_union_order(node: exp.Expr, select: Select) -> Select:
    """ORDER BY after a UNION ALL: only what is shown can be named there."""

    def unknown(item: exp.Expr) -> Expression:
        raise Refusal(item, "ORDER BY after UNION ALL names a column that is shown")

    return replace(select, order=read_order(node, select.outputs, unknown))


# GROUP BY ----------------------------------------------------------------------------------------


MAX_GROUPING_SETS = 256
KeyT = TypeVar("KeyT", bound=Hashable)
KeySet = tuple[KeyT, ...]
ReadKey = Callable[[exp.Expr], KeyT]


def grouping_sets(node: exp.Select, read: ReadKey[KeyT]) -> tuple[list[KeySet[KeyT]], KeySet[KeyT]]:
    """The key sets of a query's GROUP BY, and every key of any of them, as `read` reads them."""
    clause = node.args.get("group")
    if clause is None:
        return [()], ()
    only(clause, frozenset({"expressions", "grouping_sets", "rollup", "cube"}))
    parts = ("expressions", "grouping_sets", "rollup", "cube")
    items = [each for part in parts for each in clause.args.get(part) or []]
    choices = [item_sets(item, read) for item in items]
    if math.prod(map(len, choices)) > MAX_GROUPING_SETS:
        raise Refusal(clause, f"this makes more than {MAX_GROUPING_SETS} grouping sets")
    sets = [unique(chosen) for chosen in product(*choices)]
    if clause.args.get("all") is False:  # GROUP BY DISTINCT; else a set asked for twice shows twice
        sets = list({frozenset(each): each for each in reversed(sets)}.values())[::-1]
    return sets, unique(sets)


def unique(parts: Iterable[KeySet[KeyT]]) -> KeySet[KeyT]:
    """The keys of several sets, each once."""
    return tuple(dict.fromkeys(key for part in parts for key in part))


def item_sets(item: exp.Expr, read: ReadKey[KeyT]) -> list[KeySet[KeyT]]:
    """The key sets that one item of GROUP BY stands for."""
    if isinstance(item, exp.Rollup):
        parts = [key_set(each, read) for each in item.expressions]
        return [unique(parts[:size]) for size in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        parts = [key_set(each, read) for each in item.expressions]
        if len(parts) > 8:
            raise Refusal(item, "CUBE of more than 8 keys is not accepted")
        masks = range(2 ** len(parts) - 1, -1, -1)
        return [unique(p for i, p in enumerate(parts) if mask >> i & 1) for mask in masks]
    if isinstance(item, exp.GroupingSets):
        return [found for each in item.expressions for found in item_sets(each, read)]
    return [key_set(item, read)]


def key_set(item: exp.Expr, read: ReadKey[KeyT]) -> KeySet[KeyT]:
    """One key, or several in parentheses."""
    if isinstance(item, exp.Tuple):
        return tuple(read(each) for each in item.expressions)
    return (read(item.this if isinstance(item, exp.Paren) else item),)


# Queries -----------------------------------------------------------------------------------------


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
        tables.views[-1][name] = rename_columns(read_query(view.this, tables), name, view)


# FROM ---------------------------------------------------------------------------------------


def read_from(node: exp.Select, tables: Tables) -> SourceRows | AggregatedRows:
    """FROM and JOIN: the columns that can be seen, and the conditions that tie tables together."""
    clause = node.args.get("from_")
    if clause is None:
        return tables.protected_rows()
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
        return rename_columns(read_query(node.this, tables), alias_of(node), node)
    raise Refusal(node, "only tables and derived tables are accepted here")


def read_join(node: exp.Join, left: SourceRows, tables: Tables) -> SourceRows:
    """An inner join: both sides' columns, and the condition."""
    plain = not node.args.get("side") and not node.args.get("method")
    if not plain or node.args.get("kind") not in (None, "", "INNER", "CROSS"):
        raise Refusal(node, "only inner joins with a condition are accepted")
    only(node, frozenset({"this", "on", "using", "kind"}))
    right = check_join(node, left, read_source(node.this, tables))
    using = node.args.get("using") or []
    conditions = [using_condition(name, left, right) for name in using]
    columns = merge_columns(left.columns, right.columns, using)
    if node.args.get("on") is not None:
        conditions.append(read_condition(node.args["on"], columns))
    return SourceRows(
        columns,
        left.protected or right.protected,
        (*left.joins, *right.joins),
        all_of(left.predicate, right.predicate, *conditions),
        left.positions and right.positions,
    )


def check_join(node: exp.Join, left: SourceRows, right: SourceRows | AggregatedRows) -> SourceRows:
    """The right side of a join, which must be another table under another name."""
    if isinstance(right, AggregatedRows):
        raise Refusal(node, "an aggregated table cannot be joined")
    if left.protected and right.protected:
        raise Refusal(node.this, "the protected table cannot be joined to itself")
    names = {each.table for each in left.columns} & {each.table for each in right.columns}
    if names - {""}:
        raise Refusal(node.this, f"two tables are called {min(names)} here; rename one")
    return right


def using_condition(name: exp.Expr, left: SourceRows, right: SourceRows) -> Expression:
    """One column of USING: equality of the columns of that name on both sides."""
    sides = (find_column(name, name, side.columns) for side in (left, right))
    try:
        return make.compare(Operation.EQUAL, *sides)
    except Mismatch as mismatch:
        raise Refusal(name, str(mismatch)) from None


def merge_columns(
    left: tuple[VisibleColumn, ...], right: tuple[VisibleColumn, ...], using: list[exp.Expr]
) -> tuple[VisibleColumn, ...]:
    """The columns of both sides; those of USING come first, and once unless asked for by table."""

    def is_shared(each: VisibleColumn) -> bool:
        return not each.merged and any(matches_name(name, each.name) for name in using)

    first = [
        each for name in using for each in left if is_shared(each) and matches_name(name, each.name)
    ]
    rest = [each for each in left if not is_shared(each)]
    other = [replace(each, merged=each.merged or is_shared(each)) for each in right]
    return (*first, *rest, *other)


# Views --------------------------------------------------------------------------------------


def read_select(node: exp.Select, source: SourceRows) -> SourceRows | AggregatedRows:
    """A query over rows: a view if nothing is aggregated, cells otherwise."""
    where = node.args.get("where")
    if where is not None:
        filtered = read_condition(where.this, source.columns)
        source = replace(source, predicate=all_of(source.predicate, filtered))
    return read_cells(node, source) if aggregates(node) else read_view(node, source)


def aggregates(node: exp.Select) -> bool:
    """Whether a query has aggregates, and gives cells instead of rows."""
    clauses = node.args.get("group") or node.args.get("having")
    return bool(clauses) or any(map(is_aggregate, node.expressions))


def read_view(node: exp.Select, source: SourceRows) -> SourceRows:
    """A query without aggregates: expressions under new names, over the same rows."""
    for part in ("limit", "offset"):
        if node.args.get(part):
            raise Refusal(node.args[part], f"{part.upper()} on single rows is not accepted")
    names = NameReaders(lambda column: resolve(column, source.columns))
    read = partial(view_column, names=names, source=source)
    shown = list(_expand_stars(node, source.columns, read))
    read_order(node, shown, lambda each: translate(each, names))  # read, though it changes nothing
    columns = tuple(VisibleColumn("", each.name, each.expression) for each in shown)
    starred = any(stars(item, source.columns) is not None for item in node.expressions)
    return replace(source, columns=columns, positions=source.positions or not starred)


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
    source = rename_aliases(source, {join.alias: f"j{i}" for i, join in enumerate(source.joins, 1)})
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
    if any(matches_name(item.this, each.name) for each in source.columns):
        return item
    aliases = [each for each in node.expressions if isinstance(each, exp.Alias)]
    return next(
        (
            each.this
            for each in aliases
            if matches_name(item.this, fold_identifier(each.args["alias"]))
        ),
        item,
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

    def as_key(part: Expression) -> Expression | None:
        if isinstance(part, Literal) and part is not mixed:
            return None  # a constant inside an expression is itself, though one is a key as well
        if part in keys:
            return KeyRef(keys.index(part), part.type)
        return replace(NULL, type=part.type) if part in every else None

    shown = substitute(mixed, as_key)
    for loose in columns_of(shown):
        where = next(
            (each for each in node.find_all(exp.Column) if names.column(each) == loose), node
        )
        raise Refusal(where, f"{loose.column.name} is neither aggregated nor in GROUP BY")
    return shown
