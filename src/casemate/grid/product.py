"""Questions that factor over the attributes, and what was measured about a table of counts.

A universe is a grid of cells, one axis for each attribute. A `Product` multiplies one factor per
attribute and sums over the cells; an attribute without a factor counts fully. It is never written
out as a vector unless somebody asks for `dense()`. A measurement is what a mechanism published
about one product or about a whole marginal: counts, and the variance of their noise. Tables of
counts are contracted with factors, or summed over boxes through summed-area tables.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Scope = tuple[int, ...]
Kept = TypeVar("Kept", Floats, Mask)
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Product:
    """The sum over all cells of a product of masks (0 or 1) and weights, one for each attribute.

    It is kept in its simplest form: a mask and a weight on one attribute become one weight,
    a weight of zeros and ones becomes a mask, and what selects everything is dropped.

    >>> question = Product((2, 3), {1: np.array([True, False, True])})
    >>> question.scope, question.dense().tolist()
    ((1,), [1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    """

    shape: tuple[int, ...]
    masks: Mapping[int, Mask]
    weights: Mapping[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(width) for width in self.shape))
        masks: dict[int, Mask] = {}
        weights: dict[int, Floats] = {}
        for attribute in sorted(self.masks.keys() | self.weights.keys()):
            factor = self._combined_factor(attribute)
            mask = factor != 0
            if not np.array_equal(factor, mask):
                weights[attribute] = _frozen(factor)
            elif not mask.all():
                masks[attribute] = _frozen(mask)
        object.__setattr__(self, "masks", masks)
        object.__setattr__(self, "weights", weights)

    def _combined_factor(self, attribute: int) -> Floats:
        """The mask of one attribute times its weight, once both are known to fit."""
        if not 0 <= attribute < len(self.shape):
            raise ValueError(f"attribute {attribute} is none of the {len(self.shape)} of the grid")
        joined = np.ones(self.shape[attribute])
        for factor in (self.masks.get(attribute), self.weights.get(attribute)):
            if factor is None:
                continue
            if np.shape(factor) != joined.shape or not np.isfinite(factor).all():
                raise ValueError(
                    f"the factor of attribute {attribute} must hold {joined.size} finite numbers, "
                    f"got the shape {np.shape(factor)}"
                )
            joined = joined * factor
        return joined

    @property
    def scope(self) -> Scope:
        """The attributes the question looks at, in order."""
        return tuple(sorted(self.masks.keys() | self.weights.keys()))

    @property
    def size(self) -> int:
        """How many cells the universe has."""
        return math.prod(self.shape)

    @property
    def counts(self) -> bool:
        """Whether each cell counts fully or not at all."""
        return not self.weights

    def factor(self, attribute: int) -> Floats:
        """What each code of the attribute contributes."""
        if attribute in self.masks:
            return self.masks[attribute].astype(np.float64)
        if attribute in self.weights:
            return self.weights[attribute]
        return np.ones(self.shape[attribute])

    def over(self, attributes: Scope) -> Floats:
        """The product of the factors of some attributes, one number for each of their cells."""
        factors = (self.factor(attribute) for attribute in attributes)
        return reduce(lambda left, right: np.outer(left, right).ravel(), factors, np.ones(1))

    def dense(self) -> Floats:
        """The whole vector, one number a cell, the last attribute fastest."""
        return self.over(tuple(range(len(self.shape))))

    @cached_property
    def ranges(self) -> tuple[tuple[int, int], ...] | None:
        """First and last-plus-one code on each attribute of the scope, where each is one run."""
        if self.weights:
            return None
        runs = []
        for attribute in self.scope:
            codes = np.flatnonzero(self.masks[attribute])
            first, end = (int(codes[0]), int(codes[-1]) + 1) if codes.size else (0, 0)
            if end - first != codes.size:
                return None
            runs.append((first, end))
        return tuple(runs)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        kept = [(a, mask.tobytes()) for a, mask in self.masks.items()]
        return (self.shape, *kept, *((a, w.tobytes()) for a, w in self.weights.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it: a mask is the list of the codes it keeps."""
        return {
            "shape": list(self.shape),
            "masks": {str(a): np.flatnonzero(mask).tolist() for a, mask in self.masks.items()},
            "weights": {str(a): weight.tolist() for a, weight in self.weights.items()},
        }

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> "Product":
        """The product that `to_dict` wrote."""
        shape = tuple(written["shape"])
        masks = {
            int(a): np.isin(np.arange(shape[int(a)]), codes)
            for a, codes in written["masks"].items()
        }
        weights = {int(a): np.array(w, np.float64) for a, w in written["weights"].items()}
        return cls(shape, masks, weights)


@dataclass(frozen=True)
class Marginal:
    """All the counts over a scope: one number for each combination of its attributes' codes."""

    scope: Scope

    def __post_init__(self) -> None:
        if list(self.scope) != sorted(set(self.scope)):
            raise ValueError(f"a scope lists each attribute once, in order; got {self.scope}")


@dataclass(frozen=True)
class MeasuredProduct:
    """One number, in counts, that a mechanism published about a product."""

    product: Product
    value: float
    variance: float

    def __post_init__(self) -> None:
        _check(np.array(self.value), self.variance)


@dataclass(frozen=True, eq=False)
class MeasuredMarginal:
    """A whole marginal, in counts, that a mechanism published; the variance is that of a cell."""

    marginal: Marginal
    values: Floats
    variance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(np.array(self.values, np.float64)))
        if self.values.ndim != len(self.marginal.scope):
            raise ValueError(
                f"a marginal of {len(self.marginal.scope)} attributes has as many axes, "
                f"got {self.values.ndim}"
            )
        _check(self.values, self.variance)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MeasuredMarginal)
            and (self.marginal, self.variance) == (other.marginal, other.variance)
            and np.array_equal(self.values, other.values)
        )

    def __hash__(self) -> int:
        return hash((self.marginal, self.variance, self.values.tobytes()))


Measurement = MeasuredProduct | MeasuredMarginal


def _check(values: Floats, variance: float) -> None:
    if not (np.isfinite(values).all() and math.isfinite(variance) and variance >= 0):
        raise ValueError("a measurement holds finite numbers and a variance that is not negative")


def _frozen(array: Kept) -> Kept:
    array.setflags(write=False)
    return array


# Sums over tables -------------------------------------------------------------------------------


MAX_CORNERS_AT_ONCE = 2**20
"""Corners of boxes that are looked up together."""


def summed_area(table: Floats, depth: int | None = None) -> Floats:
    """Entry (i, j, ...) is the sum over all codes below i, j, ... of the first `depth` axes."""
    depth = table.ndim if depth is None else depth
    area = np.zeros([*(width + 1 for width in table.shape[:depth]), *table.shape[depth:]])
    area[(slice(1, None),) * depth] = table
    for axis in range(depth):
        np.cumsum(area, axis=axis, out=area)
    return area


def over_ranges(area: Floats, firsts: Sequence[object], ends: Sequence[object]) -> Floats:
    """The sums over boxes: one sequence of first codes and one of ends for each axis."""
    corners = area
    for first, end in zip(firsts, ends, strict=True):
        corners = corners[end] - corners[first]  # type: ignore[call-overload]  # an index
    return corners


def over_many_ranges(area: Floats, ranges: NDArray[np.int64]) -> Floats:
    """The sums over many boxes: for each box and each of the first axes a first code and an end.

    Corner by corner, in the order in which one box alone is worked out; so many boxes at a time
    that memory stays bounded.
    """
    depth = ranges.shape[1]
    some = max(1, (MAX_CORNERS_AT_ONCE >> depth) // max(1, math.prod(area.shape[depth:])))
    if len(ranges) > some:
        pieces = (ranges[first : first + some] for first in range(0, len(ranges), some))
        return np.concatenate([over_many_ranges(area, piece) for piece in pieces])
    corners = np.empty((*(2,) * depth, len(ranges), *area.shape[depth:]))
    for corner in np.ndindex((2,) * depth):
        corners[corner] = area[tuple(ranges[:, axis, end] for axis, end in enumerate(corner))]
    for _ in range(depth):
        corners = corners[1] - corners[0]
    return corners


def contract(table: NDArray[Number], factors: Sequence[Floats]) -> NDArray[Number]:
    """The sum of a table's entries, each times the factors of its first axes.

    Only entries whose factors are not zero are looked at.
    """
    supports = [factor.nonzero()[0] for factor in factors]
    if supports:
        table = table[np.ix_(*supports)]
    for factor, support in zip(factors, supports, strict=True):
        weights = factor[support].astype(table.dtype)
        if (weights != 1).any():
            table = weights.reshape(-1, *[1] * (table.ndim - 1)) * table
        table = np.asarray(table.sum(axis=0))
    return table
