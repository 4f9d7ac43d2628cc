"""The questions of a log as questions on the grid; what cannot be one does not stop the others."""

from collections.abc import Callable
from dataclasses import dataclass

from casemate.answer.asked import Asked
from casemate.answer.compile import compiled
from casemate.errors import Unsupported
from casemate.published.publication import RefusedQuery
from casemate.query.aggregate import Statement
from casemate.query.log import Logged, Queries, Unread, read_queries
from casemate.query.sql import parse_statement
from casemate.table.schema import Policy
from casemate.table.universe import Universe


@dataclass(frozen=True, eq=False)
class Question:
    """One statement of a log, the line it begins on, and what it asks of the grid."""

    line: int
    sql: str
    asked: Asked


@dataclass(frozen=True, eq=False)
class Log:
    """The questions of a log, each once; repeats cost nothing, and are counted."""

    questions: tuple[Question, ...]
    refused: tuple[RefusedQuery, ...] = ()
    repeats: int = 0


def read_questions(queries: Queries, policy: Policy, universe: Universe, dialect: str) -> Log:
    """Read every statement of a log; the policy has the type of every column."""

    def asked(statement: Statement) -> Asked:
        return compiled(statement, universe).snapped

    return gathered(queries, policy, dialect, asked)


def gathered(
    queries: Queries, policy: Policy, dialect: str, asked: Callable[[Statement], Asked]
) -> Log:
    """The same with any way to make a question of a statement."""
    found: dict[str, Question] = {}
    refused: list[RefusedQuery] = []
    repeats = 0
    for number, entry in enumerate(read_queries(queries, dialect), start=1):
        if isinstance(entry, Unread):
            refused.append(RefusedQuery(number, entry.line, None, entry.text, entry.reason))
            continue
        try:
            question = Question(
                entry.line, entry.sql, asked(parse_statement(entry.sql, policy, dialect))
            )
        except Unsupported as error:
            refused.append(_refused(number, entry, error))
            continue
        repeats += question.asked.text in found
        found.setdefault(question.asked.text, question)
    return Log(tuple(found.values()), tuple(refused), repeats)


def _refused(number: int, entry: Logged, error: Unsupported) -> RefusedQuery:
    line = entry.line + max(0, error.line - 1)
    return RefusedQuery(number, line, error.column or None, entry.sql, error.reason)
