"""Names in SQL: which column a name means, case and quotation marks as PostgreSQL reads them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from casemate.query.aggregate import Join, Output, Select
from casemate.query.language import operations as make
from casemate.query.language.coercion import Mismatch
from casemate.query.language.expression import TRUE, ColumnRef, Expression, substitute
from casemate.query.parse.translate import NameReaders, Refusal, only, translate
from casemate.table import Column, ColumnType, Policy, PublicTable, Role


@dataclass(frozen=True)
class VisibleColumn:
    """A column that a query can see, under the name of the table it comes from.

    One that USING has `merged` into another is seen only with its table's name before it.
    """

    table: str
    name: str
    expression: Expression
    merged: bool = False


@dataclass(frozen=True)
class SourceRows:
    """What FROM gives: columns of single rows, never shown as they are.

    `positions` says whether the columns stand in SQL's own order; those of a table do not, since
    a policy lists the columns it likes in the order it likes.
    """

    columns: tuple[VisibleColumn, ...]
    protected: bool
    joins: tuple[Join, ...] = ()
    predicate: Expression = TRUE
    positions: bool = False


@dataclass(frozen=True)
class AggregatedRows:
    """What an aggregating query gives: its selects, whose outputs have names."""

    selects: tuple[Select, ...]
    table: str = ""


def fold_identifier(identifier: exp.Expr | None) -> str:
    """An identifier as PostgreSQL reads it: as written if quoted, else in small letters."""
    if identifier is None:
        return ""
    return str(identifier.name if identifier.args.get("quoted") else identifier.name.lower())


def matches_name(identifier: exp.Expr, name: str) -> bool:
    """Whether an identifier in the text means this column: exactly if quoted, else in any case."""
    if identifier.args.get("quoted"):
        return bool(identifier.name == name)
    return bool(identifier.name.lower() == name.lower())


def closest(identifier: exp.Expr, found: list[VisibleColumn]) -> list[VisibleColumn]:
    """Of several columns whose names differ only in case, the one PostgreSQL would take."""
    for spelling in (identifier.name.lower(), identifier.name):
        exact = [each for each in found if each.name == spelling]
        if exact:
            return exact
    return found


def resolve(node: exp.Column, visible: tuple[VisibleColumn, ...]) -> Expression:
    """The expression that a column's name stands for; an identifier is never one."""
    found = lookup(node, visible)
    if isinstance(found, ColumnRef) and found.column.role is Role.IDENTIFIER:
        raise Refusal(node, f"{node.name} is an identifier, and those are never used in a query")
    return found


def lookup(node: exp.Column, visible: tuple[VisibleColumn, ...]) -> Expression:
    """What a column's name stands for, identifiers too."""
    only(node, frozenset({"this", "table", "db"}))
    if isinstance(node.this, exp.Star):
        raise Refusal(node, "single rows are not shown; ask for an aggregate")
    return find_column(node, node.this, visible, fold_identifier(node.args.get("table")))


def find_column(
    node: exp.Expr, identifier: exp.Expr, visible: tuple[VisibleColumn, ...], table: str = ""
) -> Expression:
    """The one visible column of a name; `node` is what a refusal points at."""
    reachable = [each for each in visible if (each.table == table if table else not each.merged)]
    found = closest(identifier, [each for each in reachable if matches_name(identifier, each.name)])
    if not found:
        raise Refusal(node, unknown_column(identifier, visible, table))
    if len({each.expression for each in found}) > 1:
        raise Refusal(node, f"there are several columns {identifier.name} here; say whose")
    _require_type(node, found[0].expression)
    return found[0].expression


def _require_type(node: exp.Expr, expression: Expression) -> None:
    """Refuse a column whose type the policy does not tell; an identifier is refused as one."""
    if not isinstance(expression, ColumnRef) or expression.column.type is not None:
        return
    if expression.column.role is not Role.IDENTIFIER:
        name = expression.column.name
        raise Refusal(node, f"the type of {name} is not known; declare `type` for it in the policy")


def read_condition(node: exp.Expr, visible: tuple[VisibleColumn, ...]) -> Expression:
    """A condition on what is visible."""
    expression = translate(node, NameReaders(lambda column: resolve(column, visible)))
    return condition(node, expression)


def condition(node: exp.Expr, expression: Expression) -> Expression:
    """The expression, which stands where a condition is needed."""
    try:
        return make.boolean(expression)
    except Mismatch as mismatch:
        raise Refusal(node, str(mismatch)) from None


def unknown_column(identifier: exp.Expr, visible: tuple[VisibleColumn, ...], table: str) -> str:
    """That there is no such column, with what may have been meant."""
    reason = f"there is no column {table}{'.' if table else ''}{identifier.name}"
    elsewhere = [each for each in visible if matches_name(identifier, each.name) and each.table]
    if elsewhere:
        return f"{reason}; did you mean {elsewhere[0].table}.{elsewhere[0].name}?"
    close = get_close_matches(identifier.name, [each.name for each in visible], n=1)
    if close:
        return f'{reason}; did you mean "{close[0]}"?'
    if identifier.args.get("quoted"):
        return f"{reason}; text stands in single quotation marks"
    return reason


@dataclass
class Tables:
    """The tables a statement may name: the protected one, public ones, and its own WITH."""

    policy: Policy
    sql: str = ""
    protected_name: str | None = None
    aliases: int = 0
    views: list[dict[str, SourceRows | AggregatedRows]] = field(default_factory=list)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A query of its own, whose WITH is forgotten after it."""
        self.views.append({})
        try:
            yield
        finally:
            self.views.pop()

    def view(self, name: str) -> SourceRows | AggregatedRows | None:
        """The nearest WITH query of this name; its joined tables are met anew each time."""
        found = next((each[name] for each in reversed(self.views) if name in each), None)
        return rename_aliases(found, self._fresh(found)) if isinstance(found, SourceRows) else found

    def _fresh(self, rows: SourceRows) -> dict[str, str]:
        start = self.aliases
        self.aliases += len(rows.joins)
        return {join.alias: f"j{start + i}" for i, join in enumerate(rows.joins, 1)}

    def public(self, identifier: exp.Expr) -> PublicTable | None:
        """The public table that the identifier names."""
        return next(
            (t for t in self.policy.public_tables if matches_name(identifier, t.name)), None
        )

    def rows(self, node: exp.Table) -> SourceRows | AggregatedRows:
        """What a table in FROM gives, under its alias."""
        only(node, frozenset({"this", "db", "alias"}))
        if not isinstance(node.this, exp.Identifier):
            raise Refusal(node, "functions that make tables are not accepted")
        if self.sql[node.this.meta.get("start", 0) :].startswith("'"):
            raise Refusal(node, "files are not read; a table's name has no single quotation marks")
        alias = alias_of(node) or fold_identifier(node.this)
        view = self.view(fold_identifier(node.this)) if node.args.get("db") is None else None
        if view is not None:
            return rename_columns(view, alias, node)
        public = self.public(node.this)
        found = self._public_rows(public) if public else self._named_protected_rows(node)
        return rename_columns(found, alias, node)

    def _public_rows(self, public: PublicTable) -> SourceRows:
        self.aliases += 1
        alias = f"j{self.aliases}"
        columns = tuple(refer(column, alias) for column in public.columns if column.type)
        return SourceRows(columns, protected=False, joins=(Join(public.name, alias, public.key),))

    def _named_protected_rows(self, node: exp.Table) -> SourceRows:
        name = node.name.lower()
        if self.protected_name not in (None, name):
            raise Refusal(node, f"there is one protected table, and {node.name} is another name")
        self.protected_name = name
        return self.protected_rows()

    def protected_rows(self) -> SourceRows:
        """The protected table's own columns."""
        return SourceRows(tuple(map(refer, self.policy.columns)), protected=True)


def refer(column: Column, alias: str = "") -> VisibleColumn:
    """A column by its own name; one whose type is not known is refused where it is used."""
    return VisibleColumn(
        alias, column.name, ColumnRef(column, column.type or ColumnType.TEXT, alias)
    )


def rename_aliases(rows: SourceRows, aliases: Mapping[str, str]) -> SourceRows:
    """The same rows with other aliases for the joined tables."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.alias in aliases:
            return replace(node, alias=aliases[node.alias])
        return None

    return replace(
        rows,
        columns=tuple(
            replace(c, expression=substitute(c.expression, change)) for c in rows.columns
        ),
        joins=tuple(replace(join, alias=aliases[join.alias]) for join in rows.joins),
        predicate=substitute(rows.predicate, change),
    )


def alias_of(node: exp.Expr) -> str:
    """The name a table or derived table is given, as PostgreSQL reads it."""
    given = node.args.get("alias")
    return fold_identifier(given.this) if given is not None else ""


def rename_columns(
    found: SourceRows | AggregatedRows, alias: str, node: exp.Expr
) -> SourceRows | AggregatedRows:
    """The same columns under another table's name, and new names if the alias lists them."""
    given = node.args.get("alias")
    if given is not None:
        only(given, frozenset({"this", "columns"}))
    names = [fold_identifier(each) for each in given.columns] if given is not None else []
    if isinstance(found, AggregatedRows):
        selects = tuple(_rename_outputs(select, names, node) for select in found.selects)
        return AggregatedRows(selects, alias)
    if names and not found.positions:
        raise Refusal(node, "name the columns in a SELECT: a table's own order is not known here")
    columns = tuple(
        VisibleColumn(alias, name, each.expression, each.merged)
        for name, each in zip(_column_names(names, found.columns, node), found.columns, strict=True)
    )
    return replace(found, columns=columns)


def _rename_outputs(select: Select, names: list[str], node: exp.Expr) -> Select:
    listed = _column_names(names, select.outputs, node)
    shown = (each.expression for each in select.outputs)
    return replace(select, outputs=tuple(map(Output, listed, shown)))


def _column_names(
    names: list[str], columns: tuple[VisibleColumn, ...] | tuple[Output, ...], node: exp.Expr
) -> list[str]:
    """The new names, and the old ones of the columns after those."""
    if len(names) > len(columns):
        raise Refusal(node, "more column names than columns")
    return [*names, *(each.name for each in columns[len(names) :])]


def shown_name(item: exp.Expr) -> str:
    """The name of a column of SELECT; PostgreSQL names one that has none after its function."""
    if isinstance(item, exp.Alias):
        return fold_identifier(item.args["alias"])
    if isinstance(item, exp.Column):
        return str(item.name)
    inner = item.this if isinstance(item, exp.Filter | exp.WithinGroup) else item
    return inner.sql_name().lower() if isinstance(inner, exp.Func) else "?column?"


def stars(node: exp.Expr, visible: tuple[VisibleColumn, ...]) -> Iterator[VisibleColumn] | None:
    """The columns that `*` or `t.*` stands for, or None for anything else."""
    if isinstance(node, exp.Star):
        only(node, frozenset())
        return (each for each in visible if not each.merged)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        only(node.this, frozenset())
        table = fold_identifier(node.args["table"])
        return (each for each in visible if each.table == table)
    return None
