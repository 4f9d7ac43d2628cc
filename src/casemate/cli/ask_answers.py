"""Statements in, reports out: one session asked one statement after the other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from casemate.answer.session import Session
from casemate.cli.output import Output, Progress
from casemate.report import answer, answer_budget, answer_forecast, answer_html


@dataclass(frozen=True)
class Manner:
    """How statements are asked, and what is shown of their answers."""

    measure: bool = False
    dry_run: bool = False
    session: bool = False


@dataclass(frozen=True)
class Report:
    """A result in each of its forms; the page is made only when somebody wants it."""

    text: str
    fields: dict[str, Any]
    page: Callable[[], str]


class Bar:
    """The bar of the question at hand, told how many of how many tables are measured."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._shown: Progress | None = None

    def __call__(self, _: int, tables: int) -> None:
        """One more table is measured."""
        if self._shown is not None:
            self._shown.advance(1 / tables)

    @contextmanager
    def over(self, what: str) -> Iterator[None]:
        """Show a bar for the length of the block, if it is long."""
        with self._output.progress(what, 1.0) as self._shown:
            yield
        self._shown = None


class Asker:
    """A session, and how its answers are shown."""

    def __init__(self, session: Session, manner: Manner, output: Output, bar: Bar) -> None:
        self._session, self._manner, self._output, self._bar = session, manner, output, bar

    @classmethod
    @contextmanager
    def of(
        cls, policy: str, manner: Manner, output: Output, *, principal: str, dialect: str
    ) -> Iterator[Self]:
        """Ask about a table for the length of the block."""
        bar = Bar(output)
        with bar.over("opening the table"):
            session = (
                Session.looking(policy, dialect=dialect)
                if manner.dry_run
                else Session(policy, principal=principal, dialect=dialect, progress=bar)
            )
        with session:
            yield cls(session, manner, output, bar)

    def emit_all(self, given: Sequence[str]) -> None:
        """Answer statements in order; the first that has no answer ends it.

        On stdout each answer appears when it is there; a file has all of them or is not written.
        """
        if len(given) == 1:
            self._emit(self.report(given[0]))
        elif self._output.output is not None:
            texts = [self.report(sql).text for sql in given]
            self._output.emit("\n\n".join(texts), {})
        else:
            for place, sql in enumerate(given):
                shown = self.report(sql).text
                print(f"\n{shown}" if place else shown, flush=True)

    def _emit(self, report: Report) -> None:
        page = report.page() if self._output.format == "html" else None
        self._output.emit(report.text, report.fields, page)

    def report(self, sql: str, **otherwise: bool) -> Report:
        """What a statement leads to; `otherwise` asks this one in another manner."""
        manner = replace(self._manner, **otherwise)
        if manner.dry_run:
            return self._forecast(sql, manner)
        with self._bar.over("answering"):
            found = self._session.query(sql, measure=manner.measure)
        return Report(
            answer.as_text(found, session=manner.session),
            answer.as_json(found, session=manner.session),
            lambda: answer_html.as_html(found, session=manner.session),
        )

    def _forecast(self, sql: str, manner: Manner) -> Report:
        found = self._session.forecast(sql, measure=manner.measure)
        return Report(
            answer_forecast.as_text(found, measured=manner.measure),
            answer_forecast.as_json(found),
            lambda: answer_forecast.as_html(found, measured=manner.measure),
        )

    def budget(self) -> str:
        """Where the budget stands, as text."""
        return answer_budget.as_text(self._session.standing())
