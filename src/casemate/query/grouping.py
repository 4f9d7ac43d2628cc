"""GROUP BY, ROLLUP, CUBE and GROUPING SETS as the list of key sets they stand for."""

from collections.abc import Callable, Iterable
from itertools import product

from sqlglot import exp

from casemate.query.expression import Expression
from casemate.query.translate import Refusal, only

MOST_SETS = 256
KeySet = tuple[Expression, ...]
Read = Callable[[exp.Expr], Expression]


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
