"""SQL text to aggregates: one statement, a SELECT, every part of it understood.

The text is cut into tokens, limited in size and depth, parsed by sqlglot, and translated into our
own closed language (`casemate.query.language`); sqlglot's tree goes no further than this room's
parsing modules. What is outside the fragment is refused with line, column and reason.

sqlglot records a position on fewer than half of its nodes, so a refused node is found again by
parsing once more with a parser that notes the first and the last token of everything it parses.
"""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from casemate.errors import Misconfigured, Unsupported
from casemate.query.aggregate import Aggregate, Statement
from casemate.query.parse.scope import AggregatedRows, Tables
from casemate.query.parse.select import read_query, row_limit
from casemate.query.parse.translate import Refusal
from casemate.table import Policy

MAX_TEXT_CHARACTERS = 1_000_000
MAX_TOKENS = 50_000
MAX_NESTING = 32
OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE, TokenType.L_BRACE)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END, TokenType.R_BRACE)
BEGINNINGS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE)
UNUSABLE = re.compile("[\x00\ud800-\udfff]")
"""The zero character, and halves of characters."""

START, END = "casemate_start", "casemate_end"
KEYWORDS = {"Lock": "FOR"}
"""What a construct begins with, where that is not its name."""


def dialect_of(name: str) -> Dialect:
    """sqlglot's dialect of this name."""
    try:
        return Dialect.get_or_raise(name)
    except ValueError:
        raise Misconfigured(
            f"there is no SQL dialect {name!r}; give one such as postgres, duckdb or mysql"
        ) from None


def tokens_of(sql: str, dialect: str) -> list[Token]:
    """The tokens of a text that is neither too long nor too deep."""
    if len(sql) > MAX_TEXT_CHARACTERS:
        raise Unsupported(f"the statement is longer than {MAX_TEXT_CHARACTERS:,} characters")
    if UNUSABLE.search(sql):
        raise Unsupported("the statement has a character that no text of a database can hold")
    try:
        tokens = dialect_of(dialect).tokenize(sql)
    except TokenError:
        raise Unsupported("this is not SQL: a quotation mark or comment is never closed") from None
    if len(tokens) > MAX_TOKENS:
        raise Unsupported(f"the statement has more than {MAX_TOKENS:,} words and signs")
    check_depth(sql, tokens)
    return tokens


def check_depth(sql: str, tokens: Sequence[Token]) -> None:
    """Refuse nesting that a recursive parser would not survive."""
    depth = run = 0
    for token in tokens:
        depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
        run = run + 1 if token.token_type in PREFIXES else 0
        if max(depth, run) > MAX_NESTING:
            reason = f"this is nested more than {MAX_NESTING} deep"
            raise Unsupported(reason, sql, *line_and_column(sql, token.start))


def line_and_column(sql: str, offset: int) -> tuple[int, int]:
    """The 1-based line and column of a character."""
    before = sql[:offset]
    line = len((before + "x").splitlines())
    return line, len((before + "x").splitlines()[-1])


def parse_tokens(sql: str, tokens: list[Token], dialect: str) -> list[exp.Expr]:
    """The statements of a text, with syntax errors told in our own words."""
    if tokens and tokens[0].token_type not in BEGINNINGS:
        place = line_and_column(sql, tokens[0].start)
        raise Unsupported("only SELECT is accepted", sql, *place)
    try:
        parsed = dialect_of(dialect).parser().parse(tokens, sql)
    except ParseError as error:
        raise syntax_error(sql, tokens, error) from None
    except (RecursionError, SqlglotError, ValueError):
        raise Unsupported("this statement cannot be read: it is too deep or malformed") from None
    return [tree for tree in parsed if tree is not None]


def syntax_error(sql: str, tokens: Sequence[Token], error: ParseError) -> Unsupported:
    """A syntax error at the first character of the offending token."""
    first = error.errors[0] if error.errors else {}
    line, end = first.get("line"), first.get("col")
    found = next((token for token in tokens if (token.line, token.col) == (line, end)), None)
    offset = found.start if found else max(0, len(sql.rstrip()) - 1)
    return Unsupported("this is not valid SQL here", sql, *line_and_column(sql, offset))


def locate(sql: str, dialect: str, node: exp.Expr) -> tuple[int, int]:
    """The line and column of the first token of a node of the tree parsed from `sql`."""
    try:
        offset = _tracked_offset(sql, dialect, node)
    except RecursionError:  # noting takes twice the stack that parsing took
        offset = min(_known_starts(node), default=0)
    return line_and_column(sql, offset)


def _tracked_offset(sql: str, dialect: str, node: exp.Expr) -> int:
    path, root = [], node
    while root.parent is not None and root.arg_key is not None:
        path.append((root.arg_key, root.index))
        root = root.parent
    found: Any = track(sql, dialect)
    for key, index in reversed(path):
        found = found.args[key] if index is None else found.args[key][index]
    return first_offset(found, dialect_of(dialect).tokenize(sql))


def track(sql: str, dialect: str) -> exp.Expr:
    """The tree of one statement, in which nodes know where they begin and end in the text."""
    tokens = dialect_of(dialect).tokenize(sql)
    tree: exp.Expr = _tracking_parser(dialect)().parse(tokens, sql)[0]
    return tree


def span_of(node: exp.Expr) -> tuple[int, int]:
    """Where the text of a node of a tracked tree begins, and the place after its end."""
    if START not in node.meta:
        raise Unsupported("a part of this statement cannot be found in its text")
    return node.meta[START], node.meta[END] + 1


def _known_starts(node: exp.Expr) -> list[int]:
    """The positions that sqlglot itself has noted in and below a node."""
    return [int(each.meta["start"]) for each in node.walk() if "start" in each.meta]


def first_offset(node: exp.Expr, tokens: Sequence[Token]) -> int:
    """The noted start of a node, else its keyword's, else the earliest position below it."""
    if START in node.meta:
        return int(node.meta[START])
    around = next((each.meta[START] for each in _ancestors(node) if START in each.meta), 0)
    word = KEYWORDS.get(type(node).__name__, type(node).__name__.upper())
    named = [each.start for each in tokens if each.start >= around and each.text.upper() == word]
    return int(min(named or _known_starts(node) or [around]))


def _ancestors(node: exp.Expr) -> list[exp.Expr]:
    above, parent = [], node.parent
    while parent is not None:
        above.append(parent)
        parent = parent.parent
    return above


@functools.cache
def _tracking_parser(dialect: str) -> Callable[[], Any]:
    """A subclass of the dialect's parser whose methods note where what they return begins."""
    parent: Any = dialect_of(dialect).parser_class
    methods = {
        name: _noting(getattr(parent, name))
        for name in dir(parent)
        if name.startswith("_parse_") and callable(getattr(parent, name))
    }
    kind = type("TrackingParser", (parent,), methods)
    return lambda: kind(dialect=dialect)


def _noting(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def noting(self: Any, *arguments: Any, **options: Any) -> Any:
        current = self._curr
        given = [each for each in arguments if isinstance(each, exp.Expr)]
        starts = [each.meta[START] for each in given if START in each.meta]
        starts += [current.start] if current else []
        result = method(self, *arguments, **options)
        passed_on = any(result is each for each in given)  # it began before this method did
        if isinstance(result, exp.Expr) and starts and not passed_on:
            result.meta[START] = min(starts[0], result.meta.get(START, starts[0]))
            result.meta[END] = max(self._prev.end, result.meta.get(END, 0))
        return result

    return noting


# Statements --------------------------------------------------------------------------------------


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
