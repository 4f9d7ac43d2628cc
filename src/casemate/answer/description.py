"""What may be asked about a table, in words: its columns, their cells, and what is measured first.

A function of the policy and of what has left: nothing of the table is read.
"""

from collections.abc import Iterator

from casemate.answer.dataset import Dataset
from casemate.answer.words import key_words
from casemate.report import count_of, shorten
from casemate.table import Attribute, AttributeKind

LONGEST_LIST = 60
"""Letters of the values of a column."""


def describe(dataset: Dataset) -> str:
    """The columns of a dataset as lines of text, and what is measured before the first answer."""
    rows = [("column", "type", "cells", "missing"), *map(_row, dataset.universe.attributes)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([*(line.rstrip() for line in lines), "", *_rest(dataset)])


def _row(attribute: Attribute) -> tuple[str, str, str, str]:
    column = attribute.column
    missing = str(column.missing) if attribute.may_be_missing else "none"
    return column.name, str(column.type), _cells(attribute), missing


def _cells(attribute: Attribute) -> str:
    column = attribute.column
    if attribute.kind is AttributeKind.VALUES:
        return shorten(", ".join(key_words(each) for each in attribute.points), LONGEST_LIST)
    bins = count_of(attribute.size - 1, "bin")
    return f"{bins} from {key_words(column.low)} to {key_words(column.high)}"


def _rest(dataset: Dataset) -> Iterator[str]:
    """What cannot be asked about, and what is measured when."""
    left_out = [each.name for each in dataset.universe.left_out]
    if left_out:
        yield f"no questions about: {', '.join(left_out)}"
    construction = dataset.construction
    construction.stand_in.catch_up(dataset.doors.transcript)
    plan, tables = construction.plan, construction.stand_in.tables
    sizes = sorted({len(scope) for scope in plan.start})
    if plan.answer is not None:
        yield f"strategy {plan.strategy}: each answer is measured"
        return
    first = "the number of people"
    if sizes:
        wide = " or ".join(count_of(size, "column") for size in sizes)
        first += f" and {count_of(len(plan.start), 'table')} of {wide}"
    started = [each for each in tables if each.question.start]
    when = "was measured" if started or construction.stand_in.total else "will be measured first"
    yield f"strategy {plan.strategy}: {first} {when}"
    yield f"measured since, for questions: {count_of(len(tables) - len(started), 'table')}"
