"""SQL text to aggregates: one statement, a SELECT, every part of it understood.

The text is cut into tokens, limited in size, parsed by sqlglot, and translated into our own closed
language (`casemate.query.language`); sqlglot's tree goes no further than this room's parsing
modules. What is outside the fragment is refused with line, column and reason.
"""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from casemate.errors import Unsupported
from casemate.query.aggregate import Aggregate, Statement
from casemate.query.parse.overlay import row_limit
from casemate.query.parse.place import line_and_column, locate, parse_tokens, tokens_of
from casemate.query.parse.scope import AggregatedRows, Tables
from casemate.query.parse.select import read_query
from casemate.query.parse.translate import Refusal
from casemate.table import Policy

DIALECT = "postgres"


def parse(sql: str, policy: Policy, dialect: str = DIALECT) -> list[Aggregate]:
    """The aggregates that one statement asks of the policy's table."""
    return parse_statement(sql, policy, dialect).aggregates


def parse_statement(sql: str, policy: Policy, dialect: str = DIALECT) -> Statement:
    """One statement: its aggregates and what it shows of them."""
    tokens = tokens_of(sql, dialect)
    return _read(sql, tokens, policy, dialect)


def split(text: str, dialect: str = DIALECT) -> list[str]:
    """The statements of a script, each as it is written and without its semicolon."""
    pieces: list[str] = []
    current: list[Token] = []
    for token in tokens_of(text, dialect):
        if token.token_type is not TokenType.SEMICOLON:
            current.append(token)
        elif current:
            pieces.append(text[current[0].start : current[-1].end + 1])
            current = []
    return [*pieces, *([text[current[0].start : current[-1].end + 1]] if current else [])]


def _read(sql: str, tokens: list[Token], policy: Policy, dialect: str) -> Statement:
    trees = parse_tokens(sql, tokens, dialect)
    tree = single_query(sql, tokens, trees)
    try:
        found = read_query(tree, Tables(policy, sql))
        if not isinstance(found, AggregatedRows):
            raise Refusal(tree, "nothing is aggregated here, and single rows are not shown")
        return Statement(sql, found.selects, row_limit(tree.unnest()))
    except Refusal as refusal:
        place = locate(sql, dialect, refusal.node)
        raise Unsupported(refusal.reason, sql, *place) from None
    except RecursionError:
        raise Unsupported("this statement is nested too deeply") from None


def single_query(sql: str, tokens: list[Token], trees: Sequence[exp.Expr]) -> exp.Expr:
    """The one query of a text, or a refusal of what else stands there."""
    if not trees:
        raise Unsupported("there is no statement here")
    if len(trees) > 1:
        end = next(each for each in tokens if each.token_type is TokenType.SEMICOLON)
        after = tokens[tokens.index(end) + 1].start
        raise Unsupported("one statement at a time", sql, *line_and_column(sql, after))
    if not isinstance(trees[0], exp.Query):
        place = line_and_column(sql, tokens[0].start)
        raise Unsupported("only SELECT is accepted", sql, *place)
    return trees[0]
