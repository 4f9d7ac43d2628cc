"""ORDER BY and LIMIT: read in full, acted upon by whoever shows the answer."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from casemate.query.aggregate import Ordering, Output
from casemate.query.expression import Expression
from casemate.query.scope import spelled
from casemate.query.translate import Refusal, only

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
    return Ordering(_ordered(item.this, outputs, read), descending, nulls_first)


def _ordered(node: exp.Expr, outputs: Sequence[Output], read: Read) -> Expression:
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
