"""A stand-in for universes of any size: a mixture of products, fitted to all that was measured.

Source     The online construction of source document 003, whose stand-in is public: any fit to
           the published measurements is free. The document's own updates need a number for each
           cell; this one needs a number for each code of each attribute and component.
Guarantee  A deterministic function of its settings and of the measurements in their order, the
           same bits on every machine; when it was asked, and how the measurements were grouped,
           does not matter. One distribution answers everything: marginals of marginals agree,
           nothing is negative.
Cost       Memory and an answer: components x codes. A fit: that times the codes and the steps for
           all tables of two attributes, plus components x cells x steps for each wider table. It
           is made when the first answer after a measurement is wanted, from the start, so
           rebuilding from a long transcript is one fit.
Departure  It approaches measurements by least squares in units of their noise, and does not find
           the distribution of largest entropy. Where the universe is small, the dense stand-in is
           closer to the truth; and where many components are needed for what was measured (tables
           in which three attributes decide each other), those that nobody measured are off by
           about the mass of a few components.

Compiled passes of a mixture of products, whose components are the rows of every matrix.

Only sums, products, quotients and square roots, all in a fixed order that the compiler may not
change: the same numbers give the same bits on every machine, whatever library of linear algebra
it has and however many threads that uses.

What was measured, in the form in which a mixture of products is compared with it.

Each kind of evidence takes a mixture (a weight and a row of shares for each component; the codes
of all attributes are the columns, side by side), says how far off it is in units of its noise, and
gives the slope of half the square of that. `tied` are the attributes that it relates to each other,
`work` the multiplications that it needs for each component.

Singles    All tables of one attribute at once: the mean of the shares.
Pairs      All tables of two attributes at once: shares^T weights shares, whose blocks they are.
Wide       A table of any number of attributes. Half of them are joined on the left and half on
           the right, so about the root of the cells is written out for each component.
Questions  All single products at once: a sum for each factor, and their products.

A mixture of products fitted to what was measured: a deterministic descent on squared residuals.

Each residual counts in units of its own noise. The weights of the components, and the shares of an
attribute in a component, are squares over their sum: never negative, with the sum one, and without
any exponential. Steps are those of Adam (mean slope over root mean square slope), shortened
linearly to nothing. A round that leaves some measurement further off than its noise explains is
followed by another from where it ended.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.grid import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    Scope,
)
from casemate.surrogate.dense import LARGEST_DENSE
from casemate.surrogate.protocol import KnownTotal, check_grid, checked_shape

FADING, FADING_SQUARES = 0.9, 0.99
"""How much of the mean slope, and of the mean square of slopes, is kept from step to step."""


@compiled
def _add_four(sums: Any, weights: Any, rows: Any) -> None:
    """Add four weighted rows at once, so that the sums are read and written once for all four."""
    a, b, c, d = weights
    first, second, third, fourth = rows
    for q in range(sums.shape[0]):
        sums[q] += (a * first[q] + b * second[q]) + (c * third[q] + d * fourth[q])


@compiled
def _add(sums: Any, weight: Any, row: Any) -> None:
    for q in range(sums.shape[0]):
        sums[q] += weight * row[q]


@compiled
def crossed(left: Any, right: Any) -> Any:
    """The sum over components k of left[k, p] * right[k, q]."""
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


@compiled
def spread(left: Any, table: Any) -> Any:
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
def dots(left: Any, right: Any) -> Any:
    """For each component the sum of products of both rows."""
    sums = np.zeros(left.shape[0])
    for k in range(left.shape[0]):
        for p in range(left.shape[1]):
            sums[k] += left[k, p] * right[k, p]
    return sums


@compiled
def joined(left: Any, right: Any) -> Any:
    """For each component all products of a number on the left and one on the right."""
    components, wide, narrow = left.shape[0], left.shape[1], right.shape[1]
    pairs = np.empty((components, wide * narrow))
    for k in range(components):
        for p in range(wide):
            for q in range(narrow):
                pairs[k, p * narrow + q] = left[k, p] * right[k, q]
    return pairs


@compiled
def parted(left: Any, right: Any, slopes: Any) -> Any:
    """The slopes of both sides of `joined` from those of what it made."""
    lefts, rights = np.zeros(left.shape), np.zeros(right.shape)
    narrow = right.shape[1]
    for k in range(left.shape[0]):
        for p in range(left.shape[1]):
            for q in range(narrow):
                slope = slopes[k, p * narrow + q]
                lefts[k, p] += slope * right[k, q]
                rights[k, q] += slope * left[k, p]
    return lefts, rights


@compiled
def _longest(ends: Any) -> Any:
    """The most members of a product."""
    longest, start = 0, 0
    for end in ends:
        longest, start = max(longest, end - start), end
    return longest


@compiled
def _multiplied(rows: Any, sums: Any, before: Any) -> None:
    """The product of the first rows: of none, of one, of two, ..."""
    for k in range(sums.shape[1]):
        before[0, k] = 1.0
        for m in range(rows.size):
            before[m + 1, k] = before[m, k] * sums[rows[m], k]


@compiled
def _carried_back(rows: Any, sums: Any, before: Any, after: Any, by_sum: Any) -> None:
    """The slope of each row of a product: all rows before it times all rows after it."""
    for m in range(rows.size - 1, -1, -1):
        for k in range(after.size):
            by_sum[rows[m], k] += before[m, k] * after[k]
            after[k] *= sums[rows[m], k]


@compiled
def questions(weights: Any, sums: Any, asked: Any, measured: Any) -> Any:
    """Residuals of many products, and the slopes of weights and of the sums they are made of.

    A row of `sums` holds one factor's sum over its attribute, component by component; what is asked
    are rows of it, one product after the other, and the end of each product.
    """
    (members, ends), (wanted, trust) = asked, measured
    off, by_weight, by_sum = np.empty(ends.size), np.zeros(weights.size), np.zeros(sums.shape)
    before, after = np.empty((_longest(ends) + 1, weights.size)), np.empty(weights.size)
    start = 0
    for j in range(ends.size):
        rows = members[start : ends[j]]
        _multiplied(rows, sums, before)
        value = 0.0
        for k in range(weights.size):
            value += weights[k] * before[rows.size, k]
        off[j] = value - wanted[j]
        pull = trust[j] * off[j]
        for k in range(weights.size):
            by_weight[k] += pull * before[rows.size, k]
            after[k] = pull * weights[k]
        _carried_back(rows, sums, before, after, by_sum)
        start = ends[j]
    return off, by_weight, by_sum


@compiled
def component_shares(roots: Any, firsts: Any) -> Any:
    """Squares of roots over their sum, attribute by attribute; and those sums."""
    found, sums = np.empty(roots.shape), np.empty((roots.shape[0], firsts.shape[0] - 1))
    for k in range(roots.shape[0]):
        for a in range(firsts.shape[0] - 1):
            mass = 0.0
            for i in range(firsts[a], firsts[a + 1]):
                mass += roots[k, i] * roots[k, i]
            sums[k, a] = mass
            for i in range(firsts[a], firsts[a + 1]):
                found[k, i] = roots[k, i] * roots[k, i] / mass
    return found, sums


@compiled
def root_slopes(roots: Any, slopes: Any, firsts: Any) -> Any:
    """The slopes of the roots from those of the shares."""
    found = np.empty(roots.shape)
    held, sums = component_shares(roots, firsts)
    for k in range(roots.shape[0]):
        for a in range(firsts.shape[0] - 1):
            mean = 0.0
            for i in range(firsts[a], firsts[a + 1]):
                mean += held[k, i] * slopes[k, i]
            for i in range(firsts[a], firsts[a + 1]):
                found[k, i] = 2.0 * roots[k, i] * (slopes[k, i] - mean) / sums[k, a]
    return found


@compiled
def step(roots: Any, slopes: Any, memory: Any, length: Any, corrections: Any) -> None:
    """Move each root against its mean slope, measured in its usual size."""
    means, squares = memory
    for k in range(roots.shape[0]):
        for i in range(roots.shape[1]):
            slope = slopes[k, i]
            means[k, i] = FADING * means[k, i] + (1 - FADING) * slope
            squares[k, i] = FADING_SQUARES * squares[k, i] + (1 - FADING_SQUARES) * slope * slope
            size = math.sqrt(squares[k, i] / corrections[1]) + 1e-12
            roots[k, i] -= length * (means[k, i] / corrections[0]) / size


@compiled
def weighed(weights: Any, by_code: Any, codes: Any, factors: Any, ends: Any) -> Any:
    """The value of a product: a row of `by_code` holds the shares of one code.

    The codes of each attribute with a factor lie one after the other, up to its end.
    """
    product, sums = weights.copy(), np.empty(weights.size)
    start = 0
    for end in ends:
        sums[:] = 0.0
        for place in range(start, end):
            _add(sums, factors[place], by_code[codes[place]])
        for k in range(weights.size):
            product[k] *= sums[k]
        start = end
    total = 0.0
    for k in range(weights.size):
        total += product[k]
    return total


# Mixture evidence -------------------------------------------------------------------------------


SHARPEST = 1.0
"""A number is believed to within so many records at best, however exact it is said to be: the
numbers beside it count too."""


@dataclass(frozen=True)
class ShareLayout:
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


class ProductMixture(NamedTuple):
    """The weight of each component, and its share for each code."""

    weights: Floats
    shares: Floats


class MixtureMisfit(NamedTuple):
    """How far off a mixture is: the excess of each measurement, and the slope of each number."""

    excesses: Floats
    slopes: ProductMixture


# Tables of one attribute, of two ------------------------------------------------------------------


class SingleTables:
    """Tables of one attribute, side by side in one vector over all codes."""

    def __init__(
        self, layout: ShareLayout, tables: Sequence[MeasuredMarginal], records: float
    ) -> None:
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

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """One sum over the components."""
        weights, shares = mixture
        off = crossed(weights[:, None], shares)[0] - self._wanted
        pull = self._trust * off
        found = [excess(pull[part] * off[part]) for part in self._parts]
        by_weight = spread(shares, pull[:, None])[:, 0]
        return MixtureMisfit(np.array(found), ProductMixture(by_weight, weights[:, None] * pull))


class PairTables:
    """Tables of two attributes, as blocks of one symmetric matrix over all codes."""

    def __init__(
        self, layout: ShareLayout, tables: Sequence[MeasuredMarginal], records: float
    ) -> None:
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

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """One matrix over all codes; it holds every table twice."""
        weights, shares = mixture
        off = crossed(weights[:, None] * shares, shares) - self._wanted
        pull = self._trust * off
        found = [excess(pull[block] * off[block]) for block in self._blocks]
        slopes = spread(shares, pull)
        by_weight = 0.5 * dots(slopes, shares)
        return MixtureMisfit(np.array(found), ProductMixture(by_weight, weights[:, None] * slopes))


# Wider tables -------------------------------------------------------------------------------------


class Wide:
    """A table of any number of attributes."""

    def __init__(self, layout: ShareLayout, table: MeasuredMarginal, records: float) -> None:
        scope, widths = table.marginal.scope, table.values.shape
        self._columns = [layout.columns(attribute) for attribute in scope]
        self._middle = balanced(widths)
        left = math.prod(widths[: self._middle])
        self._wanted = table.values.reshape(left, -1) / records
        self._trust = trust_in(table.variance, records)
        self.tied = set(scope) if len(scope) > 1 else set()
        self.work = 3 * self._wanted.size + sum(widths)

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """Both sides joined, crossed, and the slope carried back through them."""
        weights, shares = mixture
        axes = [np.ascontiguousarray(shares[:, columns]) for columns in self._columns]
        lefts = chain(axes[: self._middle], weights[:, None])
        rights = chain(axes[self._middle :], np.ones((len(weights), 1)))
        off = crossed(lefts[-1], rights[-1]) - self._wanted
        pull = self._trust * off
        by_weight, *by_left = unchained(
            axes[: self._middle], lefts, spread(rights[-1], turned(pull))
        )
        _, *by_right = unchained(axes[self._middle :], rights, spread(lefts[-1], pull))
        slopes = np.zeros_like(shares)
        for columns, slope in zip(self._columns, [*by_left, *by_right], strict=True):
            slopes[:, columns] = slope
        return MixtureMisfit(
            np.array([excess(pull * off)]), ProductMixture(by_weight[:, 0], slopes)
        )


def chain(axes: Sequence[Floats], first: Floats) -> list[Floats]:
    """The axes joined one after the other to what comes first."""
    links = [first]
    for axis in axes:
        links.append(joined(links[-1], axis))
    return links


def unchained(axes: Sequence[Floats], links: Sequence[Floats], slope: Floats) -> list[Floats]:
    """The slopes of what comes first and of each axis, from that of the last link."""
    slopes: list[Floats] = []
    for axis, before in zip(reversed(axes), reversed(links[:-1]), strict=True):
        slope, one = parted(before, axis, slope)
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
        self._factors, self._members, self._ends = map(np.array, (factors, members, ends))
        self._wanted = np.array([one.value / records for one in measured])
        trusts = [trust_in(one.variance, records, reach(one.product)) for one in measured]
        self._trust = np.array(trusts)
        scopes = (one.product.scope for one in measured)
        self.tied = {a for scope in scopes if len(scope) > 1 for a in scope}
        self.work = 2 * self._factors.size + 4 * len(members)

    def compare(self, mixture: ProductMixture) -> MixtureMisfit:
        """The sums of all factors, the products of those, and the slope carried back."""
        weights, shares = mixture
        sums = spread(self._factors, turned(shares))
        off, by_weight, by_sum = questions(
            weights, sums, (self._members, self._ends), (self._wanted, self._trust)
        )
        largest = self._trust * off * off - 2 * math.log(off.size)  # one of many may be larger
        slopes = crossed(by_sum, self._factors)
        return MixtureMisfit((largest - 1) / math.sqrt(2), ProductMixture(by_weight, slopes))


# All of it ----------------------------------------------------------------------------------------


Evidence = SingleTables | PairTables | Wide | ProductQuestions


def evidence(
    layout: ShareLayout, measurements: Sequence[Measurement], records: float
) -> list[Evidence]:
    """Everything that says more than the total; pairs together where that is less work."""
    tables = [each for each in measurements if isinstance(each, MeasuredMarginal)]
    singles, pairs = ([t for t in tables if t.values.ndim == width] for width in (1, 2))
    wide = [table for table in tables if table.values.ndim > 2]
    questions = [each for each in measurements if isinstance(each, MeasuredProduct)]
    telling = [one for one in questions if one.product.scope and reach(one.product) > 0]
    found: list[Evidence] = [SingleTables(layout, singles, records)] if singles else []
    if sum(layout.shape) ** 2 <= 4 * sum(table.values.size for table in pairs):
        found.append(PairTables(layout, pairs, records))
    else:
        wide = [*pairs, *wide]
    found += [Wide(layout, table, records) for table in wide]
    return [*found, ProductQuestions(layout, telling, records)] if telling else found


# Mixture fit ------------------------------------------------------------------------------------


LENGTH = 0.15
"""The first step of each root; roots start between nothing and one."""

WEIGHTS_LENGTH = 0.05
"""The same for the weights, as a part of it: a mixture in which all count answers best what nobody
measured."""

EXPLAINED = 6.0
"""The mean square of residuals is one in units of noise, up to so many of its own deviations."""

ROUNDS = 3
"""So many rounds at most."""

FEWEST = 60
"""Steps of a round, however large the tables are."""

WORK = 1e11
"""A round has fewer steps when they would be more multiplications than this."""


class Roots(NamedTuple):
    """What the descent moves: weights and shares are their squares, made to sum to one."""

    of_weights: Floats  # in one row
    of_shares: Floats


def start(components: int, layout: ShareLayout, known: Sequence[Evidence] = ()) -> Roots:
    """Roots of numbers from a generator of counters: the same everywhere and for ever.

    An attribute of which nothing is known together with another one starts, and so stays, the
    same in all components: independent of all others.
    """
    codes = sum(layout.shape)
    bits = np.random.Philox(key=components).random_raw(components * codes)
    units = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    roots: Floats = np.sqrt(units).reshape(components, codes)
    tied = {attribute for each in known for attribute in each.tied}
    for attribute in set(range(len(layout.shape))) - tied:
        roots[:, layout.columns(attribute)] = 1.0
    return Roots(np.ones((1, components)), roots)


def mixture_of(roots: Roots, layout: ShareLayout) -> ProductMixture:
    """The weights and shares that the roots stand for."""
    weights, _ = component_shares(roots.of_weights, _whole(roots))
    shares, _ = component_shares(roots.of_shares, layout.firsts)
    return ProductMixture(weights[0], shares)


def fitted(
    roots: Roots, layout: ShareLayout, known: Sequence[Evidence], steps: int, rounds: int = ROUNDS
) -> ProductMixture:
    """The mixture after the descent, which moves the roots."""
    if known:
        steps = affordable(steps, roots.of_weights.size, known)
        for _ in range(rounds):
            if _round(roots, layout, known, steps) <= EXPLAINED:
                break
    return mixture_of(roots, layout)


def affordable(steps: int, components: int, known: Sequence[Evidence]) -> int:
    """How many steps a round has."""
    work = components * sum(each.work for each in known)
    return max(min(steps, int(WORK / work)), min(steps, FEWEST))


def compared(known: Sequence[Evidence], mixture: ProductMixture) -> MixtureMisfit:
    """The excess of each measurement, and the slopes of all together."""
    comparisons = [each.compare(mixture) for each in known]
    by_weight, by_share = comparisons[0].slopes
    for each in comparisons[1:]:
        by_weight, by_share = by_weight + each.slopes.weights, by_share + each.slopes.shares
    excesses = np.concatenate([each.excesses for each in comparisons])
    return MixtureMisfit(excesses, ProductMixture(by_weight, by_share))


def _round(roots: Roots, layout: ShareLayout, known: Sequence[Evidence], steps: int) -> float:
    """Move the roots down; and the largest excess among all measurements before the last step."""
    whole, by_weight, by_share = _whole(roots), *map(_memory, roots)
    worst, fading, fading_squares = 0.0, 1.0, 1.0
    for taken in range(steps):
        excesses, slopes = compared(known, mixture_of(roots, layout))
        worst = float(excesses.max())
        fading *= FADING
        fading_squares *= FADING_SQUARES
        length = LENGTH * (1 - taken / steps)
        left = 1 - fading, 1 - fading_squares
        down = root_slopes(roots.of_weights, slopes.weights[None], whole)
        step(roots.of_weights, down, by_weight, WEIGHTS_LENGTH * length, left)
        down = root_slopes(roots.of_shares, slopes.shares, layout.firsts)
        step(roots.of_shares, down, by_share, length, left)
    return worst


def _memory(root: Floats) -> tuple[Floats, Floats]:
    """Mean slopes and mean squares of slopes, nothing so far."""
    return np.zeros_like(root), np.zeros_like(root)


def _whole(roots: Roots) -> NDArray[np.int64]:
    """All weights together sum to one."""
    return np.array([0, roots.of_weights.size])


# Mixture ----------------------------------------------------------------------------------------


COMPONENTS = 200
"""Products in the mixture."""

SWEEPS = 10
"""The length of a fit, unless more is asked for."""

STEPS = 60
"""So many steps of the descent stand for one sweep."""


class MixtureSurrogate:
    """A mixture of products that agrees with all that was measured, as far as noise and form allow.

    `total` is what is known of the number of records and `total_variance` how well: 0 for a
    public number, infinity for none; measured totals and tables then sharpen it. More `components`
    hold more structure and take longer.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        total: float,
        total_variance: float = 0.0,
        *,
        components: int = COMPONENTS,
        steps: int = STEPS,
    ) -> None:
        if components < 1 or steps < 1:
            raise ValueError(
                f"a mixture has at least one component and one step a sweep, "
                f"got {components} and {steps}"
            )
        self.shape = checked_shape(shape)
        self._layout = ShareLayout(self.shape)
        self._firsts = self._layout.firsts
        self._known, self._components = KnownTotal(total, total_variance), int(components)
        self._steps = int(steps)
        self._measured: list[Measurement] = []
        self._sweeps = SWEEPS
        self._fit: tuple[ProductMixture, Floats] | None = None

    @property
    def total(self) -> float:
        """How many records there are, as far as is known; at least one."""
        return self._known.records

    # What it answers ------------------------------------------------------------------------------

    def answer(self, product: Product) -> float:
        """The value of one question, in counts."""
        if product.shape != self.shape:
            raise ValueError(f"a question about the grid {product.shape} met one of {self.shape}")
        codes, factors, ends = [], [], []
        for attribute in product.scope:
            factor = product.factor(attribute)
            kept = factor.nonzero()[0]
            codes.append(kept + self._firsts[attribute])
            factors.append(factor[kept])
            ends.append(kept.size)
        if not codes:
            return self.total
        where, weights = np.concatenate(codes), np.concatenate(factors)
        mixture, by_code = self._by_code
        value = weighed(mixture.weights, by_code, where, weights, np.cumsum(ends))
        return self.total * float(value)

    def answers(self, products: Sequence[Product]) -> Floats:
        """The values of many questions, in counts."""
        return np.array([self.answer(product) for product in products], np.float64)

    def marginal(self, scope: Scope) -> Floats:
        """The counts over a scope."""
        Marginal(scope)
        widths = [self.shape[attribute] for attribute in scope]
        if math.prod(widths) > LARGEST_DENSE:
            raise ValueError(
                f"a table over {scope} would have {math.prod(widths)} cells, more than "
                f"{LARGEST_DENSE}; ask for fewer attributes, or for single products"
            )
        axes = [
            np.ascontiguousarray(self.mixture.shares[:, self._layout.columns(a)]) for a in scope
        ]
        middle, weights = balanced(widths), self.mixture.weights[:, None]
        left, right = chain(axes[:middle], weights), chain(axes[middle:], np.ones_like(weights))
        cells: Floats = self.total * crossed(left[-1], right[-1])
        return cells.reshape(widths)

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """The counts over many scopes."""
        return {scope: self.marginal(scope) for scope in scopes}

    @property
    def mixture(self) -> ProductMixture:
        """The mixture itself: the weight of each component, and its share for each code."""
        return self._by_code[0]

    # How it changes -------------------------------------------------------------------------------

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        self.learn([measurement])

    def learn(self, measurements: Sequence[Measurement], sweeps: int = SWEEPS) -> None:
        """Learn from what was published together; the longest fit ever asked for counts."""
        for measurement in measurements:
            check_grid(self.shape, measurement)
        for measurement in measurements:
            self._known.count(measurement)
        self._measured += measurements
        self._sweeps = max(self._sweeps, sweeps)
        self._fit = None

    @property
    def _by_code(self) -> tuple[ProductMixture, Floats]:
        """The mixture, and its shares with a row for each code."""
        if self._fit is None:
            known = evidence(self._layout, self._measured, self.total)
            roots = start(self._components, self._layout, known)
            mixture = fitted(roots, self._layout, known, self._steps * self._sweeps)
            self._fit = mixture, np.ascontiguousarray(mixture.shares.T)
        return self._fit
