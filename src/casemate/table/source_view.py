"""A source seen in another way: what it shows changes, and where it is does not."""

from collections.abc import Mapping

from casemate.table.schema import ColumnType
from casemate.table.source import Frame, Source


class SourceView:
    """A source that reads through another one; whoever derives from it changes the relation."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def dialect(self) -> str:
        """What sqlglot calls the engine's SQL."""
        return self._source.dialect

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self._source.fields(public)

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        return self._source.read(sql)

    def close(self) -> None:
        """Let go of the source."""
        self._source.close()
