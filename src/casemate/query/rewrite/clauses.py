"""Where the parts of an aggregating SELECT stand in the text: what it shows, its keys, its HAVING.

Parts are taken as they are written, so that a database that compares the text of expressions finds
in HAVING what it has seen in GROUP BY.

Which keys a further condition of HAVING hides: read off its form, NOT (a = 1 AND b = 2 OR ...).

Anything that is not of this form counts as hiding something else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from casemate.query.engines.answering import Key
from casemate.query.language.expression import (
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

OPEN, CLOSE, COMMA = TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA
SETS = (TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS)
PREFIXES = (TokenType.DISTINCT, TokenType.ALL)
ENDINGS = (
    CLOSE,
    TokenType.SEMICOLON,
    TokenType.UNION,
    TokenType.EXCEPT,
    TokenType.INTERSECT,
    TokenType.WINDOW,
    TokenType.QUALIFY,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.FETCH,
)
"""What may come after the HAVING of a SELECT."""

STARTS = (TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)
Part = Sequence[Token]


@dataclass(frozen=True)
class SelectClauses:
    """The columns that a SELECT shows, its single keys, and its HAVING.

    `having` is the position after that word, None without one; `end` is where its condition ends,
    or where a HAVING would go.
    """

    shown: tuple[Part, ...]
    keys: tuple[Part, ...]
    having: int | None
    end: int


def clauses(tokens: Part, word: int) -> SelectClauses:
    """The clauses of the SELECT whose first word is this token."""
    own = _own(tokens[word + 1 :])
    starts = [i for i, depth in enumerate(_depths(own)) if not depth and _is(own[i], STARTS)]
    places = {own[i].token_type: i for i in reversed(starts)}
    first = starts[0] if starts else len(own)
    group, having = places.get(TokenType.GROUP_BY), places.get(TokenType.HAVING)
    keys = own[group + 1 : having] if group is not None else ()
    last = own[-1] if own else tokens[word]
    return SelectClauses(
        tuple(_listed(own[:first])),
        tuple(_single(keys)),
        None if having is None else own[having].end + 1,
        last.end + 1,
    )


def text_of(part: Part, sql: str) -> str:
    """A part as it is written."""
    return sql[part[0].start : part[-1].end + 1]


def _own(tokens: Part) -> Part:
    """The tokens of a SELECT up to what comes after its HAVING."""
    for place, depth in enumerate(_depths(tokens)):
        if depth == 0 and _is(tokens[place], ENDINGS):
            return tokens[:place]
    return tokens


def _depths(tokens: Part) -> Iterator[int]:
    """In how many parentheses each token stands; a closing one stands inside."""
    depth = 0
    for token in tokens:
        yield depth
        depth += _is(token, (OPEN,)) - _is(token, (CLOSE,))


def _is(token: Token, kinds: Sequence[TokenType]) -> bool:
    return token.token_type in kinds


def _listed(tokens: Part) -> Iterator[Part]:
    """The parts between commas."""
    if tokens and _is(tokens[0], PREFIXES):
        tokens = tokens[1:]
    start = 0
    for place, depth in enumerate(_depths(tokens)):
        if depth == 0 and _is(tokens[place], (COMMA,)):
            yield tokens[start:place]
            start = place + 1
    if start < len(tokens):
        yield tokens[start:]


def _single(tokens: Part) -> Iterator[Part]:
    """The single keys of a GROUP BY, out of its sets and parentheses."""
    for part in _listed(tokens):
        inner = part[1:] if _is(part[0], SETS) else part
        if inner and _is(inner[0], (OPEN,)) and _closes(inner):
            yield from _single(inner[1:-1])
        else:
            yield part


def _closes(part: Part) -> bool:
    """Whether the first parenthesis is closed by the last token, and not before."""
    return 0 not in list(_depths(part))[1:] and _is(part[-1], (CLOSE,))


# Hidden -----------------------------------------------------------------------------------------


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
