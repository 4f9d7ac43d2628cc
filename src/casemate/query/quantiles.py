"""Quantiles in SQL: every spelling of one, read as a share of the rows in their order."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from casemate.query.translate import DISCRETE_CALL, Refusal, is_quantile_call, only

FINEST = 10**6
"""A share is a whole number of these parts: engines find its row exactly, whatever the rows."""

ORDERED_SET = (exp.PercentileCont, exp.PercentileDisc)
SPELLINGS = (
    "write percentile_cont(p) or percentile_disc(p) WITHIN GROUP (ORDER BY x), or "
    "quantile_cont(x, p) or quantile_disc(x, p)"
)
Parts = tuple[exp.Expr, exp.Expr | None, bool]
"""What a quantile is taken of, its share, and whether it is a value of the rows themselves."""


@dataclass(frozen=True)
class Spelled:
    """A quantile as it is written; `discrete` where it is a value of the rows themselves."""

    argument: exp.Expr
    fraction: Fraction
    discrete: bool


def is_quantile(node: exp.Expr) -> bool:
    """Whether a node spells a quantile; not one that is only about right."""
    return type(node) in (exp.WithinGroup, exp.Quantile, *ORDERED_SET) or is_quantile_call(node)


def spelled(node: exp.Expr) -> Spelled:
    """What a node that spells a quantile asks for."""
    if isinstance(node, exp.WithinGroup):
        return _within_group(node)
    argument, share, discrete = _parts(node)
    if share is None:
        raise Refusal(node, f"a quantile needs its share; {SPELLINGS}")
    return Spelled(argument, _fraction(share), discrete)


def _parts(node: exp.Expr) -> Parts:
    """The arguments of a call; DuckDB's `quantile` is the discrete one."""
    if isinstance(node, exp.Anonymous):
        only(node, frozenset({"this", "expressions"}))
        if len(node.expressions) != 2:
            raise Refusal(node, f"a quantile takes a value and its share; {SPELLINGS}")
        return *node.expressions, node.name.lower() == DISCRETE_CALL
    only(node, frozenset({"this", "quantile", "expression"}))
    share = node.args.get("quantile") or node.args.get("expression")
    return node.this, share, not isinstance(node, exp.PercentileCont)


def _within_group(node: exp.WithinGroup) -> Spelled:
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
    return Spelled(item.this, 1 - fraction if item.args.get("desc") else fraction, discrete)


def _fraction(node: exp.Expr) -> Fraction:
    """A share between 0 and 1, exactly as it is written."""
    number = isinstance(node, exp.Literal) and not node.is_string
    try:
        found = Fraction(Decimal(node.name)) if number else Fraction(-1)
    except InvalidOperation:
        found = Fraction(-1)
    if not 0 <= found <= 1 or FINEST % found.denominator:
        raise Refusal(
            node,
            "the share of a quantile is a constant from 0 to 1 with at most six digits after the "
            "point",
        )
    return found
