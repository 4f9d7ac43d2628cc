"""Statements that show single rows: what of each, of which rows, and in what order.

No such statement is answered. A log may hold one all the same, and then it is the loudest thing in
it: `parse_projection` says which columns it shows as they are. What the language does not know is
left out and said to be unread, never guessed: a log is read for what it has given away already.

GROUP BY of a value and lists of values (array_agg, string_agg, json_agg) are rows written in
another way: once each, or with how often.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from casemate.errors import Unsupported
from casemate.query.aggregate import Ordering, Output, Projection
from casemate.query.language.expression import (
    TRUE,
    ColumnRef,
    Expression,
    Literal,
    all_of,
    present,
    private_columns,
)
from casemate.query.parse.functions import is_aggregate
from casemate.query.parse.scope import (
    SourceRows,
    Tables,
    VisibleColumn,
    condition,
    fold_identifier,
    lookup,
    matches_name,
    rename_aliases,
    shown_name,
    stars,
)
from casemate.query.parse.select import (
    grouped_item,
    grouping_sets,
    read_from,
    read_order,
    read_views,
    row_limit,
)
from casemate.query.parse.sql import DIALECT, parse_tokens, single_query, tokens_of
from casemate.query.parse.translate import NameReaders, Refusal, translate
from casemate.table import ColumnType, Policy

CLAUSES = frozenset({"expressions", "from_", "joins", "where", "group", "distinct", "order"})
HARMLESS = frozenset({"limit", "with_", "locks", "windows", "hint"})
"""Clauses that are read elsewhere, or change nothing in what is shown."""

LISTS = (exp.ArrayAgg, exp.GroupConcat, exp.JSONArrayAgg, exp.JSONObjectAgg, exp.List)
LIST_CALLS = frozenset({"array_agg", "json_agg", "jsonb_agg", "jsonb_object_agg", "group_concat"})
"""Aggregates that are a list of all values."""

STRUCTURES = (exp.Tuple, exp.Paren, exp.ArrayToString)
STRUCTURE_CALLS = frozenset(
    f"{json}{call}"
    for json in ("json", "jsonb")
    for call in ("_build_object", "_build_array", "_strip_nulls", "_pretty")
) | {"row_to_json", "to_json", "to_jsonb", "row", "array_to_json"}
"""What only puts values together."""

UNREAD = Literal(None, ColumnType.TEXT)
"""Stands for an output that is not read, so that positions in ORDER BY still count."""


def parse_projection(sql: str, policy: Policy, dialect: str = DIALECT) -> Projection | None:
    """The rows of the protected table that a statement shows; None where it is no such thing."""
    try:
        tokens = tokens_of(sql, dialect)
        tree = single_query(sql, tokens, parse_tokens(sql, tokens, dialect))
        return _read(tree, Tables(policy, sql))
    except (Unsupported, Refusal, RecursionError):
        return None


def _read(node: exp.Expr, tables: Tables) -> Projection | None:
    node = node.unnest()
    if isinstance(node, exp.SetOperation):  # a row does not say which part it comes from
        parts = (_read(each, tables) for each in (node.this, node.expression))
        found = next((each for each in parts if each is not None), None)
        return None if found is None else replace(found, partial=True)
    if not isinstance(node, exp.Select) or node.args.get("into"):
        return None
    with tables.scope():
        read_views(node, tables)
        source = read_from(node, tables)
    if not isinstance(source, SourceRows) or not source.protected:
        return None
    names = {join.alias: f"j{i}" for i, join in enumerate(source.joins, 1)}
    return _Reading(node, rename_aliases(source, names)).projection()


@dataclass
class _Reading:
    """One SELECT over rows, while it is read."""

    node: exp.Select
    source: SourceRows
    unread: set[str] = field(default_factory=set)  # private columns in what is not read
    partial: bool = False

    def projection(self) -> Projection | None:
        """The rows that it shows; None for groups that show no value as it is."""
        others = {part for part, value in self.node.args.items() if value} - CLAUSES - HARMLESS
        distinct = self.node.args.get("distinct")
        self.partial = bool(others) or (distinct is not None and bool(distinct.args.get("on")))
        where = self.node.args.get("where")
        predicate = TRUE if where is None else self._condition(where.this)
        grouped = self.node.args.get("group") or any(map(_is_summary, self.node.expressions))
        found = self._groups() if grouped else self._rows()
        if grouped and not any(map(_is_private, found.outputs)):
            return None
        single = grouped and not self.node.args.get("group")  # LIMIT leaves it whole
        return replace(
            found,
            predicate=all_of(self.source.predicate, predicate, found.predicate),
            joins=self.source.joins,
            once=found.once or distinct is not None,
            limit=None if single else self._limit(),
            partial=self.partial,
            unread=frozenset(self.unread),
        )

    def _condition(self, node: exp.Expr) -> Expression:
        """A condition, or TRUE for one that is not read, of which only some rows are shown."""
        try:
            return condition(node, translate(node, self._names))
        except Refusal:
            self.partial = True
            return TRUE

    def _limit(self) -> int | None:
        try:
            return row_limit(self.node)
        except Refusal:
            self.partial = True
            return None

    @property
    def _names(self) -> NameReaders:
        """Names of columns, identifiers among them: who shows one says whose a row is."""
        return NameReaders(lambda column: lookup(column, self.source.columns))

    # Single rows ------------------------------------------------------------------------------

    def _rows(self) -> Projection:
        listed = [each for item in self.node.expressions for each in self._outputs(item)]
        order = self._order(self.node, listed)
        return Projection(
            tuple(each for each in listed if each.expression is not UNREAD), order=order
        )

    def _outputs(self, item: exp.Expr) -> Iterator[Output]:
        """What one item of SELECT shows of a row."""
        inner = item.unalias()
        whole = self._whole_row(inner)
        if whole is not None:
            yield from (Output(each.name, each.expression) for each in whole)
            return
        if _is_structure(inner):
            for part in _arguments(inner):
                yield from self._outputs(part)
            return
        yield Output(shown_name(item), self._expression(inner))

    def _expression(self, node: exp.Expr) -> Expression:
        """What an expression means, or `UNREAD`."""
        try:
            return translate(node, self._names)
        except Refusal:
            if not self._is_no_column(node):
                self._leave(node)
            return UNREAD

    def _is_no_column(self, node: exp.Expr) -> bool:
        """Whether it is a name that no column has: that shows nothing, and is a slip."""
        names = {each.name.lower() for each in self.source.columns}
        return isinstance(node, exp.Column) and node.name.lower() not in names

    def _leave(self, node: exp.Expr) -> None:
        """Note which private columns stand in something that is not read."""
        for column in node.find_all(exp.Column):
            try:
                self.unread |= private_columns(lookup(column, self.source.columns))
            except Refusal:  # the name of a table, or of something unknown
                self._leave_everything()

    def _whole_row(self, node: exp.Expr) -> tuple[VisibleColumn, ...] | None:
        """All columns, where the node is a star or the name of a table."""
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            return self._whole_row(node.this.unnest())
        expanded = stars(node, self.source.columns)
        if expanded is not None:
            return tuple(expanded)
        if not isinstance(node, exp.Column) or node.table:
            return None
        if any(matches_name(node.this, each.name) for each in self.source.columns):
            return None
        name = fold_identifier(node.this)
        found = tuple(each for each in self.source.columns if each.table == name)
        return found or None

    def _order(self, node: exp.Expr, outputs: list[Output]) -> tuple[Ordering, ...]:
        """ORDER BY; one that is not read may say anything, and leaves open whom LIMIT shows."""
        try:
            order = read_order(node, outputs, lambda each: translate(each, self._names))
        except Refusal:
            order = (Ordering(UNREAD),)
        if not any(each.expression is UNREAD for each in order):
            return order
        self._leave(node.args["order"])
        self.partial |= self.node.args.get("limit") is not None
        return ()

    # Groups and lists -------------------------------------------------------------------------

    def _groups(self) -> Projection:
        """Keys that are values, with or without how often, and lists of values."""
        sets, keys = grouping_sets(self.node, self._key)
        self.partial |= len(sets) > 1  # a missing key may belong to another set
        outputs: list[Output] = []
        lists: list[_ValueList] = []
        counted = False
        for item in self.node.expressions:
            inner = item.unalias()
            found = self._list(inner)
            if found is not None:
                lists.append(found)
            elif isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star | exp.Literal):
                counted = True
            elif _is_summary(inner):
                self._leave_everything()  # of a group that a private key may choose
            else:
                outputs += self._outputs(item)
        shown = [each for each in outputs if each.expression is not UNREAD]
        labelled = set(keys) <= {each.expression for each in shown}
        if not labelled or len(lists) > 1:
            self._leave_everything()  # what else says which values belong together
            lists = [replace(each, order=()) for each in lists]
        if self.node.args.get("order"):
            self._leave(self.node.args["order"])
        return self._with_lists(shown, lists, counted)

    def _key(self, item: exp.Expr) -> Expression:
        return translate(grouped_item(item, self.node, self.source), self._names)

    def _leave_everything(self) -> None:
        self.unread |= private_columns(*(each.expression for each in self.source.columns))

    def _with_lists(
        self, shown: list[Output], lists: list["_ValueList"], counted: bool
    ) -> Projection:
        """Rows of the keys, each with what the lists have of it.

        Of several lists nothing says which places belong together, so only private values are
        taken of them.
        """
        alone = lists[0] if len(lists) == 1 else None
        if alone is None and any(each.predicate != TRUE for each in lists):
            self.partial = True
        for each in lists:
            shown += each.outputs if alone else [o for o in each.outputs if _is_private(o)]
        return Projection(
            tuple(shown),
            predicate=TRUE if alone is None else alone.predicate,
            order=() if alone is None else alone.order,
            once=any(each.once for each in lists) or not (lists or counted),
        )

    def _list(self, node: exp.Expr) -> "_ValueList | None":
        """A list of values, perhaps filtered, sorted, or each of them once."""
        filtered: Expression = TRUE
        while _is_structure(node) and len(list(_arguments(node))) == 1:
            (node,) = _arguments(node)
        if isinstance(node, exp.Filter):
            filtered, node = self._condition(node.expression.this), node.this
        if not _is_list(node):
            return None
        order: tuple[Ordering, ...] = ()
        once = False
        items = list(_arguments(node))
        if len(items) == 1 and isinstance(items[0], exp.Limit):
            self.partial, items = True, [items[0].this]
        if items and isinstance(items[-1], exp.Order):
            sorting = exp.Order(expressions=items[-1].expressions)
            order = self._order(exp.Select(order=sorting), [])
            items = [*items[:-1], items[-1].this]
        if len(items) == 1 and isinstance(items[0], exp.Distinct):
            once, items = True, items[0].expressions
        outputs = [each for item in items for each in self._outputs(_without_text(item, node))]
        read = [each for each in outputs if each.expression is not UNREAD]
        if isinstance(node, exp.GroupConcat):  # which leaves out what is missing
            filtered = all_of(filtered, *(present(each.expression) for each in read))
        return _ValueList(read, filtered, order, once)


@dataclass(frozen=True)
class _ValueList:
    """What a list shows of each of its rows, and of which."""

    outputs: list[Output]
    predicate: Expression
    order: tuple[Ordering, ...]
    once: bool


def _is_private(output: Output) -> bool:
    return isinstance(output.expression, ColumnRef) and output.expression.private


def _is_summary(node: exp.Expr) -> bool:
    """Whether a node makes one value of many rows, and is no window over them."""
    lists = any(_is_list(each) for each in node.walk())
    return (lists or is_aggregate(node)) and node.find(exp.Window) is None


def _is_list(node: exp.Expr) -> bool:
    called = isinstance(node, exp.Anonymous) and node.name.lower() in LIST_CALLS
    return called or isinstance(node, LISTS)


def _is_structure(node: exp.Expr) -> bool:
    called = isinstance(node, exp.Anonymous) and node.name.lower() in STRUCTURE_CALLS
    return called or isinstance(node, STRUCTURES)


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """The values that a list or a structure is made of; its constants are names and separators."""
    given = [node.this] if isinstance(node.this, exp.Expr) else []
    yield from (each for each in (*given, *node.expressions) if not isinstance(each, exp.Literal))


def _without_text(item: exp.Expr, around: exp.Expr) -> exp.Expr:
    """A value of string_agg, which takes texts, without its cast to one."""
    is_text = isinstance(item, exp.Cast) and item.to.is_type(*exp.DataType.TEXT_TYPES)
    return item.this if is_text and isinstance(around, exp.GroupConcat) else item
