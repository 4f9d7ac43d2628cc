"""Random SQL over the whole accepted fragment, with constants that engines disagree about.

Plain `random`, so that thousands are made in a second. An expression begins with a column and is
changed a few times, mostly within its type; most expressions read one column, because that is what
`ask` accepts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from neighbours.tables import NUMBERS, Column

WHOLE_CONSTANTS = (
    *("0", "1", "2", "-1", "3", "7", "10", "1000003", "4294967296", "9007199254740993"),
    *("9223372036854775807", "-9223372036854775807", "4611686018427387904"),
)
DECIMAL_CONSTANTS = (
    *("0.1", "0.5", "2.5", "0.0000001", "0.000000000001", "1.000000000001", "-0.3"),
    *("9223372036854775808", "99999999999999999999999999", "1234567890123456789012345.5"),
    *("1234567890123456789012345678", "0.3333333333333333333333333333"),
)
DOUBLE_CONSTANTS = (
    *("CAST(0.1 AS DOUBLE PRECISION)", "CAST('1e300' AS DOUBLE PRECISION)", "1e-7", "1e15"),
    *("CAST('1e-300' AS DOUBLE PRECISION)", "CAST('-5e-324' AS DOUBLE PRECISION)", "1e300"),
)
TEXTS = (
    *("'a'", "'ß'", "'SS'", "'İ'", "'ı'", "'i̇'", "'ﬁ'", "'Σ'", "'ς'", "'σ'", "'é'", "'e\u0301'"),
    *("''", "'1'", "'1e3'", "'%'", "'it''s'", "'\U0001f600'"),
)
PATTERNS = (
    *("'%'", "'a%'", "'_b'", "'%ß%'", "'%SS%'", "'İ%'", "'_'", "'__'", "'%\\%%'", "'%.%'"),
    *("'e_'", "'%1%'", "'%-%'", "''"),
)
ESCAPED = ("LIKE 'a!%%' ESCAPE '!'", "NOT LIKE '%x_' ESCAPE 'x'", "LIKE '%!!%' ESCAPE '!'")
MOMENTS = (
    *("'2024-03-31 02:30:00'", "'2024-02-29'", "'1900-03-01'", "'0001-01-01'", "'9999-12-31'"),
    *("'2016-12-31 23:59:59'", "'1582-10-10'", "'2024-12-30'", "'1999-12-31 23:59:59.999999'"),
)
FIELDS = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute")
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
SHARES = ("0.5", "0", "1", "0.25", "0.1", "0.333333", "0.9")


@dataclass(frozen=True)
class Statement:
    """A statement, and which parts of its shape depend on noised numbers.

    `counts` says that it counts rows by disjoint groups and nothing else; `reads` are the columns.
    """

    sql: str
    kinds: frozenset[str]
    reads: frozenset[str]
    keys: int = 0  # columns that are keys, from the left
    ordered: bool = False  # by something noised
    cut: bool = False  # rows may be left out because of something noised
    counts: bool = False


@dataclass(frozen=True)
class Typed:
    """The text of an expression, and its type."""

    sql: str
    type: str


@dataclass
class Maker:
    """Makes expressions and statements about the columns of one table."""

    rng: Random
    columns: Sequence[Column]
    joined: bool = False
    kinds: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)

    # Expressions --------------------------------------------------------------------------------

    def column(self, types: Sequence[str] = (), by_value: bool | None = None) -> Column | None:
        fitting = [
            each
            for each in self.columns
            if (not types or each.type in types) and by_value in (None, each.by_value)
        ]
        return self.rng.choice(fitting) if fitting else None

    def read(self, column: Column) -> Typed:
        self.reads.add(column.name)
        return Typed(column.sql, column.type)

    def changed(self, about: Column, depth: int) -> Typed:
        """A column, changed so many times."""
        found = self.read(about)
        for _ in range(depth):
            found = self.step(found, about)
        return found

    def step(self, x: Typed, about: Column) -> Typed:
        if self.rng.random() < 0.25:
            return self.any_type(x, about)
        if x.type in NUMBERS:
            return self.number(x, about)
        if x.type == "text":
            return self.text(x)
        if x.type == "boolean":
            return self.boolean(x)
        return self.moment(x)

    def any_type(self, x: Typed, about: Column) -> Typed:
        self.kinds.add("choice")
        other = self.constant(x.type, about)
        condition = self.condition_of(x, about)
        made = {
            "case": f"CASE WHEN {condition} THEN {x.sql} ELSE {other} END",
            "null": f"CASE WHEN {condition} THEN {x.sql} END",
            "coalesce": f"COALESCE({x.sql}, {other})",
            "nullif": f"NULLIF({x.sql}, {other})",
            "least": f"LEAST({x.sql}, {other})",
            "greatest": f"GREATEST({x.sql}, {other})",
        }
        return Typed(self.rng.choice(list(made.values())), x.type)

    def number(self, x: Typed, about: Column) -> Typed:
        self.kinds.add("arithmetic")
        c, sign = self.number_constant(x.type, about), self.rng.choice("+-*/%")
        if sign == "%" and x.type == "double":
            sign = "*"
        wider = x.type if sign != "/" or x.type == "integer" else "double"
        choices: list[Callable[[], Typed]] = [
            lambda: Typed(f"({x.sql} {sign} {c})", wider),
            lambda: Typed(f"({x.sql} {sign} {c})", wider),
            lambda: Typed(f"(({x.sql} + {c}) - {c})", x.type),
            lambda: Typed(f"({c} - {x.sql})", x.type),
            lambda: Typed(f"({x.sql} * 0.0000001 * 0.0000001)", self._decimal(x)),
            lambda: Typed(f"(- {x.sql})", x.type),
            lambda: Typed(f"ABS({x.sql})", x.type),
            lambda: Typed(f"ROUND({x.sql}, {self.rng.randint(-2, 3)})", self._decimal(x)),
            lambda: Typed(f"ROUND({x.sql})", self._stepped(x)),
            lambda: Typed(f"{self.rng.choice(['FLOOR', 'CEIL'])}({x.sql})", self._stepped(x)),
            lambda: self.curved(x),
            lambda: self.cast(x),
        ]
        return self.rng.choice(choices)()

    def curved(self, x: Typed) -> Typed:
        self.kinds.add("curved")
        made = [f"SQRT({x.sql})", f"LN({x.sql})", f"EXP({x.sql})", f"POWER({x.sql}, 2)"]
        made += [f"({x.sql} ^ 0.5)", f"(1 / NULLIF({x.sql}, 0))", f"({x.sql} / 0)"]
        return Typed(self.rng.choice(made), "double")

    def _decimal(self, x: Typed) -> str:
        return "decimal" if x.type == "integer" else x.type

    def _stepped(self, x: Typed) -> str:
        return "decimal" if x.type == "decimal" else "double"

    def cast(self, x: Typed) -> Typed:
        self.kinds.add("cast")
        to = {
            "text": ("TEXT", "text"),
            "integer": ("BIGINT", "integer"),
            "double": ("DOUBLE PRECISION", "double"),
            "decimal": (f"NUMERIC(38, {self.rng.choice([0, 2, 12])})", "decimal"),
        }
        name, kind = to[self.rng.choice([each for each in to if each != x.type])]
        return Typed(f"CAST({x.sql} AS {name})", kind)

    def text(self, x: Typed) -> Typed:
        self.kinds.add("text")
        where = f"{self.rng.randint(-1, 3)}, {self.rng.randint(0, 3)}"
        made = [
            Typed(f"LOWER({x.sql})", "text"),
            Typed(f"UPPER({x.sql})", "text"),
            Typed(f"LOWER(UPPER({x.sql}))", "text"),
            Typed(f"SUBSTR({x.sql}, {where})", "text"),
            Typed(f"LENGTH({x.sql})", "integer"),
            Typed(f"CAST({x.sql} AS BIGINT)", "integer"),
            Typed(f"CAST({x.sql} AS NUMERIC(38, 2))", "decimal"),
            Typed(f"CAST({x.sql} AS DOUBLE PRECISION)", "double"),
            Typed(f"CAST({x.sql} AS DATE)", "date"),
            Typed(f"CAST({x.sql} AS BOOLEAN)", "boolean"),
        ]
        return self.rng.choice([*made[:5], *made])

    def boolean(self, x: Typed) -> Typed:
        made = [
            Typed(f"(NOT {x.sql})", "boolean"),
            Typed(f"({x.sql} IS TRUE)", "boolean"),
            Typed(f"CASE WHEN {x.sql} THEN 1 ELSE 0 END", "integer"),
            Typed(f"CASE WHEN {x.sql} THEN 'é' ELSE 'ß' END", "text"),
            Typed(f"CAST({x.sql} AS INTEGER)", "integer"),
            Typed(f"CAST({x.sql} AS TEXT)", "text"),
        ]
        return self.rng.choice(made)

    def moment(self, x: Typed) -> Typed:
        self.kinds.add("time")
        part, unit = self.rng.choice(FIELDS), self.rng.choice(UNITS)
        made = [
            Typed(f"EXTRACT({part} FROM {x.sql})", "decimal"),
            Typed(f"EXTRACT({part} FROM {x.sql})", "decimal"),
            Typed(f"DATE_TRUNC('{unit}', {x.sql})", "timestamp"),
            Typed(f"DATE_PART('{part}', {x.sql})", "double"),
            Typed(f"CAST({x.sql} AS TEXT)", "text"),
            Typed(f"CAST({x.sql} AS DATE)", "date"),
            Typed(f"CAST({x.sql} AS TIMESTAMP)", "timestamp"),
        ]
        return self.rng.choice(made)

    # Constants ----------------------------------------------------------------------------------

    def number_constant(self, kind: str, about: Column) -> str:
        own = [each for each in about.constants if "'" not in each and about.type in NUMBERS]
        pools: list[Sequence[str]] = [own or ("1",), ("1", "2", "3"), WHOLE_CONSTANTS]
        pools += [DECIMAL_CONSTANTS] if kind != "integer" or self.rng.random() < 0.3 else []
        pools += [DOUBLE_CONSTANTS] if kind == "double" or self.rng.random() < 0.1 else []
        return self.rng.choice(list(self.rng.choice(pools)))

    def constant(self, kind: str, about: Column) -> str:
        """A constant of a type, one that the column is about where it has the type."""
        if self.rng.random() < 0.05:
            return "NULL"
        if kind == about.type and self.rng.random() < 0.6:
            return self.rng.choice(about.constants)
        if kind in NUMBERS:
            return self.number_constant(kind, about)
        pools = {"text": TEXTS, "boolean": ("TRUE", "FALSE")}
        return self.rng.choice(pools.get(kind, MOMENTS))

    # Conditions ---------------------------------------------------------------------------------

    def condition_of(self, x: Typed, about: Column) -> str:
        """A condition on one expression."""
        a, b = self.constant(x.type, about), self.constant(x.type, about)
        sign = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        made = [f"{x.sql} {sign} {a}"] * 4
        made += [f"{x.sql} BETWEEN {a} AND {b}", f"{x.sql} IN ({a}, {b})"]
        made += [f"{x.sql} NOT IN ({a}, {b})", f"{x.sql} IS NULL", f"{x.sql} IS NOT NULL"]
        made += [f"{x.sql} IS DISTINCT FROM {a}", f"({x.sql} = {a}) IS NOT TRUE"]
        if x.type == "text":
            made += [f"{x.sql} LIKE {self.rng.choice(PATTERNS)}"] * 3
            made += [f"{x.sql} {self.rng.choice(ESCAPED)}"]
        if x.type == "boolean":
            made += [x.sql, f"NOT {x.sql}"]
        return self.rng.choice(made)

    def condition(self, depth: int = 1) -> str:
        about = self.column()
        assert about is not None, "a table has columns"
        found = self.condition_of(self.changed(about, self.rng.choice([0, 0, 1, 1, 2])), about)
        if depth and self.rng.random() < 0.35:
            found = f"({found}) {self.rng.choice(['AND', 'OR'])} ({self.condition(depth - 1)})"
        return f"NOT ({found})" if self.rng.random() < 0.1 else found

    # Aggregates ---------------------------------------------------------------------------------

    def aggregate(self) -> str:
        made = self.rng.choice(
            [self.count, self.count, self.count_of, self.added, self.added, self.ranked]
        )()
        if self.rng.random() < 0.15:
            self.kinds.add("filter")
            made = f"{made} FILTER (WHERE {self.condition(0)})"
        return made

    def count(self) -> str:
        return "COUNT(*)"

    def count_of(self) -> str:
        self.kinds.add("count of")
        about = self.column()
        assert about is not None, "a table has columns"
        made = self.changed(about, self.rng.randint(0, 2)).sql
        distinct = not about.private and self.rng.random() < 0.3
        return f"COUNT(DISTINCT {made})" if distinct else f"COUNT({made})"

    def added(self) -> str:
        about = self.column(NUMBERS)
        if about is None:
            about = self.column()
            assert about is not None, "a table has columns"
            shown = f"CASE WHEN {self.condition_of(self.read(about), about)} THEN 3 ELSE 0.5 END"
        else:
            shown = self.summand(about)
        name = self.rng.choice(["SUM", "SUM", "AVG"])
        self.kinds.add(name.lower())
        return f"{name}({shown})"

    def summand(self, about: Column) -> str:
        """A number that has bounds where its column has them."""
        found = self.read(about)
        for _ in range(self.rng.randint(0, 2)):
            c = self.number_constant(found.type, about)
            made = [f"({found.sql} {self.rng.choice('+-*')} {c})", f"ABS({found.sql})"]
            made += [f"GREATEST({found.sql}, {c})", f"COALESCE({found.sql}, {c})"]
            made += [f"ROUND({found.sql}, 1)", f"CAST({found.sql} AS DOUBLE PRECISION)"]
            made += [f"CASE WHEN {self.condition_of(found, about)} THEN {found.sql} ELSE {c} END"]
            made += [f"(({found.sql} + {c}) - {c})", f"CAST({found.sql} AS BIGINT)"]
            chosen = self.rng.choice(made)
            found = Typed(chosen, "double" if "DOUBLE" in chosen else found.type)
        return found.sql

    def ranked(self) -> str:
        self.kinds.add("rank")
        about = self.column((*NUMBERS, "date", "timestamp", "text"))
        if about is None:
            return self.count()
        found = self.changed(about, self.rng.choice([0, 0, 0, 1]))
        share = self.rng.choice(SHARES)
        made = [f"MIN({found.sql})", f"MAX({found.sql})"]
        made += [f"PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY {found.sql})"]
        if found.type in NUMBERS:
            made += [f"MEDIAN({found.sql})", f"QUANTILE_CONT({found.sql}, {share})"]
            made += [f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {found.sql})"]
        return self.rng.choice(made)

    def over_aggregates(self, first: str) -> str:
        """Arithmetic over what was aggregated."""
        self.kinds.add("over aggregates")
        made = [f"{first} / COUNT(*)", f"ROUND({first} * 1.5, 2)", f"COALESCE({first}, 0)"]
        made += [f"CASE WHEN COUNT(*) > 3 THEN {first} END", f"{first} + 9223372036854775807"]
        made += [f"{first} / 0", f"SQRT({first})", f"GREATEST({first}, 0)"]
        return self.rng.choice(made)

    # Keys ---------------------------------------------------------------------------------------

    def key(self) -> Typed:
        """What rows are grouped by; the cells of a column by bins are told apart at their ends."""
        about = self.column(by_value=True) if self.rng.random() < 0.85 else self.column()
        about = about or self.column()
        assert about is not None, "a table has columns"
        if about.by_value:
            return self.changed(about, self.rng.choice([0, 1, 1, 2, 2, 3]))
        self.kinds.add("key by bins")
        limit = self.rng.choice(about.constants)
        here, there = self.changed_constant(about), self.changed_constant(about)
        read = self.read(about).sql
        return Typed(f"CASE WHEN {read} < {limit} THEN {here} ELSE {there} END", "decimal")

    def changed_constant(self, about: Column) -> str:
        one = Typed(self.number_constant("decimal", about), "decimal")
        return self.number(one, about).sql if self.rng.random() < 0.5 else one.sql

    def keys(self) -> list[Typed]:
        return [self.key() for _ in range(self.rng.choice([1, 1, 1, 2]))]

    # Statements ---------------------------------------------------------------------------------

    def statement(self) -> Statement:
        """One statement of any shape."""
        self.kinds, self.reads = set(), set()
        if self.rng.random() < 0.06:
            return self.union()
        return self.select()

    def select(self, simple: bool = False) -> Statement:
        keys = self.keys() if self.rng.random() < 0.65 else []
        aggregates = [self.aggregate() for _ in range(self.rng.choice([1, 1, 1, 2]))]
        only_counts = aggregates == ["COUNT(*)"]
        if self.rng.random() < 0.12:
            aggregates[0], only_counts = self.over_aggregates(aggregates[0]), False
        shown = [f"{key.sql} AS k{i}" for i, key in enumerate(keys)]
        shown += [f"{each} AS a{i}" for i, each in enumerate(aggregates)]
        where = f" WHERE {self.condition()}" if self.rng.random() < 0.5 else ""
        source, where = self.source(where)
        grouped, disjoint = self.group_by(keys)
        if "joined" in self.kinds:
            disjoint = False
        tail, ordered, cut = ("", False, False) if simple else self.tail(len(keys))
        return Statement(
            f"SELECT {', '.join(shown)} FROM {source}{where}{grouped}{tail}",
            frozenset(self.kinds),
            frozenset(self.reads),
            len(keys),
            ordered,
            cut,
            only_counts and disjoint and not cut,
        )

    def source(self, where: str) -> tuple[str, str]:
        if not self.joined or self.rng.random() > 0.2:
            return "t", where
        self.kinds.add("joined")
        self.reads.add("town")
        extra = self.rng.choice(
            ["towns.region = 'north'", "towns.factor * 0.1 > 0.5", "towns.region IS NULL"]
        )
        both = f"{where} AND ({extra})" if where else f" WHERE {extra}"
        both = where if self.rng.random() < 0.4 else both
        return "t JOIN towns USING (town)", both

    def group_by(self, keys: Sequence[Typed]) -> tuple[str, bool]:
        """The clause, and whether each row is in one group at most."""
        if not keys:
            return "", True
        self.kinds.add("grouped")
        names = [key.sql for key in keys]
        if self.rng.random() < 0.3:
            names = [str(place) for place in range(1, len(keys) + 1)]
        elif self.rng.random() < 0.3:
            names = [f"k{place}" for place in range(len(keys))]
        listed = ", ".join(names)
        if self.rng.random() < 0.08:
            self.kinds.add("grouping sets")
            several = [f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ())"]
            return f" GROUP BY {self.rng.choice(several)}", False
        return f" GROUP BY {listed}", True

    def tail(self, keys: int) -> tuple[str, bool, bool]:
        """HAVING, ORDER BY and LIMIT; whether rows are ordered, and cut, by noised numbers."""
        having = " HAVING COUNT(*) > 2" if self.rng.random() < 0.06 else ""
        order = ""
        if self.rng.random() < 0.12:
            order = (
                " ORDER BY COUNT(*) DESC" if not keys or self.rng.random() < 0.5 else " ORDER BY 1"
            )
        limit = f" LIMIT {self.rng.randint(1, 4)}" if self.rng.random() < 0.06 else ""
        if having or order or limit:
            self.kinds.add("tail")
        by_noise = "COUNT" in order
        return having + order + limit, by_noise, bool(having or (by_noise and limit))

    def union(self) -> Statement:
        first = replace(self.select(simple=True), counts=False)
        self.kinds.add("union")
        sql = f"{first.sql} UNION ALL {first.sql.replace('COUNT(*)', 'COUNT(1)')}"
        return replace(first, sql=sql, kinds=frozenset(self.kinds))


def statements(
    rng: Random, columns: Sequence[Column], count: int, joined: bool = False
) -> list[Statement]:
    """So many statements about these columns."""
    maker = Maker(rng, columns, joined)
    return [maker.statement() for _ in range(count)]
