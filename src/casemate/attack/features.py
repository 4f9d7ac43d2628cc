"""What everybody knows of each record: the public columns, coded so that one can learn from them.

A number is standardised. A category is one 0/1 column for each value that is not rare; rare ones
are pooled, and a missing value is a category of its own. Identifiers, the key and the person are
left out; a column in which everybody differs is a number or nothing, because cells of it hold one
record each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Floats
from casemate.query.engines import PROTECTED, RECORD_COLUMN, Key, tables
from casemate.query.records import factorise
from casemate.table import Policy, Role
from casemate.table.sources import Series, Source, quote_name

Places = NDArray[np.int64]

MOST_VALUES = 12
"""A category has at most so many 0/1 columns; a number of more values has none."""

LEAST_CATEGORY_RECORDS = 5
"""A value of fewer records is pooled with the other rare ones."""

QUANTILE_BINS = 8
MOST_CODES = 32
"""A number of more values enters cells by its eighths."""

MOST_DESIGN_COLUMNS = 100
"""How many columns a design has at most."""

EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Feature:
    """One public column: a code for each distinct value, and the values where they are numbers.

    `numbers` are standardised and 0 where a value is missing; `missing` says where that is.
    """

    name: str
    codes: Places
    numbers: Floats | None
    missing: NDArray[np.bool_]

    @classmethod
    def of(cls, name: str, series: Series) -> "Feature":
        """A column as it was read."""
        codes, keys = factorise([series], len(series.values))
        values = np.array([_number(key) for key in keys], np.float64)[codes]
        gone = np.array([_is_missing(key) for key in keys], np.bool_)[codes]
        ordered = bool(np.isfinite(values[~gone]).all()) and not gone.all()
        return cls(name, codes, _standardise(values, gone) if ordered else None, gone)

    @cached_property
    def sizes(self) -> Places:
        """How many records have each code."""
        return np.bincount(self.codes).astype(np.int64)

    @property
    def identifies(self) -> bool:
        """Whether no two records have the same value."""
        return len(self.codes) > 1 and len(self.sizes) == len(self.codes)

    @cached_property
    def cells(self) -> Places:
        """The codes by which records are put together: of a number with many values, eighths."""
        if self.numbers is None or len(self.sizes) <= MOST_CODES:
            return self.codes
        ends = np.quantile(self.numbers[~self.missing], np.linspace(0, 1, QUANTILE_BINS + 1)[1:-1])
        found = np.searchsorted(ends, self.numbers, side="right")
        return np.where(self.missing, QUANTILE_BINS, found).astype(np.int64)

    def columns(self) -> list[Floats]:
        """What a linear form may use: the number, and 0/1 for each value that is not rare."""
        found = [] if self.numbers is None else [self.numbers]
        if self.identifies or (self.numbers is not None and len(self.sizes) > MOST_VALUES):
            return [*found, self.missing.astype(np.float64)]
        common = np.argsort(-self.sizes, kind="stable")[:MOST_VALUES]
        common = common[self.sizes[common] >= LEAST_CATEGORY_RECORDS]
        pooled = ~np.isin(self.codes, common)
        return [*found, *(1.0 * (self.codes == code) for code in common), 1.0 * pooled]


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """The public columns of all records, in the order of the records.

    >>> young = Series(np.array(["young", "old", "old"], object), np.zeros(3, bool))
    >>> Features(3, (Feature.of("age", young),)).unique.tolist()
    [True, False, False]
    """

    records: int
    columns: tuple[Feature, ...] = ()

    @classmethod
    def of(cls, policy: Policy, source: Source) -> "Features":
        """The public columns of a table."""
        left_out = (policy.key, policy.person)
        wanted = [
            column.name
            for column in policy.columns
            if column.role is Role.PUBLIC and column.name not in left_out
        ]
        read = _read(wanted, source)
        found = [Feature.of(name, read[i]) for i, name in enumerate(wanted)]
        return cls(len(read[-1].values), tuple(each for each in found if len(each.sizes) > 1))

    @classmethod
    def from_arrays(cls, columns: dict[str, Any]) -> "Features":
        """Public columns that are already arrays, all of one length."""
        arrays = {name: np.asarray(each) for name, each in columns.items()}
        found = [Feature.of(name, Series(a, _absent(a))) for name, a in arrays.items()]
        return cls(max((len(a) for a in arrays.values()), default=0), tuple(found))

    def __repr__(self) -> str:
        """How many there are."""
        return f"<Features: {len(self.columns)} public columns of {self.records} records>"

    @cached_property
    def shared(self) -> tuple[Feature, ...]:
        """The columns of which some value is that of several records."""
        return tuple(each for each in self.columns if not each.identifies)

    @cached_property
    def unique(self) -> NDArray[np.bool_]:
        """Whose public values, taken together, are nobody else's."""
        codes = combine_codes([each.codes for each in self.shared], self.records)
        return np.asarray(np.bincount(codes)[codes] == 1)

    def design(self, places: Places) -> Floats:
        """A column for each thing a linear form may use, of these records."""
        columns = [column[places] for each in self.columns for column in each.columns()]
        spread = [column for column in columns if np.ptp(column) > 0]
        most = sorted(range(len(spread)), key=lambda i: -float(np.std(spread[i])))[
            :MOST_DESIGN_COLUMNS
        ]
        return np.array([spread[i] for i in sorted(most)]).reshape(-1, len(places)).T


def combine_codes(codes: Sequence[Places], count: int) -> Places:
    """One code for each combination of codes that occurs among `count` records.

    >>> combine_codes([np.array([0, 1, 0]), np.array([5, 5, 5])], 3).tolist()
    [0, 1, 0]
    """
    found = np.zeros(count, np.int64)
    for each in codes:
        width = int(each.max(initial=0)) + 1
        found = np.unique(found * width + each, return_inverse=True)[1].astype(np.int64)
    return found


def _read(names: Sequence[str], source: Source) -> list[Series]:
    """These columns in the order of the records, and the records."""
    columns = [
        f"{quote_name(PROTECTED)}.{quote_name(name)} AS c{i}" for i, name in enumerate(names)
    ]
    chosen = ", ".join([f"{RECORD_COLUMN} AS r", *columns])
    frame = source.read(f"SELECT {chosen} FROM {tables(source, ())}")
    order = np.argsort(frame["r"].values, kind="stable")
    series = [frame[name] for name in [*(f"c{i}" for i in range(len(names))), "r"]]
    return [Series(each.values[order], each.missing[order]) for each in series]


def _absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    gone = [_is_missing((each,)) for each in values.tolist()]
    return np.array(gone, np.bool_).reshape(len(values))


def _number(key: Key) -> float:
    """A value as a number; not a number where it is a text or missing."""
    (value,) = key
    if isinstance(value, datetime):
        return (value - EPOCH).total_seconds()
    if isinstance(value, date):
        return float(value.toordinal())
    numeric = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if numeric else math.nan  # type: ignore[arg-type]  # a number


def _is_missing(key: Key) -> bool:
    (value,) = key
    return value is None or (isinstance(value, float | Decimal) and not math.isfinite(value))


def _standardise(values: Floats, missing: NDArray[np.bool_]) -> Floats:
    """Mean 0 and deviation 1 over those that are there."""
    there = values[~missing]
    deviation = float(there.std()) or 1.0
    return np.where(missing, 0.0, (np.where(missing, 0.0, values) - there.mean()) / deviation)
