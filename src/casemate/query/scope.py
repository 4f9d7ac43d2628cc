"""Names in SQL: which column a name means, case and quotation marks as PostgreSQL reads them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from casemate.query.aggregate import Join, Select
from casemate.query.expression import TRUE, ColumnRef, Expression
from casemate.query.translate import Refusal, only
from casemate.table.schema import Column, Policy, PublicTable, Role


@dataclass(frozen=True)
class Named:
    """A column that a query can see, under the name of the table it comes from."""

    table: str
    name: str
    expression: Expression


@dataclass(frozen=True)
class Rows:
    """What FROM gives: columns of single rows, never shown as they are."""

    columns: tuple[Named, ...]
    protected: bool
    joins: tuple[Join, ...] = ()
    predicate: Expression = TRUE


@dataclass(frozen=True)
class Cells:
    """What an aggregating query gives: its selects, whose outputs have names."""

    selects: tuple[Select, ...]


def spelled(identifier: exp.Expr | str, name: str) -> bool:
    """Whether an identifier in the text means this name: exactly if quoted, else in any case."""
    if isinstance(identifier, exp.Identifier) and identifier.args.get("quoted"):
        return bool(identifier.name == name)
    text = identifier if isinstance(identifier, str) else identifier.name
    return bool(text.lower() == name.lower())


def closest(identifier: exp.Expr, found: list[Named]) -> list[Named]:
    """Of several columns whose names differ only in case, the one PostgreSQL would take."""
    for spelling in (identifier.name.lower(), identifier.name):
        exact = [each for each in found if each.name == spelling]
        if exact:
            return exact
    return found


def resolve(node: exp.Column, visible: tuple[Named, ...]) -> Expression:
    """The expression that a column's name stands for."""
    only(node, frozenset({"this", "table", "db"}))
    if isinstance(node.this, exp.Star):
        raise Refusal(node, "single rows are not shown; ask for an aggregate")
    table = node.args.get("table")
    found = [
        each
        for each in visible
        if spelled(node.this, each.name) and (table is None or spelled(table, each.table))
    ]
    found = closest(node.this, found)
    if not found:
        raise Refusal(node, unknown_column(node, visible))
    if len({each.expression for each in found}) > 1:
        raise Refusal(node, f"the column {node.name} is in several tables; say which")
    return usable(node, found[0].expression)


def usable(node: exp.Expr, expression: Expression) -> Expression:
    """The expression, unless it is an identifier or of a type that is not known."""
    if isinstance(expression, ColumnRef) and expression.column.role is Role.IDENTIFIER:
        raise Refusal(node, f"{node.name} is an identifier, and those are never used in a query")
    return expression


def unknown_column(node: exp.Column, visible: tuple[Named, ...]) -> str:
    """That there is no such column, with what may have been meant."""
    names = [each.name for each in visible]
    reason = f"there is no column {node.name}"
    close = get_close_matches(node.name, names, n=1)
    if close:
        return f'{reason}; did you mean "{close[0]}"?'
    if node.this.args.get("quoted"):
        return f"{reason}; text stands in single quotation marks"
    return reason


@dataclass
class Tables:
    """The tables a statement may name: the protected one, public ones, and its own WITH."""

    policy: Policy
    sql: str = ""
    protected_name: str | None = None
    aliases: int = 0
    views: list[dict[str, Rows | Cells]] = field(default_factory=list)

    def view(self, name: str) -> Rows | Cells | None:
        """The nearest WITH query of this name."""
        return next((each[name] for each in reversed(self.views) if name in each), None)

    def public(self, identifier: exp.Expr) -> PublicTable | None:
        """The public table that the identifier names."""
        return next((t for t in self.policy.public_tables if spelled(identifier, t.name)), None)

    def rows(self, node: exp.Table) -> Rows | Cells:
        """What a table in FROM gives, under its alias."""
        only(node, frozenset({"this", "db", "alias"}))
        if not isinstance(node.this, exp.Identifier):
            raise Refusal(node, "functions that make tables are not accepted")
        if self.sql[node.this.meta.get("start", 0) :].startswith("'"):
            raise Refusal(node, "files are not read; a table's name has no single quotation marks")
        alias = node.alias or node.name
        view = self.view(node.name.lower()) if node.args.get("db") is None else None
        if view is not None:
            return renamed(view, alias, node)
        public = self.public(node.this)
        found = self._public_rows(public) if public else self._protected_rows(node)
        return renamed(found, alias, node)

    def _public_rows(self, public: PublicTable) -> Rows:
        self.aliases += 1
        alias = f"j{self.aliases}"
        columns = tuple(refer(column, alias) for column in public.columns if column.type)
        return Rows(columns, protected=False, joins=(Join(public.name, alias, public.key),))

    def _protected_rows(self, node: exp.Table) -> Rows:
        name = node.name.lower()
        if self.protected_name not in (None, name):
            raise Refusal(node, f"there is one protected table, and {node.name} is another name")
        self.protected_name = name
        return self.protected()

    def protected(self) -> Rows:
        """The protected table's own columns."""
        columns = tuple(refer(column) for column in self.policy.columns if column.type)
        return Rows(columns, protected=True)


def refer(column: Column, alias: str = "") -> Named:
    """A column by its own name; the parser keeps only columns whose type is known."""
    if column.type is None:
        raise ValueError("the type of a column is known once its table has been opened")
    return Named(alias, column.name, ColumnRef(column, column.type, alias))


def renamed(found: Rows | Cells, alias: str, node: exp.Expr) -> Rows | Cells:
    """The same columns under another table's name, and new names if the alias lists them."""
    given = node.args.get("alias")
    if given is not None:
        only(given, frozenset({"this", "columns"}))
    names = [each.name for each in given.columns] if given is not None else []
    if isinstance(found, Cells):
        if names:
            raise Refusal(node, "new column names for an aggregated table are not accepted")
        return found
    if len(names) > len(found.columns):
        raise Refusal(node, "more column names than columns")
    listed = [*names, *(each.name for each in found.columns[len(names) :])]
    columns = tuple(
        Named(alias, name, each.expression)
        for name, each in zip(listed, found.columns, strict=True)
    )
    return Rows(columns, found.protected, found.joins, found.predicate)


def stars(node: exp.Expr, visible: tuple[Named, ...]) -> Iterator[Named] | None:
    """The columns that `*` or `t.*` stands for, or None for anything else."""
    if isinstance(node, exp.Star):
        only(node, frozenset())
        return iter(visible)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        table = node.args["table"]
        return (each for each in visible if spelled(table, each.table))
    return None
