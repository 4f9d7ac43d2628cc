"""Where the parts of an aggregating SELECT stand in the text: what it shows, its keys, its HAVING.

Parts are taken as they are written, so that a database that compares the text of expressions finds
in HAVING what it has seen in GROUP BY.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

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
class Clauses:
    """The columns that a SELECT shows, its single keys, and its HAVING.

    `having` is the position after that word, None without one; `end` is where its condition ends,
    or where a HAVING would go.
    """

    shown: tuple[Part, ...]
    keys: tuple[Part, ...]
    having: int | None
    end: int


def clauses(tokens: Part, word: int) -> Clauses:
    """The clauses of the SELECT whose first word is this token."""
    own = _own(tokens[word + 1 :])
    starts = [i for i, depth in enumerate(_depths(own)) if not depth and _is(own[i], STARTS)]
    places = {own[i].token_type: i for i in reversed(starts)}
    first = starts[0] if starts else len(own)
    group, having = places.get(TokenType.GROUP_BY), places.get(TokenType.HAVING)
    keys = own[group + 1 : having] if group is not None else ()
    last = own[-1] if own else tokens[word]
    return Clauses(
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
