"""Random policies over the columns of `world.py`, and predicates on the boundaries of their cells.

Bounds may cut data off and values may be missing from a policy, so that clamping and the reserved
cell are met; the source is always the same.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from query import world

from casemate.query import Aggregate, Function
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.query.snapping.histograms import as_declared
from casemate.table import Attribute, AttributeKind, Column, ColumnType, Policy, Role
from casemate.table.sources import Source

bins = st.integers(1, 9)


def bounded(name: str, kind: ColumnType, places: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    ends = st.lists(places, min_size=2, max_size=2, unique=True).map(sorted)
    return st.builds(
        lambda ends, bins: Column(name, type=kind, low=ends[0], high=ends[1], bins=bins), ends, bins
    )


def listed(name: str, kind: ColumnType, values: list[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(st.sampled_from(values), min_size=1, unique=True).map(tuple)
    return st.builds(lambda values: Column(name, type=kind, values=values), some)


tenths = st.integers(-40, 40).map(lambda each: Decimal(each).scaleb(-1))
columns = st.tuples(
    bounded("age", ColumnType.INTEGER, st.integers(-5, 100)),
    bounded("weight", ColumnType.INTEGER, st.integers(0, 9)),
    bounded("Height", ColumnType.DECIMAL, tenths),
    bounded("score", ColumnType.DOUBLE, tenths),
    listed("sex", ColumnType.TEXT, ["f", "m", "x", "never there"]),
    listed("note", ColumnType.TEXT, world.NOTES),
    st.just(Column("member", type=ColumnType.BOOLEAN)),
    bounded("born", ColumnType.DATE, st.dates(date(2019, 12, 1), date(2022, 3, 1))),
    bounded(
        "seen",
        ColumnType.TIMESTAMP,
        st.integers(0, 400_000).map(lambda each: datetime(2020, 2, 28) + timedelta(minutes=each)),
    ),
    listed("area", ColumnType.INTEGER, [1, 2, 3, 4]),
)
policies = st.builds(
    lambda columns: Policy(
        "", (Column("id", Role.IDENTIFIER, ColumnType.INTEGER), *columns), key="id"
    ),
    columns,
)


def written(value: Any) -> str:
    """A constant in SQL."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float | Decimal):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def quoted(attribute: Attribute) -> str:
    return f'"{attribute.name}"'


def on_boundaries(attribute: Attribute) -> st.SearchStrategy[str]:
    """Conditions on one attribute that are constant on each of its cells."""
    name = quoted(attribute)
    missing = st.sampled_from([f"{name} IS NULL", f"{name} IS NOT NULL"])
    if attribute.type is ColumnType.BOOLEAN:
        return missing | st.sampled_from([name, f"NOT {name}", f"{name} IS NOT TRUE"])
    if attribute.kind is AttributeKind.VALUES:
        values = st.lists(st.sampled_from(attribute.points).map(written), min_size=1, max_size=3)
        kept = st.builds(f"{name} {{}} ({{}})".format, IN, values.map(", ".join))
        single = st.sampled_from(attribute.points).map(written)
        return missing | kept | st.builds(f"{name} {{}} {{}}".format, SAME, single)
    if not attribute.points:
        return missing
    limits = st.sampled_from(attribute.points).map(written)
    return missing | st.builds(f"{name} {{}} {{}}".format, st.sampled_from([">=", "<"]), limits)


IN = st.sampled_from(["IN", "NOT IN"])
SAME = st.sampled_from(["=", "<>", "IS DISTINCT FROM"])


def anywhere(attribute: Attribute) -> st.SearchStrategy[str]:
    """Comparisons of a number or date with constants in and around its range."""
    name = quoted(attribute)
    low, high = attribute.edges[0], attribute.edges[-1]
    limits = ANY[attribute.type](low, high).map(written)
    return st.builds(f"{name} {{}} {{}}".format, st.sampled_from(COMPARISONS), limits)


COMPARISONS = ["<", "<=", ">", ">=", "=", "<>", "IS NOT DISTINCT FROM"]
ANY: dict[ColumnType, Any] = {
    ColumnType.INTEGER: lambda low, high: st.integers(low - 2, high + 2),
    ColumnType.DECIMAL: lambda *_: st.integers(-450, 450).map(lambda n: Decimal(n).scaleb(-2)),
    ColumnType.DOUBLE: lambda *_: st.integers(-45, 45).map(lambda n: Decimal(n).scaleb(-1)),
    ColumnType.DATE: lambda low, high: st.dates(low - timedelta(5), high + timedelta(5)),
    ColumnType.TIMESTAMP: st.datetimes,
}


def combined(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def several(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        parts = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            parts.map(lambda parts: "(" + " AND ".join(parts) + ")"),
            parts.map(lambda parts: "(" + " OR ".join(parts) + ")"),
            inner.map(lambda part: f"(NOT {part})"),
        )

    return st.recursive(atoms, several, max_leaves=4)


def counting(predicate: str, policy: Policy) -> Aggregate:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {predicate}", policy)
    return aggregate


def truly(aggregate: Aggregate, source: Source) -> Any:
    """The engine's answer on the table as its policy declares it."""
    argument = None if aggregate.argument is None else as_declared(aggregate.argument)
    asked = Aggregate(aggregate.function, argument, as_declared(aggregate.predicate))
    found = answers([asked], source)[0][()]
    return 0 if found is None and aggregate.function is Function.SUM else found
