"""Queries around aggregating ones: arithmetic over their outputs, filters, order, UNION ALL."""

from collections.abc import Sequence
from dataclasses import replace as changed

from sqlglot import exp

from casemate.query.aggregate import Output, Select
from casemate.query.coercion import Mismatch, unify
from casemate.query.expression import Expression, all_of
from casemate.query.functions import is_aggregate
from casemate.query.ordering import read_order
from casemate.query.scope import Cells, Named, read_condition, resolve, shown_name, stars
from casemate.query.translate import Names, Refusal, translate

MOST_SELECTS = 4_096


def overlay(node: exp.Select, cells: Cells) -> Cells:
    """A query around an aggregating one, over each of its selects."""
    for part in ("group", "having"):
        if node.args.get(part):
            raise Refusal(node.args[part], "aggregated values cannot be aggregated again")
    for item in node.expressions:
        if is_aggregate(item):
            raise Refusal(item, "aggregated values cannot be aggregated again")
    return Cells(tuple(_overlay_select(node, select, cells.table) for select in cells.selects))


def _overlay_select(node: exp.Select, select: Select, table: str) -> Select:
    """One select of the inner query as the outer query shows it."""
    visible = tuple(Named(table, each.name, each.expression) for each in select.outputs)
    names = Names(lambda column: resolve(column, visible))
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


def union(node: exp.Expr, branches: Sequence[tuple[exp.Expr, Cells]]) -> Cells:
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
    return Cells(tuple(_ordered(node, select) for select in renamed))


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
