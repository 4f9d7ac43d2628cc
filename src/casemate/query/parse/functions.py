"""Aggregate functions in SQL to `Aggregate` values, collected once each for a grouping.

Quantiles have many spellings; every one is read as a share of the rows in their order.
"""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from casemate.query.aggregate import Aggregate, Function
from casemate.query.language import operations as make
from casemate.query.language.coercion import NUMBERS
from casemate.query.language.expression import TRUE, Expression, ResultRef, all_of, private_columns
from casemate.query.parse.scope import SourceRows, read_condition, resolve
from casemate.query.parse.translate import (
    DISCRETE_CALL,
    NameReaders,
    Refusal,
    is_aggregation,
    is_quantile_call,
    only,
    translate,
)
from casemate.table import ColumnType

SHARE_DENOMINATOR = 10**6
"""A share is a whole number of these parts: engines find its row exactly, whatever the rows."""

ORDERED_SET = (exp.PercentileCont, exp.PercentileDisc)
SPELLINGS = (
    "write percentile_cont(p) or percentile_disc(p) WITHIN GROUP (ORDER BY x), or "
    "quantile_cont(x, p) or quantile_disc(x, p)"
)


@dataclass(frozen=True)
class QuantileCall:
    """A quantile as it is written; `discrete` where it is a value of the rows themselves."""

    argument: exp.Expr
    fraction: Fraction
    discrete: bool


def is_quantile(node: exp.Expr) -> bool:
    """Whether a node spells a quantile; not one that is only about right."""
    return type(node) in (exp.WithinGroup, exp.Quantile, *ORDERED_SET) or is_quantile_call(node)


def read_quantile(node: exp.Expr) -> QuantileCall:
    """What a node that spells a quantile asks for."""
    if isinstance(node, exp.WithinGroup):
        return _within_group(node)
    if isinstance(node, exp.Anonymous):
        only(node, frozenset({"this", "expressions"}))
        if len(node.expressions) != 2:
            raise Refusal(node, f"a quantile takes a value and its share; {SPELLINGS}")
        argument, share = node.expressions
        return QuantileCall(argument, _fraction(share), node.name.lower() == DISCRETE_CALL)
    only(node, frozenset({"this", "quantile", "expression"}))
    share = node.args.get("quantile") or node.args.get("expression")
    if share is None:
        raise Refusal(node, f"a quantile needs its share; {SPELLINGS}")
    # DuckDB's `quantile` is the discrete one.
    return QuantileCall(node.this, _fraction(share), not isinstance(node, exp.PercentileCont))


def _within_group(node: exp.WithinGroup) -> QuantileCall:
    only(node, frozenset({"this", "expression"}))
    share, order = node.this, node.expression
    if not isinstance(share, ORDERED_SET):
        raise Refusal(
            node, "of ordered-set aggregates only percentile_cont and percentile_disc are accepted"
        )
    only(share, frozenset({"this"}))
    items = order.expressions if isinstance(order, exp.Order) else []
    if len(items) != 1:
        raise Refusal(node, f"a quantile is taken of one value; {SPELLINGS}")
    only(order, frozenset({"expressions"}))
    (item,) = items
    only(item, frozenset({"this", "desc", "nulls_first"}))
    discrete = isinstance(share, exp.PercentileDisc)
    fraction = _fraction(share.this)
    if item.args.get("desc") and discrete:
        raise Refusal(item, "percentile_disc is read in ascending order only; leave DESC out")
    return QuantileCall(item.this, 1 - fraction if item.args.get("desc") else fraction, discrete)


def _fraction(node: exp.Expr) -> Fraction:
    """A share between 0 and 1, exactly as it is written."""
    number = isinstance(node, exp.Literal) and not node.is_string
    try:
        found = Fraction(Decimal(node.name)) if number else Fraction(-1)
    except InvalidOperation:
        found = Fraction(-1)
    if not 0 <= found <= 1 or SHARE_DENOMINATOR % found.denominator:
        raise Refusal(
            node,
            "the share of a quantile is a constant from 0 to 1 with at most six digits after the "
            "point",
        )
    return found


# Functions ---------------------------------------------------------------------------------------


FUNCTIONS: dict[type[exp.Expr], Function] = {
    exp.Count: Function.COUNT,
    exp.Sum: Function.SUM,
    exp.Avg: Function.AVG,
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
    exp.Median: Function.MEDIAN,
}
HALF = Fraction(1, 2)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate stands anywhere in the expression."""
    return any(isinstance(each, exp.AggFunc) or is_aggregation(each) for each in node.walk())


class Collector:
    """The aggregates of one grouping, in order of appearance."""

    def __init__(self, source: SourceRows, keys: tuple[Expression, ...]) -> None:
        self.source, self.keys = source, keys
        self.found: dict[Aggregate, int] = {}
        self._names = NameReaders(lambda column: resolve(column, source.columns))

    def read(self, node: exp.Expr) -> Expression:
        """A reference to the aggregate that the node asks for."""
        condition: Expression = TRUE
        inner = node
        if isinstance(node, exp.Filter):
            only(node, frozenset({"this", "expression"}))
            inner = node.this
            condition = read_condition(node.expression.this, self.source.columns)
        aggregate = self._aggregate(inner, condition)
        index = self.found.setdefault(aggregate, len(self.found))
        added = aggregate.function in (Function.SUM, Function.AVG) and aggregate.argument
        decimal = bool(added and make.was_decimal(added))
        return ResultRef(index, result_type(aggregate), decimal)

    def _aggregate(self, node: exp.Expr, condition: Expression) -> Aggregate:
        predicate = all_of(self.source.predicate, condition)
        if is_quantile(node):
            return self._quantile(read_quantile(node), predicate)
        function, argument = self._function(node)
        return Aggregate(function, argument, predicate, self.keys, self.source.joins)

    def _quantile(self, asked: QuantileCall, predicate: Expression) -> Aggregate:
        rows = (predicate, self.keys, self.source.joins)
        if asked.fraction == HALF and not asked.discrete:
            argument = self._argument(asked.argument, Function.MEDIAN)
            return Aggregate(Function.MEDIAN, argument, *rows)
        argument = self._argument(asked.argument, Function.QUANTILE, asked.discrete)
        return Aggregate(Function.QUANTILE, argument, *rows, asked.fraction, asked.discrete)

    def _function(self, node: exp.Expr) -> tuple[Function, Expression | None]:
        function = FUNCTIONS.get(type(node))
        if function is None:
            raise Refusal(node, "only COUNT, SUM, AVG, MIN, MAX, MEDIAN and quantiles are accepted")
        if node.this is None:
            raise Refusal(node, f"{function} needs an argument")
        only(node, frozenset({"this", "big_int"}))
        if isinstance(node.this, exp.Distinct):
            return self._distinct(node, function)
        if function is Function.COUNT and isinstance(node.this, exp.Star | exp.Literal):
            only(node.this, frozenset({"this", "is_string"}))
            return function, None
        return function, self._argument(node.this, function)

    def _distinct(self, node: exp.Expr, function: Function) -> tuple[Function, Expression]:
        only(node.this, frozenset({"expressions"}))
        if function is not Function.COUNT or len(node.this.expressions) != 1:
            raise Refusal(node, "DISTINCT is accepted in COUNT of one public column only")
        argument = translate(node.this.expressions[0], self._names)
        if private_columns(argument):
            raise Refusal(node, "COUNT(DISTINCT ...) of a private column is not accepted")
        return Function.COUNT_DISTINCT, argument

    def _argument(self, node: exp.Expr, function: Function, discrete: bool = False) -> Expression:
        argument = translate(node, self._names)
        chosen = discrete or function in (Function.MIN, Function.MAX)  # a value that is there
        if function is not Function.COUNT and not chosen and argument.type not in NUMBERS:
            raise Refusal(node, f"{function} needs numbers, and this is {argument.type}")
        if chosen and argument.type is ColumnType.BOOLEAN:
            raise Refusal(node, f"{function} of a boolean is not defined")
        return argument


def result_type(aggregate: Aggregate) -> ColumnType:
    """The type of an aggregate's result."""
    argument = aggregate.argument
    if argument is None or aggregate.function in (Function.COUNT, Function.COUNT_DISTINCT):
        return ColumnType.INTEGER
    between = aggregate.function is Function.QUANTILE and not aggregate.discrete
    if aggregate.function is Function.MEDIAN or between:
        return ColumnType.DOUBLE
    if aggregate.function is Function.AVG and argument.type is ColumnType.INTEGER:
        return ColumnType.DECIMAL
    return argument.type
