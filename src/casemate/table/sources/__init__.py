"""Where records live: CSV and Parquet files, DuckDB, PostgreSQL, each behind one `Source`.

`source` is that interface, and what a key is. `place` reads what a source string points to;
`duckdb` opens it, with `files` to load CSV (seen by `csv`) and Parquet, or `postgres` does.
`engine_tables` shows a table to queries through the expressions of `cells`, which read any cell as
the type that `types` takes from the policy; `exact_cells` refuses cells that would make a verdict
wrong, and `contribution` shows at most so many rows of each person.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.table.sources.contribution import bound_contribution, choice_of_rows
    from casemate.table.sources.place import redact_source
    from casemate.table.sources.source import (
        RECORD,
        Frame,
        Series,
        Source,
        literal,
        quote_name,
    )
    from casemate.table.sources.types import typed_by_policy
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
