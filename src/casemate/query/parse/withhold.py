"""Withhold rows: the text of a statement changed so that it shows all of its rows but some.

Each aggregating SELECT of the text is a site. Its rows are told apart by the values of its keys,
and a condition NOT (...) on these is added to its own HAVING; the rest of the text stays as it is.
The text that comes out is read again: it must ask exactly what the old one asked, with another
HAVING, and that must let through the rows that are not withheld and no others.

A row is withheld with all of its columns; a column can be left out of all rows. A key that is NULL
because its grouping set is without it looks like one that is NULL in the table, so two rows that
look the same go together.

Parts of the text are taken as they are written, so that a database that compares the text of
expressions finds in HAVING what it has seen in GROUP BY. Which keys a further condition of HAVING
hides is read off its form, NOT (a = 1 AND b = 2 OR ...); any other form counts as hiding something
else.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from casemate.errors import Unsupported
from casemate.query.aggregate import Select, Statement
from casemate.query.engines.answering import Key
from casemate.query.language.expression import (
    FALSE,
    TRUE,
    Call,
    Expression,
    KeyRef,
    Literal,
    Operation,
    Scalar,
    conjuncts,
)
from casemate.query.language.operations import simplify
from casemate.query.parse.scope import fold_identifier, matches_name
from casemate.query.parse.select import aggregates, grouping_sets, position
from casemate.query.parse.sql import DIALECT, parse_statement, span_of, track
from casemate.table import Policy

# Which keys a further condition of HAVING hides --------------------------------------------------


def hides(added: Sequence[Expression], gone: set[Key], there: set[Key], width: int) -> bool:
    """Whether further conditions of HAVING hide these keys, and no others of all there are."""
    if added in ([TRUE], [FALSE]):  # of keys that the grouping set is without
        return gone == (set() if added == [TRUE] else {()})
    found = [_compared_key(term, width) for term in _negated_terms(added)]
    known = [each for each in found if each is not None]
    unequal = {i for _, places in known for i in places}
    return (
        len(known) == len(found)
        and {key for key, _ in known} == gone
        and all(key[i] is not None for key in there for i in unequal)
    )


def _negated_terms(added: Sequence[Expression]) -> tuple[Expression, ...]:
    """The terms of the one condition NOT (... OR ...), or what is there instead."""
    match added:
        case []:
            return ()
        case [Call(Operation.NOT, (Call(Operation.OR, terms),))]:
            return terms
        case [Call(Operation.NOT, terms)]:
            return terms
    return (FALSE,)


def _compared_key(condition: Expression, width: int) -> tuple[Key, frozenset[int]] | None:
    """The only key that satisfies a conjunction of comparisons of all keys with constants.

    With it come the places where NULL would be neither equal nor unequal; None for anything else.
    """
    values: dict[int, Scalar] = {}
    unequal = set()
    for term in conjuncts(condition):
        match term:
            case Call(Operation.IS_NULL, (KeyRef(index),)):
                values[index] = None
            case Call(Operation.EQUAL, (KeyRef(index), Literal(value))):
                values[index] = value
                unequal.add(index)
            case Call(Operation.SAME, (KeyRef(index), Literal(value))):
                values[index] = value
            case _:
                return None
    if set(values) != set(range(width)):
        return None
    return tuple(values[i] for i in range(width)), frozenset(unequal)


# Withholding -------------------------------------------------------------------------------------


SITE_MARK = 4_611_686_018_427_000_000
"""A count that no table reaches: what a site is recognised by when the text is read again."""

OR_ON_NEW_LINE = "\n  OR "
"""Each row that is withheld stands on a line of its own."""


@dataclass(frozen=True)
class ShownRow:
    """A row that a statement shows: its site, and the value of each key there (NULL if without)."""

    site: int
    values: Key


@dataclass(frozen=True)
class SelectSite:
    """An aggregating SELECT: its keys as text, and where the condition of HAVING begins and ends.

    Without a HAVING it begins nowhere (None), and ends where a HAVING would go.
    """

    keys: tuple[str, ...]
    having: int | None
    end: int


@dataclass(frozen=True)
class SelectShape:
    """The site that a select of a statement comes from, and which of its own keys each key is."""

    site: int
    keys: tuple[int | None, ...]

    def key(self, row: ShownRow) -> Key | None:
        """The key of a row in that select; None if it is not one of its rows."""
        if row.site != self.site or len(row.values) != len(self.keys):
            return None
        pairs = list(zip(self.keys, row.values, strict=True))
        if any(i is None and value is not None for i, value in pairs):
            return None
        values = {i: value for i, value in pairs if i is not None}
        return tuple(values[i] for i in sorted(values))


class Withholding:
    """A statement, and the rows of it that can be withheld.

    Unsupported says that its rows cannot be told apart in its text.
    """

    def __init__(self, sql: str, policy: Policy, dialect: str = DIALECT) -> None:
        self._sql, self._policy, self._dialect = sql, policy, dialect
        self.statement = self._read(sql)
        self._sites = list(self._find_sites())
        self._shapes = self._match_selects()

    def row(self, select: Select, key: Key) -> ShownRow:
        """The row in which a cell of a select of this statement is shown."""
        shape = self._shapes[select]
        return ShownRow(shape.site, tuple(None if i is None else key[i] for i in shape.keys))

    def without(self, rows: Collection[ShownRow], present: Collection[ShownRow]) -> str | None:
        """The text without these rows of all that are present; None if none would be left."""
        if set(present) <= set(rows):
            return None
        missing = {
            (row.site, place)
            for row in present
            for place, value in enumerate(row.values)
            if value is None
        }
        conditions: dict[int, str] = {}
        for site in sorted({row.site for row in rows}):
            listed = [self._is(row, missing) for row in rows if row.site == site]
            conditions[site] = f"NOT ({OR_ON_NEW_LINE.join(listed)})"
        text = self._insert_conditions(conditions)
        self._check(text, rows, present)
        return text

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be left out: none where only keys are left, or two have one name."""
        if len(self.statement.selects) != 1 or len(self._sites) != 1:
            return ()
        outputs = self.statement.selects[0].outputs
        names = [each.name for each in outputs]
        shown = [each.name for each in outputs if not isinstance(each.expression, KeyRef)]
        is_clear = len(shown) > 1 and all(names.count(name) == 1 for name in shown)
        return tuple(shown) if is_clear else ()

    def without_column(self, name: str) -> str:
        """The text without one of its columns; Unsupported where it cannot be written."""
        (node,) = (each for each in self._tree().find_all(exp.Select) if aggregates(each))
        old, spans = self.statement.selects[0], [span_of(each) for each in node.expressions]
        place = [each.name for each in old.outputs].index(name)
        if len(spans) != len(old.outputs):
            raise Unsupported("a column of this statement cannot be found in its text", self._sql)
        start = spans[place - 1][1] if place else spans[0][0]
        text = self._sql[:start] + self._sql[spans[place][1] if place else spans[1][0] :]
        read = self._read(text)
        names = [each.name for each in old.outputs if each.name != name]
        if not _asks_less(old, read.selects, names):
            raise Unsupported("this statement cannot be written without the column", self._sql)
        return text

    def _read(self, sql: str) -> Statement:
        return parse_statement(sql, self._policy, self._dialect)

    # What stands where in the text ----------------------------------------------------------------

    def _find_sites(self) -> Iterator[SelectSite]:
        """The sites of the text, in its order."""
        selects = self._tree().find_all(exp.Select)
        for node in sorted(selects, key=lambda each: span_of(each.expressions[0])):
            if aggregates(node):
                yield self._site(node)

    def _tree(self) -> exp.Expr:
        try:
            return track(self._sql, self._dialect)
        except RecursionError:
            raise Unsupported("this statement is nested too deeply", self._sql) from None

    def _site(self, node: exp.Select) -> SelectSite:
        single = (node.args.get(part) for part in ("from_", "where", "group", "having"))
        parts = (*node.expressions, *(node.args.get("joins") or ()), *filter(None, single))
        having = node.args.get("having")
        start = None if having is None else span_of(having.this)[0]
        bare = SelectSite((), start, max(span_of(each)[1] for each in parts))
        keys = []
        for item in grouping_sets(node, lambda each: each)[1]:
            place = self._meant(item, node, bare)
            key = item if place is None else node.expressions[place].unalias()
            keys.append(_operand(self._text(key), key))
        return replace(bare, keys=tuple(dict.fromkeys(keys)))

    def _text(self, node: exp.Expr) -> str:
        """A part as it is written."""
        start, end = span_of(node)
        return self._sql[start:end]

    def _meant(self, item: exp.Expr, node: exp.Select, site: SelectSite) -> int | None:
        """The column of SELECT that a position or a name in GROUP BY means; None for neither."""
        if isinstance(item, exp.Literal):
            return position(item, len(node.expressions), "GROUP BY")
        if not isinstance(item, exp.Column) or item.table:
            return None
        for place, shown in enumerate(node.expressions):
            if isinstance(shown, exp.Alias) and matches_name(
                item.this, fold_identifier(shown.args["alias"])
            ):
                return None if self._is_visible(self._text(item), site) else place
        return None

    def _is_visible(self, name: str, site: SelectSite) -> bool:
        """Whether HAVING can use this name as it stands, which means a column of FROM."""
        try:
            self._read(_with(self._sql, [(site, f"{name} IS NULL")]))
        except Unsupported:
            return False
        return True

    def _insert_conditions(self, conditions: Mapping[int, str]) -> str:
        """The text with a further condition at each of some sites."""
        return _with(self._sql, [(self._sites[i], text) for i, text in conditions.items()])

    # What the parser makes of it ------------------------------------------------------------------

    def _match_selects(self) -> dict[Select, SelectShape]:
        """Where each select comes from: read with a condition at each site that names its keys."""
        marked = {
            number: " OR ".join(
                [f"COUNT(*) <> {SITE_MARK + number}", *(f"{key} IS NULL" for key in site.keys)]
            )
            for number, site in enumerate(self._sites)
        }
        read = self._read(self._insert_conditions({i: f"({text})" for i, text in marked.items()}))
        pairs = zip(self.statement.selects, read.selects, strict=True)
        return {old: self._shape(old, new) for old, new in pairs}

    def _shape(self, old: Select, new: Select) -> SelectShape:
        for term in conjuncts(new.having):
            is_or = isinstance(term, Call) and term.operation is Operation.OR
            first, *keys = term.arguments if isinstance(term, Call) and is_or else (term,)
            number = _marked_site(first)
            if number is not None and number < len(self._sites):
                shape = SelectShape(number, tuple(map(_tested_key, keys)))
                if {i for i in shape.keys if i is not None} == set(range(len(old.keys))):
                    return shape
        raise Unsupported("the keys of this statement cannot be told apart", self._sql)

    def _is(self, row: ShownRow, missing: Collection[tuple[int, int]]) -> str:
        """That a row is this one; where a key may be NULL, the comparison must not be."""
        parts = []
        keys = self._sites[row.site].keys
        for place, (key, value) in enumerate(zip(keys, row.values, strict=True)):
            if value is None:
                parts.append(f"{key} IS NULL")
            elif (row.site, place) in missing:
                parts.append(same(key, constant(value, self._dialect), self._dialect))
            else:
                parts.append(f"{key} = {constant(value, self._dialect)}")
        return " AND ".join(parts) or "TRUE"

    def _check(self, text: str, rows: Collection[ShownRow], present: Iterable[ShownRow]) -> None:
        """Read the new text: nothing but HAVING has changed, and that lets the right rows pass."""
        new, selects = self._read(text), self.statement.selects
        asked = [replace(select, having=TRUE) for select in new.selects]
        if asked != [replace(select, having=TRUE) for select in selects]:
            raise Unsupported("this statement cannot be written with another HAVING", self._sql)
        for before, after in zip(selects, new.selects, strict=True):
            shape, old = self._shapes[before], conjuncts(before.having)
            added = [simplify(term) for term in conjuncts(after.having) if term not in old]
            gone = {key for row in rows if (key := shape.key(row)) is not None}
            there = {key for row in present if (key := shape.key(row)) is not None}
            if not hides(added, gone, there, len(before.keys)):
                raise Unsupported("the rows of this statement cannot be told apart", self._sql)


def _asks_less(old: Select, new: Sequence[Select], names: Sequence[str]) -> bool:
    """Whether the one new select shows columns of these names, of the same groups and numbers."""
    return (
        len(new) == 1
        and [each.name for each in new[0].outputs] == list(names)
        and (new[0].keys, new[0].predicate, new[0].joins) == (old.keys, old.predicate, old.joins)
        and set(new[0].aggregates) <= set(old.aggregates)
    )


def _operand(text: str, key: exp.Expr) -> str:
    """A key as an operand of a comparison."""
    closed = isinstance(key, exp.Column | exp.Func) and not isinstance(key, exp.Binary | exp.Cast)
    return text if closed else f"({text})"


def _with(sql: str, conditions: Iterable[tuple[SelectSite, str]]) -> str:
    """The text with each condition added to the HAVING of its site, the last site first."""
    for site, condition in sorted(conditions, key=lambda pair: -pair[0].end):
        before, after = sql[: site.end], sql[site.end :]
        if site.having is None:
            sql = f"{before} HAVING {condition}{after}"
        else:
            sql = f"{before[: site.having]}({before[site.having :]}) AND {condition}{after}"
    return sql


def _marked_site(term: Expression) -> int | None:
    """The number of the site that a condition marks."""
    match term:
        case Call(Operation.DIFFERENT, (_, Literal(int(value)))) if value >= SITE_MARK:
            return value - SITE_MARK
    return None


def _tested_key(term: Expression) -> int | None:
    """The key that a condition IS NULL is about; None where the grouping set is without it."""
    operand = term.arguments[0] if isinstance(term, Call) else None
    return operand.index if isinstance(operand, KeyRef) else None


def same(left: str, right: str, dialect: str) -> str:
    """That two values are equal or both NULL, as a dialect writes it.

    >>> same("a", "1", "postgres"), same("a", "1", "mysql")
    ('a IS NOT DISTINCT FROM 1', 'a <=> 1')
    """
    sides = exp.var("casemate_left"), exp.var("casemate_right")
    written = exp.NullSafeEQ(this=sides[0], expression=sides[1]).sql(dialect=dialect)
    return written.replace("casemate_left", left).replace("casemate_right", right)


def constant(value: Scalar, dialect: str) -> str:
    """The value of a key as a constant of a dialect."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unsupported("a key that is not a number cannot be written as a constant")
        return repr(value)
    if isinstance(value, int | Decimal):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, date):
        moment = isinstance(value, datetime)
        written = exp.Literal.string(value.isoformat(" ") if moment else value.isoformat())  # type: ignore[call-arg]  # a datetime takes a separator
        return exp.cast(written, "timestamp" if moment else "date").sql(dialect=dialect)
    return exp.Literal.string(str(value)).sql(dialect=dialect)
