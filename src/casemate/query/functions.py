"""Aggregate functions in SQL to `Aggregate` values, collected once each for a grouping."""

from fractions import Fraction

from sqlglot import exp

from casemate.query import operations as make
from casemate.query.aggregate import Aggregate, Function
from casemate.query.coercion import NUMBERS
from casemate.query.expression import (
    TRUE,
    Expression,
    ResultRef,
    all_of,
    private_columns,
)
from casemate.query.quantiles import Spelled, is_quantile, spelled
from casemate.query.scope import Rows, read_condition, resolve
from casemate.query.translate import Names, Refusal, is_aggregation, only, translate
from casemate.table.schema import ColumnType

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

    def __init__(self, source: Rows, keys: tuple[Expression, ...]) -> None:
        self.source, self.keys = source, keys
        self.found: dict[Aggregate, int] = {}
        self._names = Names(lambda column: resolve(column, source.columns))

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
            return self._quantile(spelled(node), predicate)
        function, argument = self._function(node)
        return Aggregate(function, argument, predicate, self.keys, self.source.joins)

    def _quantile(self, asked: Spelled, predicate: Expression) -> Aggregate:
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
