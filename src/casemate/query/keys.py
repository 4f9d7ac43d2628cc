"""Which cell each row falls into: keys as codes, with one Python value per cell and not per row."""

import numpy as np
from numpy.typing import NDArray

from casemate.query.answers import Key, values
from casemate.table.source import Series

Codes = NDArray[np.int64]


def factorise(columns: list[Series], count: int) -> tuple[Codes, list[Key]]:
    """A code for each of `count` rows, and the key that each code stands for."""
    codes = np.zeros(count, np.int64)
    for column in columns:
        inner, size = _column_codes(column)
        codes = np.unique(codes * size + inner, return_inverse=True)[1]
    _, rows, codes = np.unique(codes, return_index=True, return_inverse=True)
    shown = [values(Series(each.values[rows], each.missing[rows])) for each in columns]
    return codes, list(zip(*shown, strict=True)) if columns else [()] * len(rows)


def _column_codes(column: Series) -> tuple[Codes, int]:
    """A code for each value of one column, NULL among them, and how many codes there are."""
    if column.values.dtype == object:
        numbers: dict[object, int] = {}
        seen = (numbers.setdefault(each, len(numbers)) for each in values(column))
        return np.fromiter(seen, np.int64, len(column.values)), max(1, len(numbers))
    distinct, codes = np.unique(column.values, return_inverse=True)
    codes = codes.astype(np.int64)
    codes[column.missing] = len(distinct)
    return codes, len(distinct) + 1
