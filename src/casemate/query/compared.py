"""Which columns a statement compares with text: all that tells their type before there is one."""

from collections.abc import Iterable
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from casemate.errors import Unsupported
from casemate.query.place import tokens_of
from casemate.query.sql import DIALECT

NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
COMPARED = (TokenType.EQ, TokenType.NEQ, TokenType.IN, TokenType.LIKE)


def compared_with_text(
    statements: Iterable[str], names: Iterable[str], dialect: str = DIALECT
) -> frozenset[str]:
    """The columns among `names` that stand beside a text in any of the statements.

    >>> sorted(compared_with_text(["SELECT COUNT(*) FROM t WHERE s = 'C' AND x = 3"], ["s", "x"]))
    ['s']
    """
    wanted = {name.lower(): name for name in names}
    found = set()
    for sql in statements:
        try:
            tokens = tokens_of(sql, dialect)
        except Unsupported:
            continue  # who reads the statement says so
        for token, rest in _named(tokens):
            if token.text.lower() in wanted and _is_text(rest):
                found.add(wanted[token.text.lower()])
    return frozenset(found)


def _named(tokens: list[Token]) -> Iterable[tuple[Token, list[Token]]]:
    """Every name with what is compared with it: the tokens after the sign."""
    for place, (token, sign) in enumerate(pairwise(tokens)):
        if token.token_type in NAMES and sign.token_type in (*COMPARED, TokenType.NOT):
            yield token, tokens[place + 2 : place + 5]


def _is_text(rest: list[Token]) -> bool:
    """Whether a text comes next, perhaps after NOT's own sign and a parenthesis."""
    skipped = (*COMPARED, TokenType.L_PAREN)
    first = next((each for each in rest if each.token_type not in skipped), None)
    return first is not None and first.token_type is TokenType.STRING
