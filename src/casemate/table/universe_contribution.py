"""At most so many rows of each person: a source that shows no others.

Which rows of a person are kept is decided by a keyed hash of the record's name, so it is the same
at every question, and no value of a row has a part in it. A row that says of nobody whose it is
(its person is NULL) cannot be counted towards anybody's rows, and is left out.
"""

from casemate.table.source import RECORD, Source
from casemate.table.source_view import SourceView
from casemate.table.sql_text import literal, quoted
from casemate.table.universe import Universe

SHORTEST_KEY = 16
"""Bytes of a key that nobody guesses."""

HASHES = {
    "duckdb": "sha256({} || CAST({} AS VARCHAR))",
    "postgres": "sha256(convert_to({} || CAST({} AS text), 'UTF8'))",
}


class BoundedSource(SourceView):
    """A source of which at most so many rows of each person are seen."""

    def __init__(self, source: Source, person: str, most: int, key: bytes) -> None:
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"the key needs at least {SHORTEST_KEY} bytes, got {len(key)}")
        super().__init__(source)
        self._person, self._most, self._key = person, most, key

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        text = self._source.relation(public)
        if public is not None:
            return text
        person, record = quoted("casemate_all", self._person), quoted("casemate_all", RECORD)
        order = HASHES[self.dialect].format(literal(self._key.hex()), record)
        place = f"row_number() OVER (PARTITION BY {person} ORDER BY {order}, {record})"
        inner = (
            f"SELECT casemate_all.*, {place} AS casemate_place FROM {text} AS casemate_all "
            f"WHERE {person} IS NOT NULL"
        )
        return f"(SELECT * FROM ({inner}) AS casemate_kept WHERE casemate_place <= {self._most})"

    def __repr__(self) -> str:
        """How many rows of each person there are; never the key."""
        return f"<BoundedSource: at most {self._most} rows of each {self._person}>"


def bounded(universe: Universe, source: Source, key: bytes | None) -> Source:
    """The rows of a source that count: all, or at most so many of each person.

    The key is a secret of the dataset, and the same for its whole life; it is needed only where
    the policy says that a person may have several rows.
    """
    if universe.person is None or isinstance(source, BoundedSource):
        return source
    if key is None:
        raise ValueError("a policy with `person` needs the dataset's key to choose the rows kept")
    return BoundedSource(source, universe.person, universe.rows_per_person, key)
