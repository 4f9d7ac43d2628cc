"""SQL text to statements: an allow-list of what is understood, every refusal with its place.

`sql` reads one statement, `log` a file of them; `scope` resolves names, `select`, `functions` and
`overlay` read clauses, `translate` expressions, and `public_join` replaces joined public tables.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.query.parse.log import Logged, Queries, Unread, compared_with_text, read_queries
    from casemate.query.parse.place import dialect_of
    from casemate.query.parse.public_join import flattened, public_rows
    from casemate.query.parse.sql import DIALECT, parse, parse_statement, split
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
