"""Tables with public columns and one secret to plan for, what they answer, and small languages."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
from attack.every_plan import small_columns

from casemate.attack.plan.language import Axis, Box, Language
from casemate.attack.plan.result import Answer
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.table import Column, Table

PUBLIC = '[columns.{}]\nrole = "public"\n'


class Exact:
    """The table itself answers."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def ask(self, sql: str) -> Fraction | None:
        (found,) = answers(parse(sql, self._table.policy), self._table.source)
        return None if found[()] is None else Fraction(str(found[()]))

    def answers(self, queries: tuple[str, ...]) -> list[Answer]:
        """What the table answers to the queries of a plan."""
        aggregates = [parse(sql, self._table.policy)[0] for sql in queries]
        return [each[()] for each in answers(aggregates, self._table.source)]  # type: ignore[misc]  # numbers


def truth(table: Table, column: str) -> list[object]:
    """A column as it is."""
    frame = table.source.read(f"SELECT * FROM {table.source.relation()} AS t")
    return list(frame[column].values.tolist())


def policy_of(folder: Path, csv: str, secret: str, name: str = "t") -> Path:
    """A table out of a text whose last column is the secret, declared as given; others public."""
    (folder / f"{name}.csv").write_text(csv)
    *public, private = csv.split("\n", 1)[0].split(",")
    path = folder / f"{name}.toml"
    columns = "".join(map(PUBLIC.format, public))
    path.write_text(
        f'[table]\nsource = "{name}.csv"\n{columns}[columns.{private}]\nrole = "private"\n{secret}'
    )
    return path


def small_language(rng: Random) -> Language:
    """A language of small columns, as the planner reads them."""
    axes = []
    for number, (ordered, values) in enumerate(small_columns(rng)):
        there = sorted({value for value in values if value is not None})
        places = [-1 if value is None else there.index(value) for value in values]
        axes.append(Axis(Column(f"c{number}"), tuple(there), np.array(places), ordered))
    return Language(tuple(axes), np.arange(len(axes[0].places)))


def every_box(language: Language) -> list[Box]:
    choices = []
    for axis in language.axes:
        spans = [(i, j) for i in range(axis.last + 1) for j in range(i, axis.last + 1)]
        choices.append([None, *(span for span in spans if axis.ordered or span[0] == span[1])])
    return [
        {number: span for number, span in enumerate(chosen) if span is not None}
        for chosen in product(*choices)
    ]
