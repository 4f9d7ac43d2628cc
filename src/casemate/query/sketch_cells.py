"""The cells of GROUP BY as one column of codes: each key coded by itself, then put together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.answers import Key, values
from casemate.query.coding import WIDEST_SPAN, codes_of
from casemate.query.engine import engine_of, tables
from casemate.query.expression import Expression, Scalar
from casemate.query.keys import factorise
from casemate.query.membership import Groups, Records
from casemate.query.render import render
from casemate.table.schema import ColumnType

MOST_COUNTED = 2**26
"""Codes up to which those in use are marked in a table; past that they are sorted."""

Codes = NDArray[Any]


def cells_of(keys: Sequence[Expression], records: Records) -> Groups:
    """The cell of every record, and the keys of each cell."""
    codes: Codes = np.zeros(records.count, np.int32)
    cells: list[Key] = [()]
    for key in keys:
        inner, shown = _coded(key, records)
        wide = codes.astype(np.int64) * len(shown) + inner
        codes, used = _in_use(wide, len(cells) * len(shown))
        cells = [(*cells[k // len(shown)], shown[k % len(shown)]) for k in used.tolist()]
    return Groups(codes, tuple(cells))


def _coded(key: Expression, records: Records) -> tuple[Codes, list[Scalar]]:
    """A code for each record's value of one key, and the values."""
    written = render(key, engine_of(records.source))
    if key.type is ColumnType.TEXT:
        distinct = _distinct(written, records)
        return codes_of(written, key.type, distinct, records.source, records.column), distinct
    series = records.column(written)
    if key.type is ColumnType.INTEGER and not series.missing.any() and records.count:
        low, high = int(series.values.min()), int(series.values.max())
        if high - low < WIDEST_SPAN:
            narrow, used = _in_use(series.values - low, high - low + 1)
            return narrow, [low + each for each in used.tolist()]
    codes, found = factorise([series], records.count)
    return codes, [each for (each,) in found]


def _distinct(written: str, records: Records) -> list[Scalar]:
    inner = f"SELECT DISTINCT {written} AS v FROM {tables(records.source, ())}"
    return values(records.source.read(inner)["v"])


def _in_use(codes: Codes, size: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The codes renumbered without gaps, and which there are."""
    if size > MOST_COUNTED:
        used, inner = np.unique(codes, return_inverse=True)
        return inner.astype(np.int32), used
    seen = np.zeros(size, np.bool_)
    seen[codes] = True
    place = (np.cumsum(seen) - 1).astype(np.int32)
    return place[codes], np.flatnonzero(seen)
