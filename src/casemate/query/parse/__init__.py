"""SQL text to statements: an allow-list of what is understood, every refusal with its place.

`sql` reads one statement, `log` a file of them, and `growing` one that is still being written;
`scope` resolves names, `select` and `functions` read clauses, `translate` expressions.
`public_join` replaces joined public tables, and `withhold` changes a statement so that it shows all
of its rows but some; `version` puts one that is about one of several versions of a table into the
table of all of them. `projection` reads what nobody may ask for and a log may hold, single rows.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.parse.growing import Arrived, GrowingLog
    from casemate.query.parse.log import (
        Logged,
        Queries,
        Unread,
        compared_with_text,
        read_projection,
        read_queries,
        read_statement,
    )
    from casemate.query.parse.public_join import eliminate_joins, public_rows
    from casemate.query.parse.sql import DIALECT, dialect_of, parse, parse_statement, split
    from casemate.query.parse.version import VersionView
    from casemate.query.parse.withhold import ShownRow, Withholding
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
