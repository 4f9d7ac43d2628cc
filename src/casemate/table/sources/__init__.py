"""Where records live: CSV and Parquet files, DuckDB, PostgreSQL, each behind one `Source`.

`place` reads what a source string points to, `files` and `duckdb` open it, `types` reads any cell
as the type that the policy gives it, and `contribution` shows at most so many rows of each person.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.table.sources.contribution import bounded, choice_of_rows
    from casemate.table.sources.place import shown
    from casemate.table.sources.source import RECORD, Frame, Series, Source
    from casemate.table.sources.types import typed_by_policy
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
