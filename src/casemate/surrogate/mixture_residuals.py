"""Residuals of a mixture of products: how far it is from each measurement, and their gradients.

Each kind of evidence takes a mixture (a weight and a row of shares for each component; the codes
of all attributes are the columns, side by side), says how far off it is in units of its noise, and
gives the gradient of half the square of that. `tied` are the attributes that it relates to each
other, `work` the multiplications that it needs for each component.

Singles    All tables of one attribute at once: the mean of the shares.
Pairs      All tables of two attributes at once: shares^T weights shares, whose blocks they are.
Wide       A table of any number of attributes. Half of them are joined on the left and half on
           the right, so about the root of the cells is written out for each component.
Questions  All single products at once: a sum for each factor, and their products.

Compiled passes, in which components are the rows of every matrix, make both. Only sums, products,
quotients and square roots, all in a fixed order that the compiler may not change: the same numbers
give the same bits on every machine, whatever library of linear algebra it has and however many
threads that uses.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.grid import Floats, MeasuredMarginal, MeasuredProduct, Measurement, Product

Places = NDArray[np.int64]


@compiled
def _add_four(
    sums: Floats,
    weights: tuple[float, float, float, float],
    rows: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Add four weighted rows at once, so that the sums are read and written once for all four."""
    a, b, c, d = weights
    first, second, third, fourth = rows
    for q in range(sums.shape[0]):
        sums[q] += (a * first[q] + b * second[q]) + (c * third[q] + d * fourth[q])


@compiled
def _add(sums: Floats, weight: float, row: Floats) -> None:
    for q in range(sums.shape[0]):
        sums[q] += weight * row[q]


@compiled
def transpose_product(left: Floats, right: Floats) -> Floats:
    """left^T right: the sum over components k of left[k, p] * right[k, q]."""
    sums = np.zeros((left.shape[1], right.shape[1]))
    fours = left.shape[0] // 4 * 4
    for k in range(0, fours, 4):
        rows = right[k], right[k + 1], right[k + 2], right[k + 3]
        for p in range(left.shape[1]):
            weights = left[k, p], left[k + 1, p], left[k + 2, p], left[k + 3, p]
            _add_four(sums[p], weights, rows)
    for k in range(fours, left.shape[0]):
        for p in range(left.shape[1]):
            _add(sums[p], left[k, p], right[k])
    return sums


MAX_PLAIN_NUMBERS = 2**20
"""Up to so many products of numbers are added up without a compiled pass, which first has to be
loaded: that takes longer than a whole answer."""


def plain_transpose_product(left: Floats, right: Floats) -> Floats:
    """The same bits as `transpose_product`, by the same sums in the same order."""
    pairs = left[:, :, None] * right[:, None, :]
    fours = left.shape[0] // 4 * 4
    four = (pairs[each:fours:4] for each in range(4))
    first, second, third, fourth = four
    added = np.concatenate([(first + second) + (third + fourth), pairs[fours:]])
    return np.asarray(np.add.accumulate(added, axis=0)[-1] + 0.0)


def joined_axes(axes: Sequence[Floats], first: Floats) -> Floats:
    """For each component all products of what comes first and a number of each axis."""
    joined = first
    for axis in axes:
        pairs = joined[:, :, None] * axis[:, None, :]
        joined = pairs.reshape(joined.shape[0], -1)
    return joined


@compiled
def matrix_product(left: Floats, table: Floats) -> Floats:
    """For each component k the sum over p of left[k, p] * table[p, q]."""
    sums = np.zeros((left.shape[0], table.shape[1]))
    fours = left.shape[1] // 4 * 4
    for p in range(0, fours, 4):
        rows = table[p], table[p + 1], table[p + 2], table[p + 3]
        for k in range(left.shape[0]):
            weights = left[k, p], left[k, p + 1], left[k, p + 2], left[k, p + 3]
            _add_four(sums[k], weights, rows)
    for p in range(fours, left.shape[1]):
        for k in range(left.shape[0]):
            _add(sums[k], left[k, p], table[p])
    return sums


@compiled
def row_dots(left: Floats, right: Floats) -> Floats:
    """For each component the sum of products of both rows."""
    sums = np.zeros(left.shape[0])
    for k in range(left.shape[0]):
        for p in range(left.shape[1]):
            sums[k] += left[k, p] * right[k, p]
    return sums


@compiled
def khatri_rao(left: Floats, right: Floats) -> Floats:
    """For each component all products of a number on the left and one on the right."""
    components, wide, narrow = left.shape[0], left.shape[1], right.shape[1]
    pairs = np.empty((components, wide * narrow))
    for k in range(components):
        for p in range(wide):
            for q in range(narrow):
                pairs[k, p * narrow + q] = left[k, p] * right[k, q]
    return pairs


@compiled
def khatri_rao_gradients(left: Floats, right: Floats, gradients: Floats) -> tuple[Floats, Floats]:
    """The gradients of both sides of `khatri_rao` from those of what it made."""
    lefts, rights = np.zeros(left.shape), np.zeros(right.shape)
    narrow = right.shape[1]
    for k in range(left.shape[0]):
        for p in range(left.shape[1]):
            for q in range(narrow):
                gradient = gradients[k, p * narrow + q]
                lefts[k, p] += gradient * right[k, q]
                rights[k, q] += gradient * left[k, p]
    return lefts, rights


@compiled
def _longest(ends: Places) -> int:
    """The most members of a product."""
    longest, start = 0, 0
    for end in ends:
        longest, start = max(longest, end - start), end
    return longest


@compiled
def _prefix_products(rows: Places, sums: Floats, before: Floats) -> None:
    """The product of the first rows: of none, of one, of two, ..."""
    for k in range(sums.shape[1]):
        before[0, k] = 1.0
        for m in range(rows.size):
            before[m + 1, k] = before[m, k] * sums[rows[m], k]


@compiled
def _backpropagate(
    rows: Places, sums: Floats, before: Floats, after: Floats, by_sum: Floats
) -> None:
    """The gradient of each row of a product: all rows before it times all rows after it."""
    for m in range(rows.size - 1, -1, -1):
        for k in range(after.size):
            by_sum[rows[m], k] += before[m, k] * after[k]
            after[k] *= sums[rows[m], k]


class AskedProducts(NamedTuple):
    """Products of rows of sums: the rows, one product after the other, and where each ends."""

    members: Places
    ends: Places


class MeasuredShares(NamedTuple):
    """What was measured of each product as a share, and one over the variance of that."""

    shares: Floats
    precisions: Floats


@compiled
def product_residuals(
    weights: Floats, sums: Floats, asked: AskedProducts, measured: MeasuredShares
) -> tuple[Floats, Floats, Floats]:
    """Residuals of many products, and the gradients of weights and of the sums they are made of.

    A row of `sums` holds one factor's sum over its attribute, component by component.
    """
    (members, ends), (target, precision) = asked, measured
    residuals, by_weight, by_sum = np.empty(ends.size), np.zeros(weights.size), np.zeros(sums.shape)
    before, after = np.empty((_longest(ends) + 1, weights.size)), np.empty(weights.size)
    start = 0
    for j in range(ends.size):
        rows = members[start : ends[j]]
        _prefix_products(rows, sums, before)
        value = 0.0
        for k in range(weights.size):
            value += weights[k] * before[rows.size, k]
        residuals[j] = value - target[j]
        weighted = precision[j] * residuals[j]
        for k in range(weights.size):
            by_weight[k] += weighted * before[rows.size, k]
            after[k] = weighted * weights[k]
        _backpropagate(rows, sums, before, after, by_sum)
        start = ends[j]
    return residuals, by_weight, by_sum


# A mixture, and how far off it is ---------------------------------------------------------------


MIN_STANDARD_ERROR_RECORDS = 1.0
"""A number is believed to within so many records at best, however exact it is said to be: the
numbers beside it count too."""


@dataclass(frozen=True)
class ShareLayout:
    """Where the codes of each attribute lie among the columns of the shares."""

    shape: tuple[int, ...]

    @property
    def firsts(self) -> Places:
        """The first column of each attribute, and the one after the last."""
        return np.concatenate([[0], np.cumsum(self.shape)]).astype(np.int64)

    def columns(self, attribute: int) -> slice:
        """The columns of one attribute."""
        first = sum(self.shape[:attribute])
        return slice(first, first + self.shape[attribute])


class ProductMixture(NamedTuple):
    """The weight of each component, and its share for each code."""

    weights: Floats
    shares: Floats


class MixtureMisfit(NamedTuple):
    """How far off a mixture is: each measurement's excess, and the gradient of all together."""

    excesses: Floats
    gradients: ProductMixture


# Tables of one attribute, of two ------------------------------------------------------------------


class SingleTables:
    """Tables of one attribute, side by side in one vector over all codes."""

    def __init__(
        self, layout: ShareLayout, tables: Sequence[MeasuredMarginal], records: float
    ) -> None:
        codes = sum(layout.shape)
        self._target, self._precision = np.zeros(codes), np.zeros(codes)
        self._parts = [layout.columns(table.marginal.scope[0]) for table in tables]
        for table, part in zip(tables, self._parts, strict=True):
            precision = self._precision[part] + precision_of(table.variance, records)
            self._target[part] += (table.values / records - self._target[part]) * (
                precision_of(table.variance, records) / precision
            )
            self._precision[part] = precision
        self.tied: set[int] = set()
        self.work = 2 * codes

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """One sum over the components."""
        weights, shares = mixture
        residuals = transpose_product(weights[:, None], shares)[0] - self._target
        weighted = self._precision * residuals
        found = [excess(weighted[part] * residuals[part]) for part in self._parts]
        by_weight = matrix_product(shares, weighted[:, None])[:, 0]
        return MixtureMisfit(
            np.array(found), ProductMixture(by_weight, weights[:, None] * weighted)
        )


class PairTables:
    """Tables of two attributes, as blocks of one symmetric matrix over all codes."""

    def __init__(
        self, layout: ShareLayout, tables: Sequence[MeasuredMarginal], records: float
    ) -> None:
        codes = sum(layout.shape)
        self._target, self._precision = np.zeros((codes, codes)), np.zeros((codes, codes))
        self._blocks: list[tuple[slice, slice]] = []
        for table in tables:
            rows, columns = map(layout.columns, table.marginal.scope)
            self._add(rows, columns, table.values / records, precision_of(table.variance, records))
        self.tied = {attribute for table in tables for attribute in table.marginal.scope}
        self.work = 2 * codes**2

    def _add(self, rows: slice, columns: slice, shown: Floats, precision: float) -> None:
        """Put a table to what is there already, each weighed by its precision."""
        self._blocks.append((rows, columns))
        before = float(self._precision[rows, columns].flat[0])
        mean = (before * self._target[rows, columns] + precision * shown) / (before + precision)
        for block, values in (((rows, columns), mean), ((columns, rows), mean.T)):
            self._target[block], self._precision[block] = values, before + precision

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """One matrix over all codes; it holds every table twice."""
        weights, shares = mixture
        residuals = transpose_product(weights[:, None] * shares, shares) - self._target
        weighted = self._precision * residuals
        found = [excess(weighted[block] * residuals[block]) for block in self._blocks]
        gradients = matrix_product(shares, weighted)
        by_weight = 0.5 * row_dots(gradients, shares)
        return MixtureMisfit(
            np.array(found), ProductMixture(by_weight, weights[:, None] * gradients)
        )


# Wider tables -------------------------------------------------------------------------------------


class WideTable:
    """A table of any number of attributes."""

    def __init__(self, layout: ShareLayout, table: MeasuredMarginal, records: float) -> None:
        scope, widths = table.marginal.scope, table.values.shape
        self._columns = [layout.columns(attribute) for attribute in scope]
        self._middle = balanced_split(widths)
        left = math.prod(widths[: self._middle])
        self._target = table.values.reshape(left, -1) / records
        self._precision = precision_of(table.variance, records)
        self.tied = set(scope) if len(scope) > 1 else set()
        self.work = 3 * self._target.size + sum(widths)

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """Both sides joined, crossed, and the gradient carried back through them."""
        weights, shares = mixture
        axes = [np.ascontiguousarray(shares[:, columns]) for columns in self._columns]
        lefts = chain(axes[: self._middle], weights[:, None])
        rights = chain(axes[self._middle :], np.ones((len(weights), 1)))
        residuals = transpose_product(lefts[-1], rights[-1]) - self._target
        weighted = self._precision * residuals
        by_weight, *by_left = chain_gradients(
            axes[: self._middle], lefts, matrix_product(rights[-1], transpose(weighted))
        )
        _, *by_right = chain_gradients(
            axes[self._middle :], rights, matrix_product(lefts[-1], weighted)
        )
        gradients = np.zeros_like(shares)
        for columns, gradient in zip(self._columns, [*by_left, *by_right], strict=True):
            gradients[:, columns] = gradient
        return MixtureMisfit(
            np.array([excess(weighted * residuals)]), ProductMixture(by_weight[:, 0], gradients)
        )


def chain(axes: Sequence[Floats], first: Floats) -> list[Floats]:
    """The axes joined one after the other to what comes first."""
    links = [first]
    for axis in axes:
        links.append(khatri_rao(links[-1], axis))
    return links


def chain_gradients(
    axes: Sequence[Floats], links: Sequence[Floats], gradient: Floats
) -> list[Floats]:
    """The gradients of what comes first and of each axis, from that of the last link."""
    gradients: list[Floats] = []
    for axis, before in zip(reversed(axes), reversed(links[:-1]), strict=True):
        gradient, one = khatri_rao_gradients(before, axis, gradient)
        gradients.append(one)
    return [gradient, *reversed(gradients)]


def transpose(table: Floats) -> Floats:
    """Rows as columns, laid out anew."""
    return np.ascontiguousarray(table.T)


def balanced_split(widths: Sequence[int]) -> int:
    """How many axes go to the left so that both sides are about as long."""
    sides = [
        math.prod(widths[:middle]) + math.prod(widths[middle:]) for middle in range(len(widths) + 1)
    ]
    return sides.index(min(sides))


def precision_of(variance: float, records: float, weight: float = 1.0) -> float:
    """One over the variance of a share."""
    return records**2 / max(variance, (MIN_STANDARD_ERROR_RECORDS * weight) ** 2)


def excess(squares: Floats) -> float:
    """How far the mean of squares is above one, in deviations that it has when all is noise."""
    return float((squares.mean() - 1) * math.sqrt(squares.size / 2))


def largest_weight(product: Product) -> float:
    """The most that one record can add to a question."""
    return math.prod(float(np.abs(product.factor(a)).max()) for a in product.scope)


# Single questions ---------------------------------------------------------------------------------


class ProductQuestions:
    """Products, each with its own noise; a factor that many of them share is summed once."""

    def __init__(
        self, layout: ShareLayout, measured: Sequence[MeasuredProduct], records: float
    ) -> None:
        places: dict[tuple[int, bytes], int] = {}
        factors, members, ends = [], [], []
        for product in (one.product for one in measured):
            for attribute in product.scope:
                factor = product.factor(attribute)
                name = attribute, factor.tobytes()
                if name not in places:
                    places[name] = len(places)
                    factors.append(np.zeros(sum(layout.shape)))
                    factors[-1][layout.columns(attribute)] = factor
                members.append(places[name])
            ends.append(len(members))
        self._factors = np.array(factors)
        self._asked = AskedProducts(np.array(members), np.array(ends))
        precisions = [
            precision_of(one.variance, records, largest_weight(one.product)) for one in measured
        ]
        shares = [one.value / records for one in measured]
        self._measured = MeasuredShares(np.array(shares), np.array(precisions))
        scopes = (one.product.scope for one in measured)
        self.tied = {a for scope in scopes if len(scope) > 1 for a in scope}
        self.work = 2 * self._factors.size + 4 * len(members)

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """The sums of all factors, the products of those, and the gradient carried back."""
        weights, shares = mixture
        sums = matrix_product(self._factors, transpose(shares))
        residuals, by_weight, by_sum = product_residuals(weights, sums, self._asked, self._measured)
        squares = self._measured.precisions * residuals * residuals
        largest = squares - 2 * math.log(residuals.size)  # one of many may be larger
        gradients = transpose_product(by_sum, self._factors)
        return MixtureMisfit((largest - 1) / math.sqrt(2), ProductMixture(by_weight, gradients))


# All of it ----------------------------------------------------------------------------------------


Evidence = SingleTables | PairTables | WideTable | ProductQuestions


def evidence(
    layout: ShareLayout, measurements: Sequence[Measurement], records: float
) -> list[Evidence]:
    """Everything that says more than the total; pairs together where that is less work."""
    tables = [each for each in measurements if isinstance(each, MeasuredMarginal)]
    singles, pairs = ([t for t in tables if t.values.ndim == width] for width in (1, 2))
    wide = [table for table in tables if table.values.ndim > 2]
    questions = [each for each in measurements if isinstance(each, MeasuredProduct)]
    telling = [one for one in questions if one.product.scope and largest_weight(one.product) > 0]
    found: list[Evidence] = [SingleTables(layout, singles, records)] if singles else []
    if sum(layout.shape) ** 2 <= 4 * sum(table.values.size for table in pairs):
        found.append(PairTables(layout, pairs, records))
    else:
        wide = [*pairs, *wide]
    found += [WideTable(layout, table, records) for table in wide]
    return [*found, ProductQuestions(layout, telling, records)] if telling else found
