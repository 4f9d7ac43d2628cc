"""Published answers beside the queries: a CSV `query,cell,answer`, matched to what queries show.

`query` is the number of the statement. `cell` is empty where a statement shows one number;
elsewhere it has the values of the cell's keys as they are shown, and then the name of the column
(which may be left out where only one is of use), with a bar between them: `43813`, `43813|F`,
`43813|total`. A cell may also be told by its number, counted from 1 in the order of its keys.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from casemate.errors import Misconfigured, checked_path
from casemate.published import Publication, ShownColumn, presence, shown_cells
from casemate.query import Select
from casemate.query.engines import Key
from casemate.query.language import KeyRef, Scalar
from casemate.query.records import lineage
from casemate.table.sources import Source

HEADER = ["query", "cell", "answer"]

Cell = tuple[int, Key]
"""The number of a column that is shown, and the keys of one of its cells."""


@dataclass(frozen=True)
class Given:
    """One published number: of which statement, of which of its cells."""

    query: int
    cell: str = field(repr=False)
    answer: Decimal = field(repr=False)
    where: str  # the place in the file, for messages


def given_answers(answers: str | Path | Sequence[Given] | None) -> Sequence[Given] | None:
    """The answers of a file, or those that are given one by one."""
    if answers is None:
        return None
    if isinstance(answers, list | tuple) and all(isinstance(each, Given) for each in answers):
        return answers
    return read_answers(Path(checked_path(answers, "a CSV file query,cell,answer")))


def read_answers(path: Path) -> list[Given]:
    """The answers of a file, in order."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{path} cannot be read; expected a CSV query,cell,answer") from None
    header = [cell.strip().lower() for cell in lines[0][1]] if lines else []
    if sorted(header) not in (sorted(HEADER), ["answer", "query"]):
        raise Misconfigured(f"{path} must begin with query,cell,answer")
    return [
        _parse_line(dict(zip(header, cells, strict=False)), f"{path}, line {number}")
        for number, cells in lines[1:]
    ]


def _parse_line(cells: Mapping[str, str], where: str) -> Given:
    query = cells.get("query", "").strip()
    if not (query.isascii() and query.isdecimal() and int(query) > 0):
        raise Misconfigured(f"{where}: the query must be its number, counted from 1")
    try:
        answer = Decimal(cells.get("answer", "").strip())
    except InvalidOperation:
        raise Misconfigured(f"{where}: the answer is not a number; correct it") from None
    if not answer.is_finite():
        raise Misconfigured(f"{where}: the answer is not a finite number; leave the line out")
    return Given(int(query), cells.get("cell", "").strip(), answer, where)


def with_answers(found: Publication, given: Sequence[Given], source: Source) -> Publication:
    """The publication with these answers for its cells; every query must have at least one."""
    beyond = [each for each in given if each.query > found.queries]
    if beyond:
        raise Misconfigured(
            f"{beyond[0].where} answers query {beyond[0].query}, and there are {found.queries} "
            "queries; give answers to these only"
        )
    by_query: dict[int, list[ShownColumn]] = defaultdict(list)
    for column in found.columns:
        by_query[column.query].append(column)
    answered: dict[int, list[Given]] = defaultdict(list)
    for each in given:
        answered[each.query].append(each)
    lacking = by_query.keys() - answered.keys() - {each.query for each in found.refused}
    if lacking:
        raise Misconfigured(
            f"query {min(lacking)} has no answer; give one, or leave the query out of the log"
        )
    columns: list[ShownColumn] = []
    for query, shown in by_query.items():
        columns += _answer_columns(shown, answered[query], source)
    return replace(found, columns=tuple(columns), there=())


def _answer_columns(
    shown: Sequence[ShownColumn], given: Sequence[Given], source: Source
) -> Iterable[ShownColumn]:
    """The columns of one statement, each with the answers that are about it."""
    keys = {column.select: _keys(column.select, source) for column in shown}
    places = [(i, key) for i, column in enumerate(shown) for key in keys[column.select]]
    names, beside = _names(shown, places), set(_unused_cells(shown, keys))
    numbered = all(each.cell not in names and each.cell.isdecimal() for each in given)
    cells = {str(i): cell for i, cell in enumerate(places, start=1)} if numbered else names
    answered: dict[int, dict[Key, Decimal]] = defaultdict(dict)
    for each in given:
        if each.cell not in beside:
            name = str(int(each.cell)) if numbered else each.cell
            _add_answer(each, cells.get(name), answered, next(iter(names), ""))
    return [replace(shown[which], answers=answers) for which, answers in sorted(answered.items())]


def _add_answer(
    given: Given, cell: Cell | None, answered: dict[int, dict[Key, Decimal]], example: str
) -> None:
    """Add one answer to those of its column."""
    if cell is None:
        raise Misconfigured(
            f"{given.where}: query {given.query} shows no cell of that name; name it by its "
            f"keys, for example {example!r}"
        )
    which, key = cell
    if key in answered[which]:
        raise Misconfigured(f"{given.where}: this cell has an answer already; keep one of them")
    answered[which][key] = given.answer


def _names(shown: Sequence[ShownColumn], places: Sequence[Cell]) -> dict[str, Cell]:
    """How each cell may be written: its keys where one column is of use, or also its column."""
    alone = {_name(key): (which, key) for which, key in places} if len(shown) == 1 else {}
    return alone | {_name(key, shown[which].output.name): (which, key) for which, key in places}


def _unused_cells(
    shown: Sequence[ShownColumn], keys: Mapping[Select, Sequence[Key]]
) -> Iterator[str]:
    """The cells of columns that tell nothing: an answer to one of them is passed over."""
    used = {column.output.name for column in shown}
    for select, cells in keys.items():
        for output in select.outputs:
            if output.name not in used and not isinstance(output.expression, KeyRef):
                yield from (_name(key, output.name) for key in cells)


def _name(key: Key, *column: str) -> str:
    return "|".join([*map(_key_text, key), *column])


def _key_text(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _keys(select: Select, source: Source) -> list[Key]:
    """The keys of all cells that there may be, in order."""
    if not select.keys:
        return [()]
    there = {cell.key for cell in shown_cells(select, source)}
    possible = {cell.key for cell in lineage([presence(select)], source).cells}
    return sorted(
        there | possible, key=lambda key: tuple((v is None, "" if v is None else v) for v in key)
    )
