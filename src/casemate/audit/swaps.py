"""Rows after which everybody could have somebody else's value: a choice that is easy to clear.

Two records that every published row treats alike may swap their values, and nobody sees it. If
each record has such a twin with another value nobody is exposed, whatever is published of them:
sums, extremes or medians, of whole numbers or not. Far fewer rows allow this than could be
published, but the audit needs no search to see that they are safe.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.rows_shown import Shown
from casemate.audit.statements import Withheld
from casemate.published.truth import column_values
from casemate.solve.equation import Equation
from casemate.solve.equation import equations as equations_of

Labels = NDArray[np.uint64]
INSIDE = -1  # stands for being in a row at all, as extremes and medians see it


def swappable(case: Case, rows: Mapping[Withheld, Shown]) -> list[Withheld]:
    """As many rows as one of two orders admits: the small ones first, or the large ones."""
    lines = list(equations_of(case.equations.system))
    marks = {row: _marks(case, lines, rows[row], number) for number, row in enumerate(rows)}
    values = _values(case)
    small = sorted(rows, key=lambda row: len(rows[row].records))
    kept = max((_admitted(order, marks, values) for order in (small, small[::-1])), key=len)
    return [row for row in rows if row in kept]


def _admitted(
    order: Sequence[Withheld], marks: Mapping[Withheld, Labels], values: Sequence[NDArray[np.int64]]
) -> set[Withheld]:
    kept: set[Withheld] = set()
    labels = np.zeros_like(marks[order[0]]) if order else np.zeros(0, np.uint64)
    for row in order:
        finer = labels + marks[row]
        if all(_differ(finer, codes) for codes in values):
            labels = finer
            kept.add(row)
    return kept


def _differ(labels: Labels, codes: NDArray[np.int64]) -> bool:
    """Whether, among records of one label, there are always two values; 0 is no label."""
    touched = labels != 0
    _, place = np.unique(labels[touched], return_inverse=True)
    count = int(place.max(initial=-1)) + 1
    least, most = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(least, place, codes[touched])
    np.maximum.at(most, place, codes[touched])
    return bool((least < most).all())


def _marks(case: Case, lines: Sequence[Equation], shown: Shown, number: int) -> Labels:
    """What a row adds to the label of each record: the same for records that it treats alike."""
    marks = [0] * len(case.equations.records)
    for record in shown.records.tolist():
        marks[record] = _mark(number, INSIDE, INSIDE)
    for equation in shown.equations:
        line = lines[equation]
        for column, coefficient in zip(line.columns.tolist(), line.values.tolist(), strict=True):
            kind = int(case.equations.unknown[column])
            marks[case.equations.record[column]] += _mark(equation, kind, int(coefficient))
    return np.array([mark % 2**64 for mark in marks], np.uint64)


def _mark(*what: int) -> int:
    """A number that stands for these; different ones have different sums, next to always."""
    mixed = hash(what) & (2**64 - 1)
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    return mixed ^ (mixed >> 27) | 1


def _values(case: Case) -> list[NDArray[np.int64]]:
    """For each private column that was asked about, the values of the records as numbers."""
    people = case.equations.people
    records = [people.record(place) for place in range(len(people.records))]
    codes = []
    for name in sorted(_asked(case)):
        found = column_values(name, case.source)
        numbers: dict[object, int] = {}
        codes.append([numbers.setdefault(found[record], len(numbers)) for record in records])
    return [np.array(each, np.int64) for each in codes]


def _asked(case: Case) -> set[str]:
    ordered = (each.select.aggregates[each.form.weights[0][0]] for each in case.publication.ordered)
    names = {name for each in ordered for name in each.private_argument}
    return names | {unknown.column for unknown in case.equations.unknowns}
