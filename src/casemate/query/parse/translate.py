"""SQL expressions to the closed language: an allow-list of node types and of their parts.

A node that is not listed here, or that carries a part which is not listed, is refused with its
place; nothing passes through unread.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from casemate.query.language import operations as make
from casemate.query.language.coercion import Mismatch, number
from casemate.query.language.expression import Expression, Literal, Operation
from casemate.table import ColumnType

NULL = Literal(None, ColumnType.TEXT)
"""NULL without a type of its own: it takes its surroundings', as a quoted literal does."""

Type = exp.DataType.Type
TYPES = {
    Type.BOOLEAN: ColumnType.BOOLEAN,
    **dict.fromkeys((Type.SMALLINT, Type.INT, Type.BIGINT), ColumnType.INTEGER),
    Type.DECIMAL: ColumnType.DECIMAL,
    Type.DOUBLE: ColumnType.DOUBLE,
    **dict.fromkeys((Type.TEXT, Type.VARCHAR), ColumnType.TEXT),
    Type.DATE: ColumnType.DATE,
    Type.TIMESTAMP: ColumnType.TIMESTAMP,
}


class Refusal(Exception):
    """A node that is not accepted, and why; the parser adds where it stands."""

    def __init__(self, node: exp.Expr, reason: str) -> None:
        self.node, self.reason = node, reason
        super().__init__(reason)


@dataclass(frozen=True)
class NameReaders:
    """How the two context-dependent kinds of node are read: columns, and aggregates."""

    column: Callable[[exp.Column], Expression]
    aggregate: Callable[[exp.Expr], Expression] | None = None


AGGREGATES: tuple[type[exp.Expr], ...] = (
    *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median),
    *(exp.Filter, exp.WithinGroup, exp.PercentileCont, exp.PercentileDisc, exp.Quantile),
)
DISCRETE_CALL = "quantile_disc"
QUANTILE_CALLS = ("quantile_cont", DISCRETE_CALL)
"""Functions of DuckDB that are understood in every dialect, as median(x) is."""

Reading = Callable[[exp.Expr, NameReaders], Expression]


def translate(node: exp.Expr, names: NameReaders) -> Expression:
    """The expression a node means."""
    if isinstance(node, exp.Column):
        return names.column(node)
    if is_aggregation(node):
        if names.aggregate is None:
            raise Refusal(node, "an aggregate does not stand here")
        return names.aggregate(node)
    parts, reading = READINGS.get(type(node), (frozenset(), None))
    if reading is None:
        raise Refusal(node, refusal_reason(node))
    only(node, parts)
    if any(needed and node.args.get(part) is None for part, needed in node.arg_types.items()):
        raise Refusal(node, "an argument is missing here")
    try:
        read = reading(node, names)
        found = make.negation(read) if node.args.get("negate") else read
        make.check_size(found)
    except Mismatch as mismatch:
        raise Refusal(node, str(mismatch)) from None
    return found


def is_aggregation(node: exp.Expr) -> bool:
    """Whether a node is itself an aggregate that may be accepted."""
    return isinstance(node, AGGREGATES) or is_quantile_call(node)


def is_quantile_call(node: exp.Expr) -> bool:
    """Whether a node calls one of DuckDB's quantiles where the dialect has none."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in QUANTILE_CALLS


def only(node: exp.Expr, parts: frozenset[str]) -> None:
    """Refuse a node that carries a part we do not read."""
    for part, value in node.args.items():
        if value and part not in parts:
            culprit = value[0] if isinstance(value, list) else value
            place = culprit if isinstance(culprit, exp.Expr) else node
            raise Refusal(place, f"{clause_name(part)} is not accepted here")


def clause_name(part: str) -> str:
    return CLAUSE_NAMES.get(part, part.strip("_").replace("_", " ").upper())


CLAUSE_NAMES = {
    "windows": "WINDOW",
    "locks": "FOR UPDATE or SHARE",
    "sample": "TABLESAMPLE",
    **dict.fromkeys(("expressions", "decimals", "truncate", "encoding"), "another argument"),
}
"""Parts of sqlglot's nodes that are not named after their keyword."""


def refusal_reason(node: exp.Expr) -> str:
    """Why a node is refused, for the kinds people try most."""
    for kinds, reason in REASONS:
        if isinstance(node, kinds):
            return reason
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name}() is not accepted"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}() is not accepted"
    return f"{type(node).__name__} is not accepted"


REASONS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Window,), "window functions are not accepted: they answer about single rows"),
    (
        (exp.Subquery, exp.Select, exp.Exists, exp.Any, exp.All),
        "a subquery inside an expression is not accepted",
    ),
    ((exp.Rand,), "random() is not accepted: the same question must have the same answer"),
    (
        (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime),
        "the clock is not accepted: write the date out",
    ),
    (
        (exp.Parameter, exp.Placeholder),
        "this constant was left out of the statement; put its value back",
    ),
    (
        (exp.Stddev, exp.Variance, exp.AggFunc),
        "of aggregates only COUNT, SUM, AVG, MIN, MAX, MEDIAN and quantiles are accepted",
    ),
    ((exp.Star,), "single rows are not shown; ask for an aggregate"),
    ((exp.Interval,), "intervals are not accepted: write the date out"),
    ((exp.Tuple,), "a row of values is not accepted here"),
)


# One reading per node type ------------------------------------------------------------------


def _binary(build: Callable[..., Expression], *before: object) -> Reading:
    def read(node: exp.Expr, names: NameReaders) -> Expression:
        return build(*before, translate(node.this, names), translate(node.expression, names))

    return read


def _unary(build: Callable[..., Expression], *before: object) -> Reading:
    return lambda node, names: build(*before, translate(node.this, names))


def _variadic(build: Callable[..., Expression], *before: object) -> Reading:
    def read(node: exp.Expr, names: NameReaders) -> Expression:
        first = [node.this] if node.this is not None else []
        return build(*before, [translate(each, names) for each in (*first, *node.expressions)])

    return read


def _extreme(operation: Operation) -> Reading:
    def read(node: exp.Expr, names: NameReaders) -> Expression:
        if not node.args.get("ignore_nulls"):
            raise Refusal(node, f"{operation} is NULL in this dialect where one value is; use CASE")
        return _variadic(make.among, operation)(node, names)

    return read


def _junction(operation: Operation) -> Reading:
    def read(node: exp.Expr, names: NameReaders) -> Expression:
        terms = node.flatten(unnest=False)
        return make.conjoin(operation, [translate(each, names) for each in terms])

    return read


def _literal(node: exp.Expr, _: NameReaders) -> Expression:
    return Literal(node.this, ColumnType.TEXT) if node.args.get("is_string") else number(node.this)


def _division(node: exp.Expr, names: NameReaders) -> Expression:
    left, right = translate(node.this, names), translate(node.expression, names)
    if not node.args.get("typed"):  # dialects in which 7 / 2 is 3.5
        left, right = (make.cast(each, ColumnType.DOUBLE) for each in (left, right))
    return make.arithmetic(Operation.DIVIDE, left, right)


def _integer_division(node: exp.Expr, names: NameReaders) -> Expression:
    left, right = translate(node.this, names), translate(node.expression, names)
    if (left.type, right.type) != (ColumnType.INTEGER, ColumnType.INTEGER):
        raise Mismatch("integer division needs integers")
    return make.arithmetic(Operation.DIVIDE, left, right)


def _difference(node: exp.Expr, names: NameReaders) -> Expression:
    same = make.compare(
        Operation.SAME, translate(node.this, names), translate(node.expression, names)
    )
    return make.negation(same)


def _between(node: exp.Expr, names: NameReaders) -> Expression:
    value = translate(node.this, names)
    low, high = translate(node.args["low"], names), translate(node.args["high"], names)
    ends = (
        make.compare(Operation.GREATER_EQUAL, value, low),
        make.compare(Operation.LESS_EQUAL, value, high),
    )
    return make.conjoin(Operation.AND, ends)


def _in(node: exp.Expr, names: NameReaders) -> Expression:
    if not node.expressions:
        raise Refusal(node, "IN takes a list of values, not a subquery")
    return make.member(
        translate(node.this, names), [translate(each, names) for each in node.expressions]
    )


def _like(node: exp.Expr, names: NameReaders, escape: str = "\\") -> Expression:
    pattern = translate(node.expression, names)
    return make.like(translate(node.this, names), pattern, Literal(escape, ColumnType.TEXT))


def _escape(node: exp.Expr, names: NameReaders) -> Expression:
    inner, escape = node.this, translate(node.expression, names)
    if not isinstance(inner, exp.Like) or not isinstance(escape, Literal):
        raise Refusal(node, "ESCAPE goes with LIKE and takes a constant")
    only(inner, frozenset({"this", "expression", "negate"}))
    matched = _like(inner, names, str(escape.value))
    return make.negation(matched) if inner.args.get("negate") else matched


def _is(node: exp.Expr, names: NameReaders) -> Expression:
    operand, what = translate(node.this, names), node.expression
    if isinstance(what, exp.Null):
        return make.is_null(operand)
    if isinstance(what, exp.Boolean):
        return make.is_truth(operand, bool(what.this))
    raise Refusal(node, "IS goes with NULL, TRUE or FALSE")


def _case(node: exp.Expr, names: NameReaders) -> Expression:
    subject = translate(node.this, names) if node.this is not None else None
    pairs = []
    for branch in node.args["ifs"]:
        only(branch, frozenset({"this", "true"}))
        condition = translate(branch.this, names)
        if subject is not None:
            condition = make.compare(Operation.EQUAL, subject, condition)
        pairs.append((condition, translate(branch.args["true"], names)))
    default = node.args.get("default")
    return make.choice(pairs, NULL if default is None else translate(default, names))


def _cast(node: exp.Expr, names: NameReaders) -> Expression:
    target = node.args["to"]
    kind = TYPES.get(target.this)
    if kind is None:
        raise Refusal(node, f"a cast to {target.sql('postgres').lower()} is not accepted")
    only(target, frozenset({"this", "expressions", "nested"}))
    if target.expressions and kind is not ColumnType.DECIMAL:
        raise Refusal(node, "a cast to a type of limited length is not accepted")
    return make.cast(translate(node.this, names), kind, _scale(node, target))


def _scale(node: exp.Expr, target: exp.Expr) -> int | None:
    """The digits after the point in numeric(digits, digits after the point)."""
    sizes = [each.name for each in target.expressions]
    if not sizes:
        return None
    precision, scale, *more = (*sizes, "0") if len(sizes) == 1 else sizes
    plain = precision.isdecimal() and scale.isdecimal() and not more
    if not plain or int(precision) > 38 or int(scale) > make.FRACTION_DIGITS:
        raise Refusal(node, "numeric takes at most 38 digits, 12 of them after the point")
    return int(scale)


def _round(node: exp.Expr, names: NameReaders) -> Expression:
    digits = node.args.get("decimals")
    return make.round_number(
        translate(node.this, names), None if digits is None else translate(digits, names)
    )


def _substring(node: exp.Expr, names: NameReaders) -> Expression:
    positions = [node.args[part] for part in ("start", "length") if node.args.get(part)]
    if node.args.get("start") is None:
        raise Refusal(node, "substr needs a position to start from")
    return make.textual(
        Operation.SUBSTRING,
        translate(node.this, names),
        *(translate(each, names) for each in positions),
    )


def _extract(node: exp.Expr, names: NameReaders) -> Expression:
    field = _unit(node, node.this)
    return make.temporal(Operation.EXTRACT, field, translate(node.expression, names))


def _truncate(node: exp.Expr, names: NameReaders) -> Expression:
    unit = _unit(node, node.args["unit"])
    return make.temporal(Operation.TRUNCATE, unit, translate(node.this, names))


def _unit(node: exp.Expr, unit: exp.Expr) -> str:
    """The name of a field or unit of time."""
    if not isinstance(unit, exp.Var | exp.Literal | exp.Identifier):
        raise Refusal(node, "the unit of time must be a constant")
    return unit.name.lower()


def _node(*parts: str) -> frozenset[str]:
    return frozenset(parts)


PAIR = _node("this", "expression")
ALONE = _node("this")
MANY = _node("this", "expressions", "ignore_nulls")

READINGS: dict[type[exp.Expr], tuple[frozenset[str], Reading]] = {
    exp.Literal: (_node("this", "is_string"), _literal),
    exp.Boolean: (ALONE, lambda node, _: Literal(bool(node.this), ColumnType.BOOLEAN)),
    exp.Null: (_node(), lambda _node, _names: NULL),
    exp.Paren: (ALONE, lambda node, names: translate(node.this, names)),
    exp.Alias: (_node("this", "alias"), lambda node, names: translate(node.this, names)),
    exp.And: (PAIR, _junction(Operation.AND)),
    exp.Or: (PAIR, _junction(Operation.OR)),
    exp.Not: (ALONE, _unary(make.negation)),
    exp.EQ: (PAIR, _binary(make.compare, Operation.EQUAL)),
    exp.NEQ: (PAIR, _binary(make.compare, Operation.DIFFERENT)),
    exp.LT: (PAIR, _binary(make.compare, Operation.LESS)),
    exp.LTE: (PAIR, _binary(make.compare, Operation.LESS_EQUAL)),
    exp.GT: (PAIR, _binary(make.compare, Operation.GREATER)),
    exp.GTE: (PAIR, _binary(make.compare, Operation.GREATER_EQUAL)),
    exp.NullSafeEQ: (PAIR, _binary(make.compare, Operation.SAME)),
    exp.NullSafeNEQ: (PAIR, _difference),
    exp.Between: (_node("this", "low", "high"), _between),
    exp.In: (_node("this", "expressions", "query"), _in),
    exp.Like: (_node("this", "expression", "negate"), _like),
    exp.Escape: (PAIR, _escape),
    exp.Is: (_node("this", "expression", "negate"), _is),
    exp.Neg: (ALONE, _unary(make.negative)),
    exp.Add: (PAIR, _binary(make.arithmetic, Operation.ADD)),
    exp.Sub: (PAIR, _binary(make.arithmetic, Operation.SUBTRACT)),
    exp.Mul: (PAIR, _binary(make.arithmetic, Operation.MULTIPLY)),
    exp.Div: (_node("this", "expression", "typed", "safe"), _division),
    exp.IntDiv: (PAIR, _integer_division),
    exp.Mod: (PAIR, _binary(make.arithmetic, Operation.MODULO)),
    exp.Pow: (PAIR, _binary(make.real, Operation.POWER)),
    exp.Abs: (ALONE, _unary(make.magnitude)),
    exp.Floor: (ALONE, _unary(make.floor_or_ceil, Operation.FLOOR)),
    exp.Ceil: (ALONE, _unary(make.floor_or_ceil, Operation.CEIL)),
    exp.Round: (_node("this", "decimals"), _round),
    exp.Sqrt: (ALONE, _unary(make.real, Operation.SQRT)),
    exp.Ln: (ALONE, _unary(make.real, Operation.LN)),
    exp.Exp: (ALONE, _unary(make.real, Operation.EXP)),
    exp.Case: (_node("this", "ifs", "default"), _case),
    exp.Coalesce: (MANY, _variadic(make.among, Operation.COALESCE)),
    exp.Least: (MANY, _extreme(Operation.LEAST)),
    exp.Greatest: (MANY, _extreme(Operation.GREATEST)),
    exp.Nullif: (PAIR, _binary(make.nullif)),
    exp.Cast: (_node("this", "to"), _cast),
    exp.TryCast: (_node("this", "to", "safe"), _cast),
    exp.Length: (ALONE, _unary(make.textual, Operation.LENGTH)),
    exp.Lower: (ALONE, _unary(make.textual, Operation.LOWER)),
    exp.Upper: (ALONE, _unary(make.textual, Operation.UPPER)),
    exp.Substring: (_node("this", "start", "length"), _substring),
    exp.Extract: (PAIR, _extract),
    exp.TimestampTrunc: (_node("this", "unit"), _truncate),
    exp.DateTrunc: (_node("this", "unit"), _truncate),
}
