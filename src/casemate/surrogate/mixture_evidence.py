"""What was measured, in the form in which a mixture of products is compared with it.

Each kind of evidence takes a mixture (a weight and a row of shares for each component; the codes
of all attributes are the columns, side by side), says how far off it is in units of its noise, and
gives the slope of half the square of that. `tied` are the attributes that it relates to each other,
`work` the multiplications that it needs for each component.

Singles    All tables of one attribute at once: the mean of the shares.
Pairs      All tables of two attributes at once: shares^T weights shares, whose blocks they are.
Wide       A table of any number of attributes. Half of them are joined on the left and half on
           the right, so about the root of the cells is written out for each component.
Questions  All single products at once: a sum for each factor, and their products.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.surrogate import mixture_kernel as kernel
from casemate.surrogate.product import (
    Floats,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
)

SHARPEST = 1.0
"""A number is believed to within so many records at best, however exact it is said to be: the
numbers beside it count too."""


@dataclass(frozen=True)
class Layout:
    """Where the codes of each attribute lie among the columns of the shares."""

    shape: tuple[int, ...]

    @property
    def firsts(self) -> NDArray[np.int64]:
        """The first column of each attribute, and the one after the last."""
        return np.concatenate([[0], np.cumsum(self.shape)]).astype(np.int64)

    def columns(self, attribute: int) -> slice:
        """The columns of one attribute."""
        first = sum(self.shape[:attribute])
        return slice(first, first + self.shape[attribute])


class Mixture(NamedTuple):
    """The weight of each component, and its share for each code."""

    weights: Floats
    shares: Floats


class Comparison(NamedTuple):
    """How far off a mixture is: the excess of each measurement, and the slope of each number."""

    excesses: Floats
    slopes: Mixture


# Tables of one attribute, of two ------------------------------------------------------------------


class Singles:
    """Tables of one attribute, side by side in one vector over all codes."""

    def __init__(self, layout: Layout, tables: Sequence[MeasuredMarginal], records: float) -> None:
        codes = sum(layout.shape)
        self._wanted, self._trust = np.zeros(codes), np.zeros(codes)
        self._parts = [layout.columns(table.marginal.scope[0]) for table in tables]
        for table, part in zip(tables, self._parts, strict=True):
            trust = self._trust[part] + trust_in(table.variance, records)
            self._wanted[part] += (table.values / records - self._wanted[part]) * (
                trust_in(table.variance, records) / trust
            )
            self._trust[part] = trust
        self.tied: set[int] = set()
        self.work = 2 * codes

    def compare(self, mixture: Mixture) -> Comparison:
        """One sum over the components."""
        weights, shares = mixture
        off = kernel.crossed(weights[:, None], shares)[0] - self._wanted
        pull = self._trust * off
        found = [excess(pull[part] * off[part]) for part in self._parts]
        by_weight = kernel.spread(shares, pull[:, None])[:, 0]
        return Comparison(np.array(found), Mixture(by_weight, weights[:, None] * pull))


class Pairs:
    """Tables of two attributes, as blocks of one symmetric matrix over all codes."""

    def __init__(self, layout: Layout, tables: Sequence[MeasuredMarginal], records: float) -> None:
        codes = sum(layout.shape)
        self._wanted, self._trust = np.zeros((codes, codes)), np.zeros((codes, codes))
        self._blocks: list[tuple[slice, slice]] = []
        for table in tables:
            rows, columns = map(layout.columns, table.marginal.scope)
            self._add(rows, columns, table.values / records, trust_in(table.variance, records))
        self.tied = {attribute for table in tables for attribute in table.marginal.scope}
        self.work = 2 * codes**2

    def _add(self, rows: slice, columns: slice, shown: Floats, trust: float) -> None:
        """Put a table to what is there already, each weighed by its trust."""
        if (rows, columns) not in self._blocks:
            self._blocks.append((rows, columns))
        before = float(self._trust[rows, columns].flat[0])
        mean = (before * self._wanted[rows, columns] + trust * shown) / (before + trust)
        for block, values in (((rows, columns), mean), ((columns, rows), mean.T)):
            self._wanted[block], self._trust[block] = values, before + trust

    def compare(self, mixture: Mixture) -> Comparison:
        """One matrix over all codes; it holds every table twice."""
        weights, shares = mixture
        off = kernel.crossed(weights[:, None] * shares, shares) - self._wanted
        pull = self._trust * off
        found = [excess(pull[block] * off[block]) for block in self._blocks]
        slopes = kernel.spread(shares, pull)
        by_weight = 0.5 * kernel.dots(slopes, shares)
        return Comparison(np.array(found), Mixture(by_weight, weights[:, None] * slopes))


# Wider tables -------------------------------------------------------------------------------------


class Wide:
    """A table of any number of attributes."""

    def __init__(self, layout: Layout, table: MeasuredMarginal, records: float) -> None:
        scope, widths = table.marginal.scope, table.values.shape
        self._columns = [layout.columns(attribute) for attribute in scope]
        self._middle = balanced(widths)
        left = math.prod(widths[: self._middle])
        self._wanted = table.values.reshape(left, -1) / records
        self._trust = trust_in(table.variance, records)
        self.tied = set(scope) if len(scope) > 1 else set()
        self.work = 3 * self._wanted.size + sum(widths)

    def compare(self, mixture: Mixture) -> Comparison:
        """Both sides joined, crossed, and the slope carried back through them."""
        weights, shares = mixture
        axes = [np.ascontiguousarray(shares[:, columns]) for columns in self._columns]
        lefts = chain(axes[: self._middle], weights[:, None])
        rights = chain(axes[self._middle :], np.ones((len(weights), 1)))
        off = kernel.crossed(lefts[-1], rights[-1]) - self._wanted
        pull = self._trust * off
        by_weight, *by_left = unchained(
            axes[: self._middle], lefts, kernel.spread(rights[-1], turned(pull))
        )
        _, *by_right = unchained(axes[self._middle :], rights, kernel.spread(lefts[-1], pull))
        slopes = np.zeros_like(shares)
        for columns, slope in zip(self._columns, [*by_left, *by_right], strict=True):
            slopes[:, columns] = slope
        return Comparison(np.array([excess(pull * off)]), Mixture(by_weight[:, 0], slopes))


def chain(axes: Sequence[Floats], first: Floats) -> list[Floats]:
    """The axes joined one after the other to what comes first."""
    links = [first]
    for axis in axes:
        links.append(kernel.joined(links[-1], axis))
    return links


def unchained(axes: Sequence[Floats], links: Sequence[Floats], slope: Floats) -> list[Floats]:
    """The slopes of what comes first and of each axis, from that of the last link."""
    slopes: list[Floats] = []
    for axis, before in zip(reversed(axes), reversed(links[:-1]), strict=True):
        slope, one = kernel.parted(before, axis, slope)
        slopes.append(one)
    return [slope, *reversed(slopes)]


def turned(table: Floats) -> Floats:
    """Rows as columns, laid out anew."""
    return np.ascontiguousarray(table.T)


def balanced(widths: Sequence[int]) -> int:
    """How many axes go to the left so that both sides are about as long."""
    sides = [
        math.prod(widths[:middle]) + math.prod(widths[middle:]) for middle in range(len(widths) + 1)
    ]
    return sides.index(min(sides))


def trust_in(variance: float, records: float, reach: float = 1.0) -> float:
    """One over the variance of a share."""
    return records**2 / max(variance, (SHARPEST * reach) ** 2)


def excess(squares: Floats) -> float:
    """How far the mean of squares is above one, in deviations that it has when all is noise."""
    return float((squares.mean() - 1) * math.sqrt(squares.size / 2))


def reach(product: Product) -> float:
    """The most that one record can add to a question."""
    return math.prod(float(np.abs(product.factor(a)).max()) for a in product.scope)


# Single questions ---------------------------------------------------------------------------------


class Questions:
    """Products, each with its own noise; a factor that many of them share is summed once."""

    def __init__(self, layout: Layout, measured: Sequence[MeasuredProduct], records: float) -> None:
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
        self._factors, self._members, self._ends = map(np.array, (factors, members, ends))
        self._wanted = np.array([one.value / records for one in measured])
        trusts = [trust_in(one.variance, records, reach(one.product)) for one in measured]
        self._trust = np.array(trusts)
        scopes = (one.product.scope for one in measured)
        self.tied = {a for scope in scopes if len(scope) > 1 for a in scope}
        self.work = 2 * self._factors.size + 4 * len(members)

    def compare(self, mixture: Mixture) -> Comparison:
        """The sums of all factors, the products of those, and the slope carried back."""
        weights, shares = mixture
        sums = kernel.spread(self._factors, turned(shares))
        off, by_weight, by_sum = kernel.questions(
            weights, sums, (self._members, self._ends), (self._wanted, self._trust)
        )
        largest = self._trust * off * off - 2 * math.log(off.size)  # one of many may be larger
        slopes = kernel.crossed(by_sum, self._factors)
        return Comparison((largest - 1) / math.sqrt(2), Mixture(by_weight, slopes))


# All of it ----------------------------------------------------------------------------------------


Evidence = Singles | Pairs | Wide | Questions


def evidence(layout: Layout, measurements: Sequence[Measurement], records: float) -> list[Evidence]:
    """Everything that says more than the total; pairs together where that is less work."""
    tables = [each for each in measurements if isinstance(each, MeasuredMarginal)]
    singles, pairs = ([t for t in tables if t.values.ndim == width] for width in (1, 2))
    wide = [table for table in tables if table.values.ndim > 2]
    questions = [each for each in measurements if isinstance(each, MeasuredProduct)]
    telling = [one for one in questions if one.product.scope and reach(one.product) > 0]
    found: list[Evidence] = [Singles(layout, singles, records)] if singles else []
    if sum(layout.shape) ** 2 <= 4 * sum(table.values.size for table in pairs):
        found.append(Pairs(layout, pairs, records))
    else:
        wide = [*pairs, *wide]
    found += [Wide(layout, table, records) for table in wide]
    return [*found, Questions(layout, telling, records)] if telling else found
