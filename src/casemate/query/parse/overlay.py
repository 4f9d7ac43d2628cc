"""Queries around aggregating ones: arithmetic over their outputs, filters, order, UNION ALL.

ORDER BY and LIMIT: read in full, acted upon by whoever shows the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace as changed

from sqlglot import exp

from casemate.query.aggregate import Ordering, Output, Select
from casemate.query.language.coercion import Mismatch, unify
from casemate.query.language.expression import Expression, all_of
from casemate.query.parse.functions import is_aggregate
from casemate.query.parse.scope import (
    AggregatedRows,
    Named,
    read_condition,
    resolve,
    shown_name,
    spelled,
    stars,
)
from casemate.query.parse.translate import NameReaders, Refusal, only, translate

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
    return Ordering(_ordering_ordered(item.this, outputs, read), descending, nulls_first)


def _ordering_ordered(node: exp.Expr, outputs: Sequence[Output], read: Read) -> Expression:
    """A name means an output first and a column of FROM second, the reverse of GROUP BY."""
    if isinstance(node, exp.Literal):
        return outputs[position(node, len(outputs), "ORDER BY")].expression
    named = [each for each in outputs if _is_named(node, each)]
    return named[0].expression if named else read(node)


def _is_named(node: exp.Expr, output: Output) -> bool:
    return isinstance(node, exp.Column) and not node.table and spelled(node.this, output.name)


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
    return None if limit is None else _fetched(limit) if "count" in limit.args else _limited(limit)


def _limited(limit: exp.Expr) -> int | None:
    only(limit, frozenset({"expression"}))
    return _row_count(limit, limit.args.get("expression"))


def _fetched(fetch: exp.Expr) -> int | None:
    """FETCH FIRST n ROWS ONLY, which is LIMIT n."""
    only(fetch, frozenset({"direction", "count", "limit_options"}))
    options = fetch.args.get("limit_options")
    if options is not None:
        only(options, frozenset({"rows"}))
    return _row_count(fetch, fetch.args.get("count"))


def _row_count(clause: exp.Expr, count: exp.Expr | None) -> int | None:
    if isinstance(count, exp.Literal) and not count.is_string and count.name.isdecimal():
        return int(count.name)
    if isinstance(count, exp.Null) or (isinstance(count, exp.Var) and count.name.upper() == "ALL"):
        return None
    raise Refusal(count or clause, "LIMIT takes a constant number of rows")


# Overlay ----------------------------------------------------------------------------------------


MOST_SELECTS = 4_096


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
    visible = tuple(Named(table, each.name, each.expression) for each in select.outputs)
    names = NameReaders(lambda column: resolve(column, visible))
    outputs: list[Output] = []
    for item in node.expressions:
        shown = stars(item, visible)
        if shown is not None:
            outputs.extend(Output(each.name, each.expression) for each in shown)
        else:
            outputs.append(Output(shown_name(item), translate(item, names)))
    where = node.args.get("where")
    filtered = () if where is None else (read_condition(where.this, visible),)
    order = read_order(node, outputs, lambda each: translate(each, names)) or select.order
    having = all_of(select.having, *filtered)
    return changed(select, outputs=tuple(outputs), having=having, order=order)


def union(node: exp.Expr, branches: Sequence[tuple[exp.Expr, AggregatedRows]]) -> AggregatedRows:
    """UNION ALL: the branches' selects, under the names of the first and in common types."""
    first = branches[0][1].selects[0].outputs
    for branch, cells in branches:
        if len(cells.selects[0].outputs) != len(first):
            raise Refusal(branch, "this part of the UNION ALL has another number of columns")
    selects = [select for _, cells in branches for select in cells.selects]
    if len(selects) > MOST_SELECTS:
        raise Refusal(node, f"this makes more than {MOST_SELECTS:,} queries")
    names = [output.name for output in first]
    parts = zip(*([each.expression for each in select.outputs] for select in selects), strict=True)
    columns = [_common(node, column) for column in parts]
    renamed = [
        changed(select, outputs=tuple(map(Output, names, shown)))
        for select, shown in zip(selects, zip(*columns, strict=True), strict=True)
    ]
    return AggregatedRows(tuple(_ordered(node, select) for select in renamed))


def _common(node: exp.Expr, column: Sequence[Expression]) -> tuple[Expression, ...]:
    """One column of a UNION ALL, its parts brought to one type."""
    try:
        return unify(column)[0]
    except Mismatch as mismatch:
        raise Refusal(node, f"in a column of this UNION ALL, {mismatch}") from None


def _ordered(node: exp.Expr, select: Select) -> Select:
    """ORDER BY after a UNION ALL: only what is shown can be named there."""

    def unknown(item: exp.Expr) -> Expression:
        raise Refusal(item, "ORDER BY after UNION ALL names a column that is shown")

    return changed(select, order=read_order(node, select.outputs, unknown))
