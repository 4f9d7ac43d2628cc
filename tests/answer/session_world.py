"""Small protected tables on disk, their policies, and sessions over them as a user opens them."""

import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from grid.compiled_world import as_policy_declares
from oracles.statements import show

from casemate.answer import Answer
from casemate.grid import Noised
from casemate.query.parse import parse_statement
from casemate.table import Table

COLUMNS = """
[columns.id]
role = "identifier"
[columns.age]
type = "integer"
min = 0
max = 99
bins = 10
[columns.sex]
values = ["f", "m"]
[columns.bonus]
type = "decimal"
min = -100
max = 100
bins = 4
[columns.ill]
role = "private"
values = [0, 1]
[columns.visits]
type = "integer"
role = "private"
min = 0
max = 15
"""
HEAD = ("id", "age", "sex", "bonus", "ill", "visits")
MODERATE = "epsilon = 1\ndelta = 1e-6"
LAVISH = "epsilon = 1000\ndelta = 1e-6"
COUNT = "SELECT COUNT(*) FROM t"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex"


def people(number: int, seed: int = 1) -> list[tuple[Any, ...]]:
    """Rows whose columns depend on each other, some of them NULL, undeclared or out of bounds."""
    random = Random(seed)
    found = []
    for place in range(number):
        age = random.choice([random.randrange(100), 30, 40])  # heaped
        sex = random.choice(["f", "m", "f", "x", None])
        bonus = f"{random.gauss(age / 2, 60):.2f}"
        ill = int(random.random() < age / 120)
        visits = None if random.random() < 0.05 else min(20, int(random.expovariate(0.3)) + ill)
        found.append((place, age, sex, bonus, ill, visits))
    return found


def csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    lines = [",".join(f'"{name}"' for name in head)]
    lines += [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def policy(
    folder: Path,
    *,
    budget: str | None = MODERATE,
    table: str = 'source = "people.csv"',
    columns: str = COLUMNS,
    more: str = "",
    name: str = "casemate.toml",
) -> Path:
    """A policy in a folder; without a budget it has no such section."""
    spent = "" if budget is None else f"[budget]\n{budget}\n"
    path = folder / name
    path.write_text(f"[table]\n{table}\n{columns}\n{spent}{more}")
    return path


def world(folder: Path, number: int = 600, seed: int = 1, **changes: Any) -> Path:
    """People in a CSV, and a policy beside it."""
    csv(folder / "people.csv", HEAD, people(number, seed))
    return policy(folder, **changes)


def codes(sizes: Mapping[str, int], role: str = "public") -> str:
    """The section of a policy for columns of whole numbers from 0, each a cell of its own."""
    return "".join(
        f'[columns.{name}]\ntype = "integer"\nrole = "{role}"\nvalues = {list(range(size))}\n'
        for name, size in sizes.items()
    )


PARITY = ("a", "b", "c")


def parity(
    folder: Path,
    *settings: str,
    ledger: str | None = None,
    strategy: str = "warm",
    people: int = 5000,
) -> Path:
    """A table whose pairs of columns say nothing about all three, and its policy.

    The stand-in starts from pairs, so questions about three columns are surprises and others are
    not. `settings` are further lines of the policy's section [answer].
    """
    folder.mkdir(parents=True, exist_ok=True)
    bits = Random(5)
    pairs = ((bits.getrandbits(1), bits.getrandbits(1)) for _ in range(people))
    csv(folder / "parity.csv", PARITY, ((one, other, one ^ other) for one, other in pairs))
    place = "" if ledger is None else f'\nledger = "{ledger}"'
    return policy(
        folder,
        table='source = "parity.csv"',
        columns=codes(dict.fromkeys(PARITY, 2), "private"),
        budget=f"epsilon = 8\ndelta = 1e-6{place}",
        more="\n".join(["[answer]", f'strategy = "{strategy}"', *settings, ""]),
    )


def truth(path: Path | str, sql: str) -> list[tuple[Any, ...]]:
    """What the engine shows of the table as its policy declares it."""
    with Table.open(path) as table:
        statement = as_policy_declares(parse_statement(sql, table.policy))
        return list(show(statement, table.source).rows)


def values(answer: Answer) -> list[tuple[Any, ...]]:
    """Rows of values alone."""
    return [tuple(c.value if isinstance(c, Noised) else c for c in row) for row in answer.rows]


def number(answer: Answer, row: int = 0, column: int = -1) -> Noised:
    cell = answer.rows[row][column]
    assert isinstance(cell, Noised), "this column has keys"
    return cell


def numbers(answer: Answer) -> list[Noised]:
    return [cell for row in answer.rows for cell in row if isinstance(cell, Noised)]


def modes(folder: Path) -> dict[str, int]:
    """The files of a folder and who may use them."""
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
