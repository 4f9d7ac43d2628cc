"""What a plan is made for: a log's questions or the usual ones, and a policy without its table.

Without a log the questions are ranges over up to three attributes. They are spread evenly over all
such ranges by a fixed sequence without chance, so that everybody who plans has the same ones. A
statement of a log that cannot be a question on the grid does not stop the others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casemate.errors import Misconfigured, Unsupported
from casemate.grid import GridQuestion, LinearCells, Mask, Product, compile_statement
from casemate.query import Statement
from casemate.query.parse import Logged, Queries, Unread, parse_statement, read_queries
from casemate.table import Policy, Role, Universe, join_words, load_policy
from casemate.table.shipped import names, shipped_table
from casemate.table.sources import typed_by_policy

if TYPE_CHECKING:
    from casemate.published import RefusedQuery

USUAL_NUMBER = 10_000
"""So many questions are expected where nothing is known of them."""

USUAL_WIDTH = 3
"""And they look at so many attributes."""

SAMPLED_QUESTIONS = 128
"""So many of the usual questions are looked at; the others are like them."""

MAX_SCOPES = 4_096
"""Of more sets of attributes only the first are looked at."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Questions, and how many of their kind will be asked in all."""

    questions: tuple[GridQuestion, ...]
    number: int

    def __post_init__(self) -> None:
        if not self.questions or self.number < 1:
            raise ValueError("a workload has at least one question")

    @property
    def times(self) -> float:
        """How many questions each of them stands for."""
        return self.number / len(self.questions)


def usual_questions(shape: tuple[int, ...], number: int = USUAL_NUMBER) -> Workload:
    """Ranges over three attributes, or over all where there are fewer.

    >>> usual_questions((2, 3)).questions[0].scope
    (0, 1)
    """
    width = min(USUAL_WIDTH, len(shape))
    scopes = list(islice(combinations(range(len(shape)), width), MAX_SCOPES))
    step = max(1, len(scopes) // SAMPLED_QUESTIONS)
    asked = []
    for place in range(SAMPLED_QUESTIONS):
        scope = scopes[place * step % len(scopes)]
        masks = {a: _range(shape[a], place, axis) for axis, a in enumerate(scope)}
        asked.append(GridQuestion((LinearCells(((Product(shape, masks),),)),)))
    return Workload(tuple(asked), number)


def _range(codes: int, place: int, axis: int) -> Mask:
    """The codes of one range; ranges are spread evenly as `place` grows.

    Whichever two of the codes + 1 limits there are, they differ.
    """
    first = int(_even(place, 2 * axis) * (codes + 1))
    other = int(_even(place, 2 * axis + 1) * codes)
    other += other >= first
    low, high = min(first, other), max(first, other)
    return (np.arange(codes) >= low) & (np.arange(codes) < high)


def _even(place: int, series: int) -> float:
    """The fractional parts of multiples of a root, which are spread evenly over 0 to 1."""
    roots = (2, 3, 5, 7, 11, 13)
    return math.modf((place + 0.5) * math.sqrt(roots[series]))[0]


# The questions of a log -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LoggedQuestion:
    """One statement of a log, the line it begins on, and what it asks of the grid."""

    line: int
    sql: str
    asked: GridQuestion


@dataclass(frozen=True, eq=False)
class QuestionLog:
    """The questions of a log, each once; repeats cost nothing, and are counted."""

    questions: tuple[LoggedQuestion, ...]
    refused: "tuple[RefusedQuery, ...]" = ()
    repeats: int = 0


def read_questions(
    queries: Queries, policy: Policy, universe: Universe, dialect: str
) -> QuestionLog:
    """Read every statement of a log; the policy has the type of every column."""

    def question_of(statement: Statement) -> GridQuestion:
        return compile_statement(statement, universe).snapped

    return collect_questions(queries, policy, dialect, question_of)


def collect_questions(
    queries: Queries, policy: Policy, dialect: str, question_of: Callable[[Statement], GridQuestion]
) -> QuestionLog:
    """The same with any way to make a question of a statement."""
    from casemate.published import RefusedQuery  # with the whole room behind it

    found: dict[str, LoggedQuestion] = {}
    refused: list[RefusedQuery] = []
    repeats = 0
    for number, entry in enumerate(read_queries(queries, dialect), start=1):
        if isinstance(entry, Unread):
            refused.append(RefusedQuery(number, entry.line, None, entry.text, entry.reason))
            continue
        try:
            question = LoggedQuestion(
                entry.line, entry.sql, question_of(parse_statement(entry.sql, policy, dialect))
            )
        except Unsupported as error:
            refused.append(_refusal(number, entry, error))
            continue
        repeats += question.asked.text in found
        found.setdefault(question.asked.text, question)
    return QuestionLog(tuple(found.values()), tuple(refused), repeats)


def _refusal(number: int, entry: Logged, error: Unsupported) -> "RefusedQuery":
    from casemate.published import RefusedQuery

    line = entry.line + max(0, error.line - 1)
    return RefusedQuery(number, line, error.column or None, entry.sql, error.reason)


# What a policy alone says of a table ------------------------------------------------------------


def policy_of(where: str | Path | Policy) -> Policy:
    """A policy, read from its file if need be, or that of a shipped table."""
    if isinstance(where, Policy):
        return where
    if str(where).lower().endswith(".toml"):
        return load_policy(where, absent=True)
    found = shipped_table(str(where))
    if found is None:
        raise Misconfigured(
            f"{where} is no policy; planning never opens a table, so it needs a policy (.toml) or "
            f"the name of a shipped table: {join_words(names())}"
        )
    return found.policy


def with_types(policy: Policy) -> tuple[Policy, tuple[str, ...]]:
    """The policy with the types that it gives, and a note on each column that has none."""
    typed = typed_by_policy(policy)
    return typed, tuple(
        f"the type of {column.name} does not follow from the policy, so no question can use it; "
        f"declare `type`, and `values` or bounds"
        for column in typed.columns
        if column.type is None and column.role is not Role.IDENTIFIER
    )
