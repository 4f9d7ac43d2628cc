"""Query logs: the statements behind a dashboard, one file in, statements with their places out.

Read are SQL scripts, CSV files with a column `sql` (and `answer` where the published number is
known), and PostgreSQL's csvlog, in which the values of parameters stand beside the statement.
"""

import csv
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path

from sqlglot.tokenizer_core import Token, TokenType

from casemate.errors import Misconfigured, Unsupported, checked_path
from casemate.query.aggregate import Projection, Statement
from casemate.query.parse.projection import parse_projection
from casemate.query.parse.sql import DIALECT, parse_statement, split, tokens_of
from casemate.query.parse.version import VersionView
from casemate.table import Policy

CSVLOG_SEVERITY, CSVLOG_MESSAGE, CSVLOG_DETAIL = 11, 13, 14
CSVLOG_MIN_COLUMNS = 23  # columns of the oldest form still in use
LOGGED_STATEMENT = re.compile(r"(?:statement|execute [^:]*|parse [^:]*): (?P<sql>.*)", re.DOTALL)
PARAMETERS = re.compile(r"[Pp]arameters: (?P<values>.*)", re.DOTALL)
PARAMETER = re.compile(r"\$(?P<number>\d+) = (?P<value>NULL|'(?:[^']|'')*')")
TITLE = re.compile(r"^[ \t]*--(?P<title>[^\n]*)\n[ \t]*\Z", re.MULTILINE)
QUERYING = ("select", "with", "(")
EXPECTED = "a log file, or statements as texts"


@dataclass(frozen=True)
class Logged:
    """One statement of a log: its text, the line it begins on, and its answer if that is known.

    In a script a comment on the line directly before it is its title. `view` is the version that it
    is about, where several stand in one table.
    """

    sql: str
    line: int
    answer: Decimal | None = field(default=None, repr=False)
    title: str | None = None
    view: VersionView | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Unread:
    """A line of a log that is not a statement to audit, and why."""

    text: str
    line: int
    reason: str
    view: VersionView | None = field(default=None, compare=False, repr=False)


Queries = str | Path | Iterable[str | Logged | Unread]
"""A log file, or statements as texts."""


def read_log(path: Path, dialect: str = DIALECT) -> list[Logged | Unread]:
    """The statements of a log in order, each line that could not be read among them."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise Misconfigured(f"{path} is not UTF-8 text; save it again as UTF-8") from None
    found = list(entries_of(text, path, dialect))
    if not found:
        raise Misconfigured(f"{path} holds no statement; expected SQL, or a CSV with a column sql")
    return found


def read_statement(entry: Logged, policy: Policy, dialect: str) -> Statement:
    """What a statement of a log asks of the table, or of the one of its versions it is about."""
    if entry.view is None:
        return parse_statement(entry.sql, policy, dialect)
    return entry.view.restrict(parse_statement(entry.sql, entry.view.policy(policy), dialect))


def read_projection(entry: Logged, policy: Policy, dialect: str) -> Projection | None:
    """The rows of the table, or of one of its versions, that a statement shows, if it does."""
    if entry.view is None:
        return parse_projection(entry.sql, policy, dialect)
    rows = parse_projection(entry.sql, entry.view.policy(policy), dialect)
    return None if rows is None else entry.view.restrict_rows(rows)


def read_queries(queries: Queries, dialect: str) -> list[Logged | Unread]:
    """The statements of a log file, or those that are given as texts."""
    if isinstance(queries, str | os.PathLike) or not _is_listed(queries):
        return read_log(Path(checked_path(queries, EXPECTED)), dialect)
    return [_entry(each, line) for line, each in enumerate(queries, start=1)]


def _is_listed(queries: object) -> bool:
    """Whether it is statements: a table or a dictionary would give its names in their place."""
    named = isinstance(queries, Mapping | bytes) or hasattr(queries, "columns")
    return isinstance(queries, Iterable) and not named


def _entry(given: object, line: int) -> Logged | Unread:
    if isinstance(given, str):
        return Logged(given, line)
    if isinstance(given, Logged | Unread):
        return given
    kind = type(given).__name__
    raise Misconfigured(f"expected statements as texts, got an object of type {kind}")


def entries_of(text: str, path: Path, dialect: str) -> Iterator[Logged | Unread]:
    """The statements of a log's text, in the form that the name of its file says."""
    if path.suffix.lower() != ".csv":
        return _script(text, dialect)
    lines = list(_csv_records(text))
    if lines and "sql" in [cell.strip().lower() for cell in lines[0][1]]:
        return _table(lines)
    if lines and len(lines[0][1]) >= CSVLOG_MIN_COLUMNS:
        return _server_log(lines)
    raise Misconfigured(f"{path} has no column sql and is not a log of PostgreSQL's")


def _script(text: str, dialect: str) -> Iterator[Logged]:
    end = 0
    for sql in split(text, dialect):
        at = text.index(sql, end)
        yield Logged(sql, text.count("\n", 0, at) + 1, title=_title(text[end:at]))
        end = at + len(sql)


def _title(before: str) -> str | None:
    """What the comment says that is the last line before a statement."""
    comment = TITLE.search(before)
    return comment["title"].strip("-=*# \t\r") or None if comment else None


def _csv_records(text: str) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV file, each with the line it begins on."""
    reader = csv.reader(text.splitlines(keepends=True))
    first = 1
    for cells in reader:
        if cells:
            yield first, cells
        first = reader.line_num + 1


# CSV with sql and answer ----------------------------------------------------------------------


def _table(lines: Sequence[tuple[int, list[str]]]) -> Iterator[Logged | Unread]:
    names = [cell.strip().lower() for cell in lines[0][1]]
    unknown = [name for name in names if name not in ("sql", "answer")]
    if unknown:
        raise Misconfigured(
            f"the log has a column {unknown[0]!r}; expected sql, and answer where it is known"
        )
    for line, cells in lines[1:]:
        given = dict(zip(names, cells, strict=False))
        yield _row(given.get("sql", "").strip().rstrip(";"), given.get("answer", "").strip(), line)


def _row(sql: str, answer: str, line: int) -> Logged | Unread:
    if not sql:
        return Unread(sql, line, "there is no statement on this line")
    if not answer:
        return Logged(sql, line)
    try:
        value = Decimal(answer)
    except InvalidOperation:
        return Unread(sql, line, "the answer is not a number")
    if not value.is_finite():
        return Unread(sql, line, "the answer is not a number")
    return Logged(sql, line, value)


# PostgreSQL's csvlog --------------------------------------------------------------------------


def _server_log(lines: Sequence[tuple[int, list[str]]]) -> Iterator[Logged | Unread]:
    """SELECTs that were logged; what else a server writes is passed over."""
    for line, cells in lines:
        if len(cells) < CSVLOG_MIN_COLUMNS or cells[CSVLOG_SEVERITY] != "LOG":
            continue
        logged = LOGGED_STATEMENT.search(cells[CSVLOG_MESSAGE])
        if logged is None or not logged["sql"].lstrip().lower().startswith(QUERYING):
            continue
        sql = logged["sql"].strip().rstrip(";")
        try:
            yield Logged(bind_parameters(sql, cells[CSVLOG_DETAIL]), line)
        except Unsupported as refused:
            yield Unread(sql, line, refused.reason)


def bind_parameters(sql: str, detail: str) -> str:
    """The statement with each `$1` replaced by the value that the log gives for it."""
    listed = PARAMETERS.search(detail)
    values = {
        int(each["number"]): each["value"]
        for each in PARAMETER.finditer(listed["values"] if listed else "")
    }
    tokens = tokens_of(sql, DIALECT)
    pieces, last = [], 0
    for sign, number in pairwise(tokens):
        if sign.token_type is not TokenType.PARAMETER or not number.text.isdigit():
            continue
        if int(number.text) not in values:
            reason = f"the value of ${number.text} is not in the log; put it back"
            raise Unsupported(reason, sql)
        pieces += [sql[last : sign.start], values[int(number.text)]]
        last = number.end + 1
    return "".join([*pieces, sql[last:]])


# Which columns statements compare with text: all that tells their type before there is one -------


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
        for token, rest in _compared_names(tokens):
            if token.text.lower() in wanted and _is_text(rest):
                found.add(wanted[token.text.lower()])
    return frozenset(found)


def _compared_names(tokens: list[Token]) -> Iterable[tuple[Token, list[Token]]]:
    """Every name with what is compared with it: the tokens after the sign."""
    for place, (token, sign) in enumerate(pairwise(tokens)):
        if token.token_type in NAMES and sign.token_type in (*COMPARED, TokenType.NOT):
            yield token, tokens[place + 2 : place + 5]


def _is_text(rest: list[Token]) -> bool:
    """Whether a text comes next, perhaps after NOT's own sign and a parenthesis."""
    skipped = (*COMPARED, TokenType.L_PAREN)
    first = next((each for each in rest if each.token_type not in skipped), None)
    return first is not None and first.token_type is TokenType.STRING
