"""Neighbouring tables and the policy they share: columns of every type, and hostile cells in them.

A `World` is drawn from a seed: a few columns out of the catalogue, what is protected and how, where
the table lies, and two tables that differ in one person. The policy is the same text on both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import duckdb

Row = tuple[str, ...]
"""The cells of one row as text; the empty one is missing."""


@dataclass(frozen=True)
class Column:
    """A column: what the policy says of it, cells that it may hold, and constants to ask about.

    `hostile` cells are of its type and yet missing, undeclared or out of bounds; `misfits` are not
    of its type at all. A column `by_value` has one value in each cell of the grid; one `as_text` is
    text in every source.
    """

    name: str
    type: str
    declared: str
    cells: tuple[str, ...]
    hostile: tuple[str, ...]
    misfits: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    by_value: bool = True
    typed: bool = True
    private: bool = True
    as_text: bool = False

    @property
    def sql(self) -> str:
        """Its name as a statement quotes it."""
        doubled = self.name.replace('"', '""')
        return f'"{doubled}"'

    def section(self) -> str:
        """Its section of the policy."""
        escaped = self.name.replace("\\", "\\\\").replace('"', '\\"')
        lines = [f'[columns."{escaped}"]', f'role = "{"private" if self.private else "public"}"']
        lines += [f'type = "{self.type}"'] if self.typed else []
        return "\n".join([*lines, self.declared])


NUMBERS = ("integer", "decimal", "double")
NOT_NUMBERS = ("x", "1,5", "0x10", "١٢", "--", "1e", "true", "2024-01-01")

CATALOGUE = (
    Column(
        *("grade", "integer", "min = 0\nmax = 9", tuple("0123456789")),
        hostile=("", "-1", "10", "9223372036854775807", "-9223372036854775808"),
        misfits=("3.5", "1e300", "nan", "9223372036854775808", *NOT_NUMBERS),
        constants=("7", "0", "9", "3.5"),
    ),
    Column(
        *("huge", "integer"),
        "values = [-9223372036854775807, -1, 0, 3, 4611686018427387904, 9223372036854775807]",
        ("-9223372036854775807", "-1", "0", "3", "4611686018427387904", "9223372036854775807"),
        hostile=("", "5", "-9223372036854775808", "9223372036854775806"),
        misfits=("0.5", "1e30", "inf", *NOT_NUMBERS),
        constants=("9223372036854775807", "4611686018427387904", "-1"),
    ),
    Column(
        *("age", "integer", "min = 0\nmax = 99\nbins = 5", ("0", "19", "20", "41", "60", "99")),
        hostile=("", "-5", "100", "9223372036854775807"),
        misfits=("40.5", "inf", *NOT_NUMBERS),
        constants=("20", "40", "60", "42"),
        by_value=False,
        private=False,
    ),
    Column(
        *("rate", "decimal", "values = [0, 0.1, 0.0000001, -2.5, 12345678901234.123456]"),
        ("0", "0.1", "0.0000001", "-2.5", "12345678901234.123456"),
        hostile=("", "0.10000001", "99999999999999999999999999", "-7"),
        misfits=("1e400", "nan", "inf", "123456789012345678901234567890123456789.5", *NOT_NUMBERS),
        constants=("0.1", "0.0000001", "-2.5", "12345678901234.123456"),
    ),
    Column(
        *(
            "pay",
            "decimal",
            "min = 0\nmax = 1000\nbins = 4",
            ("0", "249.99", "250", "700.5", "1e3"),
        ),
        hostile=("", "-0.01", "1000.01", "99999999999999999999999999"),
        misfits=("1e400", "nan", "-inf", *NOT_NUMBERS),
        constants=("250", "500", "750", "0.0000001"),
        by_value=False,
    ),
    Column(
        *("fee", "decimal"),
        'min = 0\nmax = 2000\nbins = 4\nmissing = "public"\nmissing_markers = ["NA", "-9"]\n'
        'currency = "€"\nthousands = "."\ndecimal = ","',
        ("0 €", "€ 499,99", "500", "1.250,50 €", "2000,0"),
        hostile=("", "NA", " -9 ", "€ -0,01", "99.999.999.999.999.999.999.999 €"),
        misfits=("1.5", "12.34,5", "$5", "€5€", "na", "1 €.", *NOT_NUMBERS),
        constants=("500", "1000", "1500", "0.01"),
        by_value=False,
        as_text=True,
    ),
    Column(
        *(
            "loose",
            "decimal",
            "min = 0\nmax = 8\nbins = 8",
            ("0", "1", "2", "3", "4", "5", "6", "8"),
        ),
        hostile=("", "-1", "9", "3.5", "7.999999999999"),
        misfits=("1e400", "nan", *NOT_NUMBERS),
        constants=("1", "4", "7", "0.1"),
        by_value=False,
        typed=False,
    ),
    Column(
        *("score", "double", "min = -2\nmax = 2\nbins = 4", ("-2", "-0.5", "0", "0.1", "1.5", "2")),
        hostile=("", "nan", "inf", "-inf", "1e300", "-1e300", "5e-324"),
        misfits=("1e", *NOT_NUMBERS[:2]),
        constants=("0", "1", "-1", "1e300", "0.1"),
        by_value=False,
    ),
    Column(
        *("weight", "double", "values = [0, 0.1, 0.5, 1, 123456789012345678]"),
        ("0", "0.1", "0.5", "1", "123456789012345678"),
        hostile=("", "nan", "inf", "0.30000000000000004", "1e-320"),
        misfits=("1e", *NOT_NUMBERS[:2]),
        constants=("0.1", "0.5", "1", "123456789012345678"),
    ),
    Column(
        *(
            "town",
            "text",
            'values = ["Ab", "ab", "Straße", "İi", "ﬁn", "ΟΔΟΣ", "é", "e\u0301", "12"]',
        ),
        ("Ab", "ab", "Straße", "İi", "ﬁn", "ΟΔΟΣ", "é", "e\u0301", "12"),
        hostile=("", "zz", "AB", "straße", "ı", "a%b_c\\", "9223372036854775808", "\U0001f600"),
        constants=("'Ab'", "'STRASSE'", "'i̇i'", "'fin'", "'οδος'", "'é'", "'12'", "''"),
    ),
    Column(
        *("odd one's \"n%me\\", "text", 'values = ["1e3", "0.10", " 7 ", "-0", "2024-02-29", "t"]'),
        ("1e3", "0.10", " 7 ", "-0", "2024-02-29", "t"),
        hostile=("", "nan", "NULL", "'", '"', "1e400"),
        constants=("'1e3'", "'0.10'", "' 7 '", "'2024-02-29'"),
        typed=False,
    ),
    Column(
        *("ill", "boolean", "values = [true, false]", ("true", "false")),
        hostile=("",),
        misfits=("2", "maybe", "yes please"),
        constants=("TRUE", "FALSE"),
    ),
    Column(
        *("born", "date", "values = [0001-01-01, 1900-02-28, 2000-02-29, 2024-12-30, 9999-12-31]"),
        ("0001-01-01", "1900-02-28", "2000-02-29", "2024-12-30", "9999-12-31"),
        hostile=("", "1582-10-10", "2024-12-29"),
        misfits=("2023-02-29", "0000-01-01", "31.12.2024", "yesterday", "99999-01-01"),
        constants=("'2000-02-29'", "'9999-12-31'", "'0001-01-01'", "'2024-12-30'"),
    ),
    Column(
        *("since", "date", "min = 2023-12-01\nmax = 2024-01-19", ("2023-12-01", "2023-12-31")),
        hostile=("", "1066-10-14", "2024-01-20", "9999-12-31"),
        misfits=("2023-13-01", "soon"),
        constants=("'2024-01-01'", "'2023-12-25'"),
    ),
    Column(
        *("seen", "timestamp"),
        "values = [2024-03-31T01:59:59, 2024-03-31T02:30:00, 2024-10-27T02:30:00, "
        "2024-12-31T23:59:59, 0001-01-01T00:00:00, 9999-12-31T23:59:59]",
        (
            *("2024-03-31 01:59:59", "2024-03-31 02:30:00", "2024-10-27 02:30:00"),
            *("2024-12-31 23:59:59", "0001-01-01 00:00:00", "9999-12-31 23:59:59"),
        ),
        hostile=("", "2024-03-31 02:30:00.000001", "2016-12-31 23:59:59.999999"),
        misfits=("2024-03-31 25:00:00", "2024-03-31 02:30:00+02", "noon"),
        constants=("'2024-03-31 02:30:00'", "'2024-12-31 23:59:59'", "'9999-12-31 23:59:59'"),
    ),
    Column(
        *("sex", "text", 'values = ["f", "m"]', ("f", "m")),
        hostile=("", "x", "F"),
        constants=("'f'", "'m'", "'F'"),
        private=False,
    ),
    Column(
        *("flag", "boolean", "values = [true, false]", ("true", "false")),
        hostile=("",),
        misfits=("7",),
        constants=("TRUE", "FALSE"),
        private=False,
        typed=False,
    ),
)

TOWNS = (
    ("town", "region", "factor"),
    ("Ab", "north", "0.1"),
    ("ab", "south", "7"),
    ("12", "", "-1"),
)
"""A public table, joined by the column `town`."""

ENGINE_TYPES = {
    "integer": "BIGINT",
    "decimal": "DECIMAL(38, 6)",
    "double": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
POSTGRES_TYPES = {"DOUBLE": "DOUBLE PRECISION", "DECIMAL(38, 6)": "NUMERIC(38, 6)"}
DIRECT = ("laplace", "gaussian")
FIXED = ("tables", "histogram")
GATED = ("warm", "cold", "auto")
STRATEGIES = (*DIRECT, *FIXED, *GATED)
MISFIT_SHARE = 0.3
"""Of worlds in which some cells are not of their column's type."""


@dataclass(frozen=True)
class World:
    """A policy and two tables that it makes neighbours."""

    columns: tuple[Column, ...]
    tables: tuple[tuple[Row, ...], tuple[Row, ...]] = field(repr=False)
    strategy: str = "laplace"
    neighbours: str = "add-remove"
    protects: str = "person"
    source: str = "csv"
    epsilon: str = "1000000"
    delta: str = "1e-6"
    questions: int = 100_000
    surprises: int = 20_000
    person: int | None = None  # rows of each
    joined: bool = False
    key: bool = False
    urls: tuple[str, str] = ("", "")  # of databases in PostgreSQL

    def __str__(self) -> str:
        """What it takes to recognise it."""
        names = ", ".join(column.name for column in self.columns)
        people = "" if self.person is None else f", {self.person} rows a person"
        return (
            f"{names}; {self.strategy}, {self.neighbours}, {self.protects}, {self.source}{people}"
        )

    @property
    def head(self) -> Row:
        """The names of all columns, that of the person and the key included."""
        more = (["who"] if self.person is not None else []) + (["id"] if self.key else [])
        return (*more, *(column.name for column in self.columns))

    @property
    def moved_by(self) -> int:
        """By how many rows one person moves all disjoint counts together."""
        return (self.person or 1) * (1 if self.neighbours == "add-remove" else 2)

    def policy(self, side: int = 0) -> str:
        """The text of the policy, the same on both sides but for a server's address."""
        place = f"{self.urls[side]}#people" if self.source == "postgres" else self.place
        table = [f'source = "{place}"']
        table += ['key = "id"'] if self.key else []
        table += ['person = "who"', f"rows_per_person = {self.person}"] if self.person else []
        identifiers = [
            f'[columns.{name}]\nrole = "identifier"' for name in self.head if name in ("who", "id")
        ]
        budget = [f"epsilon = {self.epsilon}", f"delta = {self.delta}"]
        budget += [f'neighbours = "{self.neighbours}"', f'protects = "{self.protects}"']
        answer = [f'strategy = "{self.strategy}"', f"questions = {self.questions}"]
        answer += [f"surprises = {self.surprises}"]
        towns = ['[public.towns]\nsource = "towns.csv"\nkey = "town"'] if self.joined else []
        return "\n".join(
            [
                *("[table]", *table, *identifiers, *(each.section() for each in self.columns)),
                *("[budget]", *budget, "[answer]", *answer, *towns, ""),
            ]
        )

    @property
    def place(self) -> str:
        """Where the table is, seen from the policy."""
        return {"csv": "people.csv", "parquet": "people.parquet"}.get(
            self.source, "duckdb:///people.db#people"
        )

    def written(self, folder: Path) -> tuple[Path, Path]:
        """Both policies, each in a folder of its own beside its table."""
        first, second = (self._written(folder / side, i) for i, side in enumerate(("one", "two")))
        return first, second

    def _written(self, folder: Path, side: int) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if self.source == "csv":
            csv(folder / "people.csv", self.head, self.tables[side])
        elif self.source == "postgres":
            self._loaded(folder, side)
        else:
            self._converted(folder, side)
        if self.joined:
            csv(folder / "towns.csv", TOWNS[0], TOWNS[1:])
        path = folder / "casemate.toml"
        path.write_text(self.policy(side), encoding="utf-8")
        return path

    @property
    def _types(self) -> dict[str, str]:
        types = {
            each.name: ENGINE_TYPES["text" if each.as_text else each.type] for each in self.columns
        }
        return types | {"who": "VARCHAR", "id": "BIGINT"}

    def _loaded(self, folder: Path, side: int) -> None:
        """The table in PostgreSQL, by way of DuckDB, which leaves out what does not fit."""
        import psycopg

        self._converted(folder, side)
        names = ", ".join(map(quoted, self.head))
        with duckdb.connect(str(folder / "people.db"), read_only=True) as connection:
            rows = connection.execute(f"SELECT {names} FROM people").fetchall()
        types = {name: POSTGRES_TYPES.get(kind, kind) for name, kind in self._types.items()}
        columns = ", ".join(f"{quoted(name)} {types[name]}" for name in self.head)
        with psycopg.connect(self.urls[side]) as server:
            server.execute(f"CREATE TABLE people ({columns}, PRIMARY KEY (id))".encode())
            into = f"COPY people ({names}) FROM STDIN"
            with server.cursor() as cursor, cursor.copy(into.encode()) as copy:
                for row in rows:
                    copy.write_row(row)
        (folder / "people.db").unlink()

    def _converted(self, folder: Path, side: int) -> None:
        """The table in the engine's own types; what does not fit them is missing there."""
        types = self._types
        shown = ", ".join(
            f"TRY_CAST({quoted(name)} AS {types[name]}) AS {quoted(name)}" for name in self.head
        )
        (folder / "people.db").unlink(missing_ok=True)
        with duckdb.connect(str(folder / "people.db")) as connection:
            texts = ", ".join(f"{quoted(name)} VARCHAR" for name in self.head)
            connection.execute(f"CREATE TEMP TABLE cells ({texts})")
            marks = ", ".join("?" * len(self.head))
            cells = [[cell or None for cell in row] for row in self.tables[side]]
            connection.executemany(f"INSERT INTO cells VALUES ({marks})", cells)
            connection.execute(f"CREATE TABLE people AS SELECT {shown} FROM cells")
            if self.source == "parquet":
                target = folder / "people.parquet"
                connection.execute(f"COPY people TO '{target}' (FORMAT parquet)")
        if self.source == "parquet":
            (folder / "people.db").unlink()


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def csv(path: Path, head: Sequence[str], rows: Sequence[Row]) -> None:
    """Every cell quoted but for those that are missing."""
    lines = [",".join(quoted(each) if each else "" for each in row) for row in (head, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# Drawing worlds ---------------------------------------------------------------------------------


def random_world(
    rng: Random,
    strategies: Sequence[str] = STRATEGIES,
    sources: Sequence[str] = ("csv", "db", "parquet"),
) -> World:
    """Columns, people and a neighbour, with a budget that suits the strategy."""
    strategy = rng.choice(list(strategies))
    columns = random_columns(rng)
    protects = rng.choice(["person", "person", "person", "private-columns"])
    has_town = any(column.name == "town" for column in columns)
    world = World(
        columns,
        ((), ()),
        strategy=strategy,
        neighbours="replace" if protects != "person" else rng.choice(["add-remove", "replace"]),
        protects=protects,
        source=rng.choice(list(sources)),
        delta=rng.choice(["0", "1e-6"]) if strategy == "laplace" else "1e-6",
        person=rng.choice([None, None, 1, 2]),
        joined=has_town and "postgres" not in sources and rng.random() < 0.7,
    )
    world = replace(world, key=world.source in ("db", "postgres") or rng.random() < 0.3)
    if strategy in GATED:
        lively = rng.random() < 0.5
        epsilon, people = ("12", 500) if lively else ("1", 60)
        world = replace(world, epsilon=epsilon, surprises=25)
    else:
        people = 40
    return replace(world, tables=random_tables(rng, world, people))


def random_columns(rng: Random) -> tuple[Column, ...]:
    """Two to four columns, a private one among them."""
    private = [each for each in CATALOGUE if each.private]
    chosen = [rng.choice(private)]
    others = [each for each in CATALOGUE if each not in chosen]
    return (*chosen, *rng.sample(others, rng.randint(1, 3)))


def random_tables(
    rng: Random, world: World, people: int
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Two tables that differ in one person, whose cells are the most hostile ones."""
    dirty = rng.random() < 0.5  # whether others have misfits, too
    misfits = rng.random() < MISFIT_SHARE
    alike = rng.random() < 0.5  # others have few values, so that one person stands out
    usual = replace(world, columns=tuple(_few_cells(rng, each) for each in world.columns))
    rows = [
        list(
            _row(
                *(rng, usual if alike else world, f"p{place}", place),
                hostile=0.0 if alike else 0.15,
                misfits=dirty and misfits,
            )
        )
        for place in range(people)
    ]
    for place, (column, cell) in enumerate(() if alike else _every_cell(world.columns)):
        rows[place % people][world.head.index(column.name)] = cell
    more = _of_people(rng, world, rows)
    lone = "p-new" if world.person is not None else ""
    ours = [
        _row(rng, world, lone, people + len(more) + place, hostile=0.7, misfits=misfits)
        for place in range(rng.randint(1, 3) if world.person is not None else 1)
    ]
    base: list[Row] = [tuple(row) for row in (*rows, *more)]
    at = rng.choice([0, len(base) // 2, len(base)])
    first = [*base[:at], *ours, *base[at:]]
    if world.neighbours == "add-remove":
        second = base
    else:
        theirs = [_replaced(rng, world, row, misfits) for row in ours]
        second = [*base[:at], *theirs, *base[at:]]
    pair = (tuple(first), tuple(second))
    return pair if rng.random() < 0.5 else (pair[1], pair[0])


def _row(rng: Random, world: World, who: str, place: int, *, hostile: float, misfits: bool) -> Row:
    cells = [_cell(rng, column, hostile, misfits) for column in world.columns]
    more = ([who] if world.person is not None else []) + ([str(place)] if world.key else [])
    return (*more, *cells)


def _cell(rng: Random, column: Column, hostile: float, misfits: bool) -> str:
    if rng.random() >= hostile:
        return rng.choice(column.cells)
    if misfits and column.misfits and rng.random() < 0.5:
        return rng.choice(column.misfits)
    return rng.choice(column.hostile)


def _few_cells(rng: Random, column: Column) -> Column:
    """The column as people know it who have one or two values of it."""
    every = (*column.cells, *column.hostile)
    return replace(column, cells=tuple(rng.sample(every, rng.randint(1, min(2, len(every))))))


def _every_cell(columns: Sequence[Column]) -> list[tuple[Column, str]]:
    return [(column, cell) for column in columns for cell in (*column.cells, *column.hostile)]


def _of_people(rng: Random, world: World, rows: Sequence[Sequence[str]]) -> list[Row]:
    """More rows of people who are there, some of them the same again and too many."""
    if world.person is None:
        return []
    found: list[Row] = []
    for place, row in enumerate(rows):
        if rng.random() < 0.3:
            for _ in range(rng.randint(1, 3)):
                other = rng.choice([list(row), list(rng.choice(rows))])
                other[0] = row[0]
                if world.key:
                    other[1] = str(10_000 + 10 * place + len(found))
                found.append(tuple(other))
    return found


def _replaced(rng: Random, world: World, row: Row, misfits: bool) -> Row:
    """The row of the neighbour: other private cells, and other public ones where these count."""
    cells = list(row)
    for column in world.columns:
        if world.protects == "person" or column.private:
            cells[world.head.index(column.name)] = _cell(rng, column, 0.6, misfits)
    return tuple(cells)
