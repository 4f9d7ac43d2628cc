"""At most so many rows of each person: a source that shows no others.

Which rows of a person are kept is a function of that person's own rows and of the dataset's key
alone, so nobody's coming or going changes which rows of others count. A row is known by its key, if
there is one, and by its public cells; rows that are alike in these are numbered in the order of a
keyed hash of the others, so no private value has a part in which public cells count. A keyed hash
of the row and its number says which come first: no value is preferred, and nobody can predict the
choice. Rows alike in everything are interchangeable. A row that says of nobody whose it is (its
person is NULL) cannot be counted towards anybody's rows, and is left out.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from casemate.table.schema import Role
from casemate.table.sources.source import (
    PERSON,
    RECORD,
    LaterSource,
    Source,
    SourceView,
    Storing,
    literal,
    quote_name,
)
from casemate.table.universe import Universe

SHORTEST_KEY_BYTES = 16
"""Bytes of a key that nobody guesses."""

KEY_DIGITS = 32
"""Hexadecimal digits of the key of one hash: 128 bits, so that short cells take one round of it."""

CHOICE_RULE_VERSION = 3
"""The number of the rule by which rows are chosen; another rule is another edition."""

HASHES = {"duckdb": "sha256({})", "postgres": "sha256(convert_to({}, 'UTF8'))"}
"""An ordered digest of text."""

DIGITS = {"duckdb": "{}", "postgres": "encode({}, 'hex')"}
"""A digest as text."""


@dataclass(frozen=True)
class Contribution:
    """How many rows of a person count, and what tells two of them apart."""

    most: int
    named: tuple[str, ...]  # the columns that a row is known by
    content: tuple[str, ...]  # those that tell rows apart that are known alike

    @classmethod
    def of(cls, universe: Universe) -> "Contribution":
        """What the policy of a universe says."""
        readable = universe.columns or tuple(each.column for each in universe.attributes)
        public = tuple(each.name for each in readable if each.role is not Role.PRIVATE)
        private = tuple(each.name for each in readable if each.role is Role.PRIVATE)
        named = (RECORD, *public) if universe.keyed else public
        return cls(universe.rows_per_person, named, private)


class BoundedSource(SourceView):
    """A source of which at most so many rows of each person are seen."""

    def __init__(self, source: Source, contribution: Contribution, key: bytes) -> None:
        if len(key) < SHORTEST_KEY_BYTES:
            raise ValueError(f"the key needs at least {SHORTEST_KEY_BYTES} bytes, got {len(key)}")
        super().__init__(source)
        self._contribution, self._key = contribution, key

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        if public is not None:
            return self._source.relation(public)
        kept, source = self._select_kept_rows(), self._source
        source = source.opened if isinstance(source, LaterSource) else source
        return source.materialise(kept) if isinstance(source, Storing) else f"({kept})"

    def _select_kept_rows(self) -> str:
        """The rows that count: all of most people, and the first few of those with more."""
        rows, most = f"{self._source.relation()} AS casemate_all", self._contribution.most
        shown = ", ".join([RECORD, *map(quote_name, self._source.fields())])
        many = f"SELECT {PERSON} FROM {rows} GROUP BY {PERSON} HAVING count(*) > {most}"
        named, content = (
            self._hash(letter, [PERSON, *map(quote_name, columns)])
            for letter, columns in (
                ("n", self._contribution.named),
                ("c", self._contribution.content),
            )
        )
        hashed = (
            f"SELECT *, {named} AS casemate_name, {content} AS casemate_content FROM {rows} "
            f"WHERE {PERSON} IN ({many})"
        )
        numbered = (
            f"SELECT *, row_number() OVER (PARTITION BY {PERSON}, casemate_name "
            f"ORDER BY casemate_content) AS casemate_number FROM ({hashed}) AS casemate_hashed"
        )
        name = DIGITS[self.dialect].format("casemate_name")
        again = self._hash("r", [name, "casemate_number"])
        order = f"CASE WHEN casemate_number = 1 THEN casemate_name ELSE {again} END"
        placed = (
            f"SELECT *, row_number() OVER (PARTITION BY {PERSON} ORDER BY {order}) "
            f"AS casemate_place FROM ({numbered}) AS casemate_numbered"
        )
        return (
            f"SELECT {shown} FROM {rows} WHERE {PERSON} IN (SELECT {PERSON} FROM {rows} "
            f"GROUP BY {PERSON} HAVING count(*) <= {most}) UNION ALL "
            f"SELECT {shown} FROM ({placed}) AS casemate_placed WHERE casemate_place <= {most}"
        )

    def _hash(self, letter: str, expressions: Sequence[str]) -> str:
        """A keyed digest of cells; the length before each keeps different cells different."""
        start = literal(hashlib.sha256(letter.encode() + self._key).hexdigest()[:KEY_DIGITS])
        cells = [f"CAST({each} AS VARCHAR)" for each in expressions]
        parts = [
            f"coalesce(CAST(length({cell}) AS VARCHAR) || ':' || {cell}, '-')" for cell in cells
        ]
        return HASHES[self.dialect].format(" || ".join([start, *parts]))

    def __repr__(self) -> str:
        """How many rows of each person there are; never the key."""
        return f"<BoundedSource: at most {self._contribution.most} rows of each person>"


def bound_contribution(universe: Universe, source: Source, key: bytes | None) -> Source:
    """The rows of a source that count: all, or at most so many of each person.

    The key is a secret of the dataset, and the same for its whole life; it is needed only where
    the policy says that a person may have several rows.
    """
    if universe.person is None or isinstance(source, BoundedSource):
        return source
    if key is None:
        raise ValueError("a policy with `person` needs the dataset's key to choose the rows kept")
    return BoundedSource(source, Contribution.of(universe), key)


def choice_of_rows(source: Source, key: bytes) -> str:
    """What decides which rows of a person count, beside the policy: never the key itself."""
    digest = hashlib.sha256(b"casemate rows of a person" + key).hexdigest()
    return f"rule {CHOICE_RULE_VERSION}, {source.dialect}, key {digest}"
