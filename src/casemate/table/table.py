"""`Table`: a policy together with the open source it speaks of.

It is found by a policy, a path, an address or a shipped name, opened, and checked against the
policy. `OutsideSource` is what an outsider sees of it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from casemate.errors import Misconfigured, checked_path
from casemate.table.policy import load_policy
from casemate.table.schema import (
    NUMBERS,
    CellFormat,
    Column,
    ColumnType,
    Missing,
    Policy,
    PublicTable,
    Role,
    Value,
    misfit,
)
from casemate.table.shipped.tables import names, shipped_table
from casemate.table.sources.exact_cells import check_exact
from casemate.table.sources.place import (
    FORMS,
    ColumnsInMemory,
    DuckDBTable,
    Place,
    PostgresTable,
    beside,
    find,
    redact_source,
)
from casemate.table.sources.source import (
    LaterSource,
    Source,
    SourceView,
    literal,
    no_column,
    quote_name,
)
from casemate.table.sources.text_numbers import TextColumn, TextNumbers
from casemate.table.sources.types import ByPolicy, type_of_values, typed_by_policy
from casemate.table.toml import join_words, toml_key

if TYPE_CHECKING:
    from casemate.table.sources.duckdb import DuckDBSource
    from casemate.table.sources.postgres import PostgresSource

SQL_TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.DECIMAL: "DECIMAL(38, 9)",
    ColumnType.DOUBLE: "DOUBLE PRECISION",
    ColumnType.TEXT: "VARCHAR",
}


class OutsideSource(SourceView):
    """A source with filler for the private columns that it does not have.

    An outsider sees a table without some of its private columns. Queries must be understood all the
    same, so such a column is there with one filler value in every row; whoever opens a table like
    this brings the published numbers along and never reads the filler.
    """

    def __init__(self, source: Source, unseen: Sequence[Column]) -> None:
        super().__init__(source)
        self._unseen = tuple(unseen)

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        text = self._source.relation(public)
        if public is not None:
            return text
        shown = ", ".join(
            f"{_filler(column)} AS {quote_name(column.name)}" for column in self._unseen
        )
        return f"(SELECT casemate_seen.*, {shown} FROM {text} AS casemate_seen)"

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        seen = self._source.fields(public)
        if public is not None:
            return seen
        return {**seen, **{each.name: each.type for each in self._unseen if each.type}}


def unseen(column: Column) -> Column:
    """A private column that the source does not have, with the type that its values imply.

    Bounds imply nothing: between 3 and 10 there are other numbers than whole ones.

    >>> unseen(Column("x", Role.PRIVATE, values=(0, 1))).type
    <ColumnType.INTEGER: 'integer'>
    >>> unseen(Column("x", Role.PRIVATE, low=3, high=10)).type
    <ColumnType.DOUBLE: 'double'>
    """
    implied = type_of_values(column.values) if column.values else ColumnType.DOUBLE
    type_ = column.type or implied
    if type_ not in SQL_TYPES:
        raise Misconfigured(
            f"the table has no column {column.name}, and one of type {type_} cannot stand in for "
            "it; declare it as a number, a boolean or text"
        )
    return replace(column, role=Role.PRIVATE, type=type_)


def _filler(column: Column) -> str:
    """A value of the column's type, and of its domain where it has one."""
    defaults: dict[ColumnType, Value] = {ColumnType.BOOLEAN: False, ColumnType.TEXT: ""}
    type_ = column.type or ColumnType.DOUBLE
    value = column.values[0] if column.values else defaults.get(type_, 0)
    return f"CAST({literal(value)} AS {SQL_TYPES[type_]})"


# The table ---------------------------------------------------------------------------------------


NO_PRIVATE = "no column is private; name one with --private, or in a policy"
"""What is said where there is nothing to protect, and so nothing to find out."""


class Table:
    """A protected table, ready to be asked.

    >>> with Table.open("hospital") as table:
    ...     print(table, [column.name for column in table.policy.private()])
    <Table hospital: 5 columns, 1 private> ['Blood sugar']
    """

    def __init__(self, policy: Policy, source: Source) -> None:
        self.policy, self.source = policy, source

    @classmethod
    def open(
        cls,
        where: str | Path | Policy,
        *,
        private: str | Sequence[str] = (),
        key: str | None = None,
        memory_limit: str | None = None,
        outsider: bool = False,
        texts: Collection[str] = (),
        by_policy: bool = False,
        filled: bool = False,
        later: bool = False,
        decimals: bool = False,
    ) -> Self:
        """Open a policy (`.toml`), a source path or URL, or a shipped table, in that order.

        A source without a policy gets one in which every column is public; `private` names the
        columns to protect, and `key` the column that identifies a record. `memory_limit`, a size
        such as "2GB", bounds what DuckDB keeps in memory.
        An `outsider` need not have the private columns: see `casemate.table.table`; `texts` are
        those of `private` that hold text and not numbers.
        A cell that cannot be computed with exactly is refused by its column
        (`sources.exact_cells`). With `by_policy` types come from the policy alone and no cell makes
        opening fail: what does not fit is NULL (private answers need it so); `filled` tells such
        cells from missing ones, and `later` opens the source when something of it is first
        needed, where the policy alone tells everything else. With `decimals` private columns of
        a CSV file without a declared
        type are decimals, whatever their cells look like.
        """
        if not isinstance(where, Policy):
            checked_path(where, f"a policy (.toml), {FORMS}, or a shipped table")
        policy = _policy(where)
        origin = (
            str(policy.path or redact_source(policy.source))
            if policy
            else redact_source(str(where))
        )
        folder = policy.path.parent if policy and policy.path else Path()
        place, own_policy = _locate(policy.source if policy else str(where), folder, origin)
        named = [private] if isinstance(private, str) else private
        options = _OpenOptions(
            named, key, memory_limit, outsider, texts, by_policy, filled, later, decimals
        )
        if policy is not None and not policy.columns and own_policy is not None:
            raise Misconfigured(f"{origin} comes with a policy, so nothing else is said of it")
        with _named_in_errors(origin):
            described = policy or own_policy
            if described is not None and _tells_all(described, place, options):
                return cls(*_open_later(described, place, options, origin))
            return cls(*_open_source(described, place, folder, options))

    def close(self) -> None:
        """Let go of the source."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Where the table is and how wide; nothing of what is in it."""
        where = redact_source(self.policy.source)
        width, hidden = len(self.policy.columns), len(self.policy.private())
        return f"<Table {where}: {width} columns, {hidden} private>"


@contextmanager
def opened_table(
    table: Table | Policy | str | Path,
    private: str | Sequence[str],
    *,
    outsider: bool = False,
    texts: Collection[str] = (),
) -> Iterator[Table]:
    """The table, opened if it is a path; one that is open already stays open.

    Refused is a table of which no column is private: nothing about it would be found out, which
    must not look as if nobody were exposed.
    """
    names = [private] if isinstance(private, str) else list(private)
    if isinstance(table, Table) and names:
        raise Misconfigured("`private` goes with a path; give it to Table.open with an open table")
    with ExitStack() as open_here:
        if not isinstance(table, Table):
            table = open_here.enter_context(
                Table.open(table, private=names, outsider=outsider, texts=texts)
            )
        if not table.policy.private():
            raise Misconfigured(NO_PRIVATE)
        yield table


def plain_source(
    where: str,
    *,
    key: str | None = None,
    missing: str | None = None,
    missing_markers: Sequence[str] = (),
    thousands: str | None = None,
    decimal: str | None = None,
    currency: str | None = None,
) -> str | Policy:
    """A source without a policy, with what a policy would say of it; itself if that is nothing.

    `missing` is said of the columns that are named private, the formats of all.
    """
    said = {
        "key": key,
        "missing": missing,
        "missing_markers": missing_markers,
        "thousands": thousands,
        "decimal": decimal,
        "currency": currency,
    }
    given = [name for name, value in said.items() if value]
    if not given:
        return where
    if where.lower().endswith(".toml"):
        raise Misconfigured(f"{where} is a policy; declare {join_words(given)} in it")
    markers = tuple(each.strip() for each in missing_markers)
    form = CellFormat(markers, thousands, decimal or ".", currency)
    wrong = form.mistake()
    if wrong is not None:
        raise Misconfigured(f"`{wrong[0]}` {wrong[1]}")
    return Policy(where, (), key=key, missing=Missing(missing or Missing.NONE), format=form)


# Where the table is ---------------------------------------------------------------------------


def _policy(where: str | Path | Policy) -> Policy | None:
    if isinstance(where, Policy):
        return where
    return load_policy(where) if str(where).lower().endswith(".toml") else None


def _locate(
    source: str, folder: Path, origin: str
) -> tuple[Place | ColumnsInMemory, Policy | None]:
    """What a source string points to, and the policy that comes with a shipped table."""
    try:
        place = find(source, folder)
    except Misconfigured as error:
        raise Misconfigured(f"{origin} {error}") from None
    if place is not None:
        return place, None
    table = shipped_table(source)
    if table is None:
        raise Misconfigured(
            f"{origin}: there is no file {source} and no shipped table of that name; expected a "
            f"policy (.toml), {FORMS}, or {join_words(names())}"
        )
    types = {column.name: column.type for column in table.policy.columns if column.type}
    return ColumnsInMemory(source, table.columns, types), table.policy


def _public_place(public: PublicTable, place: Place | ColumnsInMemory, folder: Path) -> Place:
    if public.source is None or public.source.startswith("#"):
        if isinstance(place, ColumnsInMemory):
            raise Misconfigured(f"`public.{public.name}.source` is missing; expected a file")
        return beside(place, (public.source or public.name).removeprefix("#"))
    found = find(public.source, folder)
    if found is None:
        raise Misconfigured(
            f"`public.{public.name}.source` names {public.source}, and there is no such file"
        )
    return found


# Opening it -----------------------------------------------------------------------------------


@contextmanager
def _named_in_errors(origin: str) -> Iterator[None]:
    """Inside, whatever is wrong with a table names the table."""
    try:
        yield
    except Misconfigured as error:
        sentence = str(error) if origin in str(error) else f"{origin}: {error}"
        raise Misconfigured(sentence) from None


class _OpenOptions(NamedTuple):
    """What `Table.open` is asked for."""

    private: Sequence[str]
    key: str | None
    memory_limit: str | None
    outsider: bool
    texts: Collection[str]
    by_policy: bool
    filled: bool
    later: bool
    decimals: bool


def _tells_all(policy: Policy, place: Place | ColumnsInMemory, options: _OpenOptions) -> bool:
    """Whether nothing but its cells is needed of a source: no public table, and no key to find."""
    keyed = policy.key is not None or not isinstance(place, DuckDBTable | PostgresTable)
    return options.later and options.by_policy and keyed and not policy.public_tables


def _open_later(
    policy: Policy, place: Place | ColumnsInMemory, options: _OpenOptions, origin: str
) -> tuple[Policy, Source]:
    """The policy as it is read, and a source that waits until something of it is needed."""

    def open_now() -> Source:
        with _named_in_errors(origin):
            return _connect(policy, place, {}, options)

    dialect = "postgres" if isinstance(place, PostgresTable) else "duckdb"
    return _typed(policy), LaterSource(dialect, open_now)


def _open_source(
    policy: Policy | None, place: Place | ColumnsInMemory, folder: Path, options: _OpenOptions
) -> tuple[Policy, Source]:
    """A policy in which nothing is left open, and the source it speaks of."""
    stated, private = policy or Policy(place.source, ()), options.private
    public = {t.name: (_public_place(t, place, folder), t.key) for t in stated.public_tables}
    source = _connect(stated, place, public, options)
    try:
        if options.by_policy:
            return _read_by_policy(stated, source), source
        described = stated
        if not stated.columns:
            columns = _every_column(source.fields(), stated.format)
            described = replace(stated, source=place.source, columns=columns)
        missing = _missing(described, private, options.texts, source) if options.outsider else ()
        seen = [column for column in described.columns if column not in missing]
        completed = _complete_types(replace(described, columns=tuple(seen)), source)
        filler = tuple(unseen(column) for column in missing)
        with_filler = replace(completed, columns=(*completed.columns, *filler))
        protected = _make_private(with_filler, private, source)
        check_exact(protected, source)
        return protected, OutsideSource(source, filler) if filler else source
    except BaseException:
        source.close()
        raise


def _declared_types(
    policy: Policy, private: Sequence[str], decimals: bool
) -> dict[str, ColumnType]:
    """The types that a policy declares; where it must be, decimals for its private columns."""
    secret = [*private, *(column.name for column in policy.private())] if decimals else []
    declared = {column.name: column.type for column in policy.columns if column.type}
    return dict.fromkeys(secret, ColumnType.DECIMAL) | declared


def _missing(
    policy: Policy,
    private: Sequence[str],
    texts: Collection[str],
    source: "DuckDBSource | PostgresSource",
) -> tuple[Column, ...]:
    """The private columns that the source does not have."""
    declared = [column for column in policy.private() if column.name not in source.fields()]
    named = [
        name for name in private if policy.column(name) is None and name not in source.left_out
    ]
    types = dict.fromkeys(texts, ColumnType.TEXT)
    return (*declared, *(Column(name, Role.PRIVATE, types.get(name)) for name in named))


def _connect(
    policy: Policy,
    place: Place | ColumnsInMemory,
    public: Mapping[str, tuple[Place, str]],
    options: _OpenOptions,
) -> "DuckDBSource | PostgresSource":
    key, person = options.key or policy.key, policy.person
    by_policy = ByPolicy.of(policy, filled=options.filled) if options.by_policy else None
    remote = {n: (p, k) for n, (p, k) in public.items() if isinstance(p, PostgresTable)}
    local = {n: (p, k) for n, (p, k) in public.items() if not isinstance(p, PostgresTable)}
    types = _declared_types(policy, options.private, options.decimals)
    if not isinstance(place, PostgresTable) and not remote:
        from casemate.table.sources.duckdb import DuckDBSource

        return DuckDBSource(
            place,
            key=key,
            public=local,
            types=types,
            format_of=policy.format_of,
            memory_limit=options.memory_limit,
            person=person,
            by_policy=by_policy,
        )
    if isinstance(place, PostgresTable) and not local:
        from casemate.table.sources.postgres import PostgresSource

        return PostgresSource(
            place,
            key=key,
            public=remote,
            types=types,
            format_of=policy.format_of,
            person=person,
            by_policy=by_policy,
        )
    raise Misconfigured("`public` names a table that is not in the protected table's own database")


# Policy and source together -------------------------------------------------------------------


def _every_column(fields: Mapping[str, ColumnType], form: CellFormat) -> tuple[Column, ...]:
    return tuple(Column(name, type=type_, format=form) for name, type_ in fields.items())


def _complete_types(policy: Policy, source: "DuckDBSource | PostgresSource") -> Policy:
    """The policy with every type filled in, checked against what the source has."""
    if policy.person is not None and policy.person not in source.fields():
        raise no_column("table.person", policy.person, source.fields())
    return replace(
        policy,
        key=source.key,
        columns=tuple(_check_column(column, source) for column in policy.columns),
        public_tables=_public_tables(policy, source),
    )


def _read_by_policy(policy: Policy, source: "DuckDBSource | PostgresSource") -> Policy:
    """The policy with the types that it gives itself; only public tables tell theirs."""
    return replace(_typed(policy), key=source.key, public_tables=_public_tables(policy, source))


def _typed(policy: Policy) -> Policy:
    """The policy with the types that it gives itself, which its bounds and values must suit."""
    typed = typed_by_policy(policy)
    for column in typed.columns:
        wrong = column.type and misfit(column, column.type)
        if wrong:
            raise Misconfigured(f"`columns.{toml_key(column.name)}.{wrong[0]}` {wrong[1]}")
    return typed


def _public_tables(
    policy: Policy, source: "DuckDBSource | PostgresSource"
) -> tuple[PublicTable, ...]:
    return tuple(
        replace(table, columns=_every_column(source.fields(table.name), CellFormat()))
        for table in policy.public_tables
    )


def _check_column(column: Column, source: "DuckDBSource | PostgresSource") -> Column:
    key = f"columns.{toml_key(column.name)}"
    if column.name in source.left_out:
        raise Misconfigured(
            f"`{key}` is {_unusable(column.name, source)}; leave it out of the policy"
        )
    type_ = source.fields().get(column.name)
    if type_ is None:
        raise no_column(key, column.name, source.fields())
    if column.type not in (None, type_):
        text = column.type in NUMBERS and type_ is ColumnType.TEXT
        found = why_text(source, column) if text else None
        why = f'declare type = "{type_}", or none' if found is None else found.sentence
        raise Misconfigured(f"`{key}.type` is {column.type}, and the source has {type_}; {why}")
    wrong = misfit(column, type_)
    if wrong is not None:
        raise Misconfigured(f"`{key}.{wrong[0]}` {wrong[1]}")
    return replace(column, type=type_)


def why_text(source: Source, column: Column) -> TextNumbers | None:
    """What keeps a column of text from being one of numbers, for whoever holds the table."""
    cell = quote_name(column.name)
    text = TextColumn(source.read, source.relation(), column.name, cell)
    return text.numbers(column.format)


def _unusable(name: str, source: "DuckDBSource | PostgresSource") -> str:
    return f"a column of type {source.left_out[name]}, which queries cannot use"


def _make_private(
    policy: Policy, private: Sequence[str], source: "DuckDBSource | PostgresSource"
) -> Policy:
    """The policy with some more columns private."""
    for name in private:
        if policy.column(name) is None and name in source.left_out:
            raise Misconfigured(f"`private` names {name!r}, {_unusable(name, source)}")
        if policy.column(name) is None:
            known = {column.name: column for column in policy.columns}
            raise no_column("private", name, known)
    said = policy.missing is not Missing.NONE
    columns = tuple(
        replace(column, role=Role.PRIVATE, missing=policy.missing if said else column.missing)
        if column.name in private
        else column
        for column in policy.columns
    )
    return replace(policy, columns=columns)
