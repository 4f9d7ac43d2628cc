"""Which keys a further condition of HAVING hides: read off its form, NOT (a = 1 AND b = 2 OR ...).

Anything that is not of this form counts as hiding something else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from casemate.query.answers import Key
from casemate.query.expression import (
    FALSE,
    TRUE,
    Call,
    Expression,
    KeyRef,
    Literal,
    Operation,
    Scalar,
    conjuncts,
)


def hides(added: Sequence[Expression], gone: set[Key], there: set[Key], width: int) -> bool:
    """Whether further conditions of HAVING hide these keys, and no others of all there are."""
    if added in ([TRUE], [FALSE]):  # of keys that the grouping set is without
        return gone == (set() if added == [TRUE] else {()})
    found = [_compared(term) for term in _negated(added)]
    known = [each for each in found if each is not None]
    unequal = {i for each in known for i in each.unequal}
    return (
        len(known) == len(found)
        and {each.key(width) for each in known} == gone
        and all(key[i] is not None for key in there for i in unequal)
    )


def _negated(added: Sequence[Expression]) -> tuple[Expression, ...]:
    """The terms of the one condition NOT (... OR ...), or what is there instead."""
    if not added:
        return ()
    negated = added[0] if len(added) == 1 else FALSE
    if not isinstance(negated, Call) or negated.operation is not Operation.NOT:
        return (FALSE,)
    (inner,) = negated.arguments
    is_or = isinstance(inner, Call) and inner.operation is Operation.OR
    return inner.arguments if isinstance(inner, Call) and is_or else (inner,)


@dataclass(frozen=True)
class _Compared:
    """What a condition says of each key; `unequal` are those whose NULL would be neither."""

    values: Mapping[int, Scalar]
    unequal: frozenset[int]

    def key(self, width: int) -> Key | None:
        """The only key that satisfies it; None if there may be others."""
        if set(self.values) != set(range(width)):
            return None
        return tuple(self.values[i] for i in range(width))


def _compared(condition: Expression) -> _Compared | None:
    """A conjunction of comparisons of keys with constants, or None for anything else."""
    values: dict[int, Scalar] = {}
    unequal = set()
    for term in conjuncts(condition):
        key, *other = term.arguments if isinstance(term, Call) else (None,)
        null = isinstance(term, Call) and term.operation is Operation.IS_NULL
        if not isinstance(key, KeyRef) or not (null or _is_constant(term, other)):
            return None
        values[key.index] = None if null else _value(other[0])
        if isinstance(term, Call) and term.operation is Operation.EQUAL:
            unequal.add(key.index)
    return _Compared(values, frozenset(unequal))


def _is_constant(term: Expression, other: Sequence[Expression]) -> bool:
    compares = isinstance(term, Call) and term.operation in (Operation.EQUAL, Operation.SAME)
    return compares and len(other) == 1 and isinstance(other[0], Literal)


def _value(constant: Expression) -> Scalar:
    return constant.value if isinstance(constant, Literal) else None
