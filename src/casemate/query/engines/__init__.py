"""Statements on a database: the same meaning as SQL text for DuckDB and PostgreSQL.

`rendering` writes expressions, with one dialect of `dialects` for each engine; `answering` puts
statements together and gives the true answers, which are the custodian's view and nobody else's.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.aggregate import describe
    from casemate.query.engines.answering import (
        RECORD_COLUMN,
        Key,
        StatementAnswer,
        answers,
        average,
        batches,
        engine_of,
        group_by,
        pieces,
        rows,
        shown_rows,
        tables,
        values,
    )
    from casemate.query.engines.rendering import PROTECTED, render
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
