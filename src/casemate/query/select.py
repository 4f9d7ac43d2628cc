"""SELECT: from its clauses to rows, or to cells with their aggregates.

A query without aggregates is a view of rows and is merged into the query around it. A query with
aggregates gives cells; around those only arithmetic, filters and order are accepted.
"""

from collections.abc import Sequence
from dataclasses import replace as changed

from sqlglot import exp

from casemate.query import operations as make
from casemate.query.aggregate import Output, Select
from casemate.query.coercion import Mismatch
from casemate.query.expression import (
    TRUE,
    ColumnRef,
    Expression,
    KeyRef,
    Operation,
    all_of,
    columns_of,
    replace,
)
from casemate.query.functions import Collector, is_aggregate
from casemate.query.grouping import grouping_sets
from casemate.query.scope import Cells, Named, Rows, Tables, renamed, resolve, spelled, stars
from casemate.query.translate import NULL, Names, Refusal, only, translate

CLAUSES = frozenset({"expressions", "from_", "joins", "where", "group", "having"})
ENDING = frozenset({"order", "limit", "offset", "with_"})


def read_query(node: exp.Expr, tables: Tables) -> Rows | Cells:
    """What a query gives: rows of a view, or cells."""
    if isinstance(node, exp.Subquery):
        only(node, frozenset({"this", "alias"}))
        return read_query(node.this, tables)
    if isinstance(node, exp.Union):
        return read_union(node, tables)
    if not isinstance(node, exp.Select):
        raise Refusal(node, "only SELECT and UNION ALL are accepted")
    only(node, CLAUSES | ENDING)
    tables.views.append({})
    try:
        read_views(node, tables)
        source = read_from(node, tables)
        if isinstance(source, Cells):
            return overlay(node, source)
        return read_select(node, source)
    finally:
        tables.views.pop()


def read_union(node: exp.Union, tables: Tables) -> Cells:
    """UNION ALL of aggregating queries: all of their cells."""
    only(node, frozenset({"this", "expression", "distinct"}) | ENDING)
    if node.args.get("distinct"):
        raise Refusal(node, "UNION without ALL is not accepted")
    tables.views.append({})
    read_views(node, tables)
    branches, pending = [], [node.this, node.expression]
    while pending:  # a long chain leans to the left
        branch = pending.pop(0)
        if isinstance(branch, exp.Union) and not branch.args.get("with_"):
            only(branch, frozenset({"this", "expression"}) | ENDING)
            if branch.args.get("distinct"):
                raise Refusal(branch, "UNION without ALL is not accepted")
            pending[:0] = [branch.this, branch.expression]
        else:
            branches.append((branch, read_query(branch, tables)))
    tables.views.pop()
    for branch, cells in branches:
        if not isinstance(cells, Cells):
            raise Refusal(branch, "nothing is aggregated here, and single rows are not shown")
    return Cells(tuple(s for _, c in branches if isinstance(c, Cells) for s in c.selects))


def read_views(node: exp.Expr, tables: Tables) -> None:
    """WITH: each query under its name, seen by those after it."""
    clause = node.args.get("with_")
    if clause is None:
        return
    only(clause, frozenset({"expressions"}))
    for view in clause.expressions:
        only(view, frozenset({"this", "alias", "materialized"}))
        found = read_query(view.this, tables)
        tables.views[-1][view.alias.lower()] = renamed(found, view.alias, view)


def read_from(node: exp.Select, tables: Tables) -> Rows | Cells:
    """FROM and JOIN: the columns that can be seen, and the conditions that tie tables together."""
    clause = node.args.get("from_")
    if clause is None:
        return tables.protected()
    only(clause, frozenset({"this"}))
    joins = node.args.get("joins") or []
    nested = clause.this.args.get("joins") or []
    source = read_source(clause.this, tables)
    if isinstance(source, Cells):
        for join in (*nested, *joins):
            raise Refusal(join, "an aggregated table cannot be joined")
        return source
    for join in joins:
        source = read_join(join, source, tables)
    return source


def read_source(node: exp.Expr, tables: Tables) -> Rows | Cells:
    """One table, view or derived table of FROM."""
    if isinstance(node, exp.Table):
        return tables.rows(node)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        only(node, frozenset({"this", "alias"}))
        return renamed(read_query(node.this, tables), node.alias, node)
    raise Refusal(node, "only tables and derived tables are accepted here")


def read_join(node: exp.Join, left: Rows, tables: Tables) -> Rows:
    """An inner join: both sides' columns, and the condition."""
    plain = not node.args.get("side") and not node.args.get("method")
    if not plain or node.args.get("kind") not in (None, "", "INNER", "CROSS"):
        raise Refusal(node, "only inner joins with a condition are accepted")
    only(node, frozenset({"this", "on", "using", "kind"}))
    right = read_source(node.this, tables)
    if isinstance(right, Cells):
        raise Refusal(node, "an aggregated table cannot be joined")
    if left.protected and right.protected:
        raise Refusal(node.this, "the protected table cannot be joined to itself")
    both = Rows(
        (*left.columns, *right.columns),
        left.protected or right.protected,
        (*left.joins, *right.joins),
        all_of(left.predicate, right.predicate),
    )
    condition = read_using(node, left, right)
    if node.args.get("on") is not None:
        condition = read_condition(node.args["on"], both.columns)
    shared = {each.name.lower() for each in node.args.get("using") or []}
    hidden = [each for each in right.columns if each.name.lower() in shared]
    columns = tuple(each for each in both.columns if each not in hidden)
    return changed(both, columns=columns, predicate=all_of(both.predicate, condition))


def read_using(node: exp.Join, left: Rows, right: Rows) -> Expression:
    """USING: equality of the columns of that name on both sides."""
    parts = [
        make.compare(
            Operation.EQUAL,
            resolve(exp.Column(this=name.copy()), left.columns),
            resolve(exp.Column(this=name.copy()), right.columns),
        )
        for name in node.args.get("using") or []
    ]
    return all_of(*parts)


def read_condition(node: exp.Expr, visible: tuple[Named, ...]) -> Expression:
    """A condition on single rows."""
    expression = translate(node, Names(lambda column: resolve(column, visible)))
    try:
        return make.boolean(expression)
    except Mismatch as mismatch:
        raise Refusal(node, str(mismatch)) from None


def read_select(node: exp.Select, source: Rows) -> Rows | Cells:
    """A query over rows: a view if nothing is aggregated, cells otherwise."""
    where = node.args.get("where")
    if where is not None:
        condition = read_condition(where.this, source.columns)
        source = changed(source, predicate=all_of(source.predicate, condition))
    aggregated = node.args.get("group") or node.args.get("having")
    if not aggregated and not any(is_aggregate(each) for each in node.expressions):
        return read_view(node, source)
    return read_cells(node, source)


def read_view(node: exp.Select, source: Rows) -> Rows:
    """A query without aggregates: expressions under new names, over the same rows."""
    for part in ("limit", "offset"):
        if node.args.get(part):
            raise Refusal(node.args[part], f"{part.upper()} on single rows is not accepted")
    names = Names(lambda column: resolve(column, source.columns))
    columns: list[Named] = []
    for item in node.expressions:
        expanded = stars(item, source.columns)
        if expanded is not None:
            columns.extend(Named("", each.name, each.expression) for each in expanded)
        else:
            columns.append(Named("", shown_name(item), view_column(item, names, source)))
    return changed(source, columns=tuple(columns))


def view_column(item: exp.Expr, names: Names, source: Rows) -> Expression:
    """One column of a view; an identifier may pass through it, to be refused where it is used."""
    inner = item.unalias()
    if isinstance(inner, exp.Column):
        plain = [each for each in source.columns if spelled(inner.this, each.name)]
        if len(plain) == 1 and isinstance(plain[0].expression, ColumnRef):
            return plain[0].expression
    return translate(item, names)


def read_cells(node: exp.Select, source: Rows) -> Cells:
    """A query with aggregates: one select for each grouping set."""
    if not source.protected:
        raise Refusal(node.args["from_"].this, "this asks nothing about the protected table")
    for item in node.expressions:
        if stars(item, source.columns) is not None:
            raise Refusal(item, "single rows are not shown; ask for an aggregate")
    sets = grouping_sets(node, lambda each: group_key(each, node, source))
    return Cells(tuple(read_set(node, source, keys, sets[1]) for keys in sets[0]))


def group_key(item: exp.Expr, node: exp.Select, source: Rows) -> Expression:
    """One expression of GROUP BY: a position, a column, a name given in SELECT, or itself."""
    if isinstance(item, exp.Literal) and not item.args.get("is_string"):
        position = int(item.name) if item.name.isdigit() else 0
        if not 1 <= position <= len(node.expressions):
            raise Refusal(item, "GROUP BY names a column of SELECT by its position")
        return group_key(node.expressions[position - 1].unalias(), node, source)
    if is_aggregate(item):
        raise Refusal(item, "an aggregate does not stand in GROUP BY")
    if isinstance(item, exp.Column) and not item.table:
        known = any(spelled(item.this, each.name) for each in source.columns)
        named = [each for each in node.expressions if isinstance(each, exp.Alias)]
        meant = [each for each in named if spelled(item.this, each.alias)]
        if not known and meant:
            return group_key(meant[0].this, node, source)
    return translate(item, Names(lambda column: resolve(column, source.columns)))


def read_set(
    node: exp.Select, source: Rows, keys: tuple[Expression, ...], every: tuple[Expression, ...]
) -> Select:
    """One grouping set: aggregates by these keys; keys of other sets are NULL here."""
    collector = Collector(source, keys)
    names = Names(lambda column: resolve(column, source.columns), collector.read)
    outputs: list[Output] = []
    for item in node.expressions:
        shown = over_cells(item, names, keys, every)
        outputs.append(Output(shown_name(item), shown))
    having = (
        TRUE
        if node.args.get("having") is None
        else over_cells(node.args["having"].this, names, keys, every)
    )
    order = read_order(node, names, keys, every, outputs)
    if not collector.found:
        raise Refusal(node, "nothing is aggregated here, and single rows are not shown")
    found = tuple(collector.found)
    return Select(found, keys, tuple(outputs), source.predicate, source.joins, having, order)


def shown_name(item: exp.Expr) -> str:
    """The name of a column of SELECT; PostgreSQL names one that has none after its function."""
    if isinstance(item, exp.Alias | exp.Column):
        return str(item.alias_or_name)
    inner = item.this if isinstance(item, exp.Filter | exp.WithinGroup) else item
    return inner.sql_name().lower() if isinstance(inner, exp.Func) else "?column?"


def over_cells(
    node: exp.Expr,
    names: Names,
    keys: tuple[Expression, ...],
    every: tuple[Expression, ...],
) -> Expression:
    """An expression over results and keys; a column that is neither is refused."""
    mixed = translate(node, names)

    def grouped(part: Expression) -> Expression | None:
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


def read_order(
    node: exp.Select,
    names: Names,
    keys: tuple[Expression, ...],
    every: tuple[Expression, ...],
    outputs: Sequence[Output],
) -> tuple[Expression, ...]:
    """ORDER BY over cells: its aggregates are asked for too."""
    clause = node.args.get("order")
    found = []
    for item in clause.expressions if clause is not None else []:
        only(item, frozenset({"this", "desc", "nulls_first"}))
        named = [each for each in outputs if is_output(item.this, each)]
        if isinstance(item.this, exp.Literal) and item.this.name.isdigit():
            named = list(outputs[int(item.this.name) - 1 : int(item.this.name)])
        found.append(named[0].expression if named else over_cells(item.this, names, keys, every))
    return tuple(found)


def is_output(node: exp.Expr, output: Output) -> bool:
    return isinstance(node, exp.Column) and not node.table and spelled(node.this, output.name)


def overlay(node: exp.Select, cells: Cells) -> Cells:
    """A query around an aggregating one: arithmetic over its outputs, filters, order."""
    for part in ("group", "having"):
        if node.args.get(part):
            raise Refusal(node.args[part], "aggregated values cannot be aggregated again")
    for item in node.expressions:
        if is_aggregate(item):
            raise Refusal(item, "aggregated values cannot be aggregated again")
    return Cells(tuple(overlay_select(node, select) for select in cells.selects))


def overlay_select(node: exp.Select, select: Select) -> Select:
    """One select of the inner query as the outer query shows it."""
    visible = tuple(Named("", each.name, each.expression) for each in select.outputs)

    def column(reference: exp.Column) -> Expression:
        bare = reference.copy()
        bare.set("table", None)
        found = [each for each in visible if spelled(bare.this, each.name)]
        if not found:
            raise Refusal(reference, f"the inner query shows no column {reference.name}")
        return found[0].expression

    names = Names(column)
    outputs: list[Output] = []
    for item in node.expressions:
        if stars(item, visible) is not None:
            outputs.extend(select.outputs)
        else:
            outputs.append(Output(shown_name(item), translate(item, names)))
    where = node.args.get("where")
    having = select.having if where is None else all_of(select.having, translate(where.this, names))
    order = read_order(node, names, (), (), outputs) or select.order
    return changed(select, outputs=tuple(outputs), having=having, order=order)


def row_limit(node: exp.Expr) -> int | None:
    """LIMIT of the outermost query: how many of its rows are shown."""
    limit = node.args.get("limit")
    count = None if limit is None else limit.args.get("expression") or limit.args.get("count")
    return int(count.name) if isinstance(count, exp.Literal) and count.name.isdigit() else None
