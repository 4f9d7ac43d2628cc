"""Whoever answers the queries of a plan, and what has been asked so far."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from casemate.attack.plan_result import Answer


class Oracle(Protocol):
    """Answers one query at a time: a database, a dashboard, somebody on the telephone."""

    def ask(self, sql: str) -> Answer:
        """The number that a query shows; None is NULL."""
        ...


@dataclass
class Asking:
    """Questions put to an oracle, each once, with their answers."""

    oracle: Oracle
    answers: dict[str, Fraction] = field(default_factory=dict)

    def ask(self, sql: str) -> Fraction:
        """The answer to a query; NULL, the sum of nothing, is 0."""
        if sql not in self.answers:
            self.answers[sql] = Fraction(self.oracle.ask(sql) or 0)
        return self.answers[sql]
