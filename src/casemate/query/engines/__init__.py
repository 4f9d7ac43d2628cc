"""Statements on a database: the same meaning as SQL text for DuckDB and PostgreSQL, and in words.

`rendering` writes expressions, with one dialect for each engine; `engine` puts statements together;
`answering` gives the true answers, which are the custodian's view and nobody else's.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.engines.answering import (
        Key,
        StatementAnswer,
        answers,
        average,
        batches,
        shown_rows,
        values,
    )
    from casemate.query.engines.engine import (
        RECORD_COLUMN,
        engine_of,
        grouped,
        pieces,
        rows,
        tables,
    )
    from casemate.query.engines.rendering import PROTECTED, quote, render
    from casemate.query.engines.text import describe
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
