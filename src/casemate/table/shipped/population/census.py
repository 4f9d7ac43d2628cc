"""The population as a table: its columns, its policy, and households put in until it is full.

Households come in blocks from one stream that does not depend on the size asked for, and enter in
order. One that is larger than the room left is passed over for the next that fits, so a table has
exactly the rows asked for and only whole households. Two tables of one seed therefore have the
same rows, except for at most the last seven of the shorter.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import MT19937, Generator
from numpy.typing import NDArray

from casemate.table.schema import Budget, Column, ColumnType, Missing, Policy, Role
from casemate.table.shipped.population.distributions import AGE_LIMIT, LABELS, Codes
from casemate.table.shipped.population.households import (
    CODE_OF,
    CODES_PER_REGION,
    FIRST_CODE,
    REGION_OF,
    REGIONS,
    SEATS_PER_HOUSEHOLD,
    Households,
    draw_households,
)
from casemate.table.shipped.population.people import (
    HIGHEST_INCOME,
    LOWEST_INCOME,
    VISITS_A_YEAR,
    draw_health,
    draw_income,
    draw_work,
)
from casemate.table.sources.source import Series

DEFAULT_ROWS, DEFAULT_SEED = 10_000, 0
MOST_ROWS = 100_000_000
HOUSEHOLDS_PER_BLOCK = 8_192  # enough to be fast, few enough to stay in the cache

TEXTS = LABELS | {"region": tuple(region.name for region in REGIONS)}
"""What the codes of each text column stand for."""


def _text(name: str, role: Role = Role.PUBLIC) -> Column:
    """A text column whose declared values are its labels."""
    values = tuple(label for label in TEXTS[name] if label != "nobody")
    return Column(name, role, ColumnType.TEXT, values=values)


def _number(name: str, low: int, high: int, bins: int, role: Role = Role.PUBLIC) -> Column:
    return Column(name, role, ColumnType.INTEGER, low=low, high=high, bins=bins)


COLUMNS = (
    Column("person_id", Role.IDENTIFIER, ColumnType.INTEGER),
    Column("household_id", Role.IDENTIFIER, ColumnType.INTEGER),
    _text("region"),
    _number("area", FIRST_CODE, FIRST_CODE + CODES_PER_REGION * len(REGIONS), len(REGIONS)),
    _text("household_type"),
    Column(
        "household_size",
        Role.PUBLIC,
        ColumnType.INTEGER,
        values=tuple(range(1, SEATS_PER_HOUSEHOLD + 1)),
    ),
    _text("relation"),
    _number("age", 0, AGE_LIMIT, 20),
    _text("sex"),
    _text("marital"),
    _text("education"),
    _text("employment"),
    _text("occupation"),
    Column(
        "hours", Role.PUBLIC, ColumnType.INTEGER, low=0, high=80, bins=16, missing=Missing.SECRET
    ),
    _number("income", LOWEST_INCOME, HIGHEST_INCOME, 21, Role.PRIVATE),
    _text("insurance"),
    _text("diagnosis", Role.PRIVATE),
    _number("visits", 0, int(VISITS_A_YEAR[-1]), 8, Role.PRIVATE),
)


def policy(rows: int, seed: int) -> Policy:
    """The policy of the table with this many rows from this seed."""
    budget = Budget(Fraction(1), Fraction(1, 10**9))
    return Policy(f"population:{rows}:{seed}", COLUMNS, key="person_id", budget=budget)


def columns(rows: int, random: Generator) -> dict[str, Series]:
    """Draw a table of exactly `rows` people."""
    if not 1 <= rows <= MOST_ROWS:
        raise ValueError(f"need 1 <= rows <= {MOST_ROWS}, got {rows}")
    if isinstance(random.bit_generator, MT19937):
        raise ValueError("need a generator of 64-bit words, such as Philox, got MT19937")
    table: dict[str, NDArray[Any]] = {
        column.name: np.empty(rows, dtype=_storage(column)) for column in COLUMNS
    }
    filled = households = 0
    while filled < rows:
        homes = draw_households(random, HOUSEHOLDS_PER_BLOCK)
        entering = first_fit(homes.size, rows - filled)
        block = _codes(random, homes)
        block["household_id"] = (households + np.cumsum(entering))[homes.home]
        filled = _append(table, block, np.flatnonzero(entering[homes.home]), filled)
        households += int(entering.sum())
    table["person_id"][:] = np.arange(1, rows + 1)
    nobody, idle = np.zeros(rows, dtype=np.bool_), table["hours"] == 0
    return {
        name: Series(values, idle if name == "hours" else nobody) for name, values in table.items()
    }


def first_fit(sizes: Codes, room: int) -> NDArray[np.bool_]:
    """Which of the households enter, in order, when there is room for so many people."""
    ends = np.cumsum(sizes)
    fitting = int(np.searchsorted(ends, room, side="right"))
    enters = np.arange(len(sizes)) < fitting
    remaining_room = room - int(ends[fitting - 1]) if fitting else room
    for home in range(fitting, len(sizes)):
        if remaining_room == 0:
            break
        if sizes[home] <= remaining_room:
            enters[home] = True
            remaining_room -= int(sizes[home])
    return enters


def _storage(column: Column) -> type:
    return object if column.type is ColumnType.TEXT else np.int64


def _codes(random: Generator, homes: Households) -> dict[str, Codes]:
    """What is drawn of each member: numbers as they are, text as codes."""
    work = draw_work(random, homes)
    income = draw_income(random, homes, work)
    health = draw_health(random, homes, work.employment)
    area = homes.area[homes.home]
    return {
        "region": REGION_OF[area],
        "area": CODE_OF[area],
        "household_type": homes.kind[homes.home],
        "household_size": homes.size[homes.home],
        "income": income,
        **{name: getattr(homes, name) for name in ("relation", "age", "sex", "marital")},
        **vars(work),
        **vars(health),
    }


def _append(
    table: dict[str, NDArray[Any]], block: dict[str, Codes], entering: Codes, filled: int
) -> int:
    """Copy the entering people into the table after the first `filled`, and count again."""
    end = filled + len(entering)
    for name, codes in block.items():
        values = codes[entering]
        if name in TEXTS:  # one string per label, shared by all rows that carry it
            values = np.array(TEXTS[name], dtype=object)[values]
        table[name][filled:end] = values
    return end
