"""What the tables that were measured first prove of a question, whoever chose it and when.

Guarantee  Every interval of one `chance` holds at once but for that chance: each question of the
           family is proven at its share of it. So sums of proven numbers are proven too, and so is
           whatever follows from them. A width depends on public facts alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np

from casemate.answer.question_family import QuestionFamily
from casemate.grid import (
    USUAL_SKEW,
    DeclaredSums,
    Effects,
    Floats,
    LinearEstimate,
    Mask,
    Product,
    Scope,
    shifted_product,
    split_of,
)
from casemate.privacy.noise import GaussianLaw, Law, NoiseWeights, linear_width

MAX_DENSE_WEIGHTS = 2**12
"""Cells of a table up to which products are added up to one set of weights."""

MAX_LEVELS = 4
"""Different weights up to which codes are taken apart by what they are worth."""

MAX_KEPT_ESTIMATES = 2**12
"""Estimates that are kept in memory."""

FLOAT_SLACK = 1e-9
"""Relative; far above what sums over fitted tables lose."""


@dataclass(frozen=True)
class ProvenNumber:
    """An estimate of a number, its standard deviation, and how far off it may be."""

    value: float
    deviation: float
    width: float


Ends = tuple[float, float]


@dataclass(frozen=True)
class ProvenMean:
    """A mean around the centre of its attribute: its ends, an estimate, and how far that is off."""

    ends: Ends
    value: float
    error: float


@dataclass(frozen=True, eq=False)
class SumEffects:
    """Measured sums of one attribute around its centre, in units; records are off by `rounding`."""

    effects: Effects
    unit: Fraction
    rounding: Fraction


MAX_IMPLYING = 8
"""Attributes of a count that is bounded by its pairs: there are 56 ordered pairs of eight."""


@dataclass(frozen=True, eq=False)
class TableProofs:
    """Proofs from tables of counts that were all fixed before any of them was measured."""

    family: QuestionFamily
    effects: Effects
    declared: Mapping[int, DeclaredSums] = field(default_factory=dict)
    sums: Mapping[int, SumEffects] = field(default_factory=dict)  # by the attribute added up
    _kept: dict[Product, tuple[LinearEstimate, float]] = field(default_factory=dict)

    def prove(self, cell: Sequence[Product], chance: float) -> ProvenNumber | None:
        """What is proven of a sum of products but for `chance`; None where nothing is."""
        if not all(each.scope in self.family.covered for each in cell):
            return None
        added = [each for each in cell if all(mask.any() for mask in each.masks.values())]
        found = self._added(added, chance)
        if found is not None and len(added) <= 1:
            return found
        other = self._as_one(added, chance)
        several = [each for each in (found, other) if each is not None]
        return min(several, key=lambda each: each.width, default=None)

    def _added(self, cell: Sequence[Product], chance: float) -> ProvenNumber | None:
        """Each product proven at its share, and all of them added up."""
        value = deviation = width = 0.0
        for times, product in (piece for each in cell for piece in self._pieces(each)):
            found, share = self._known(product)
            if not share:
                return None
            size = abs(times)
            value, deviation = value + times * found.value, deviation + size * found.deviation
            width += size * linear_width(found.noise, self.effects.draws, chance * share)
        return ProvenNumber(value, deviation, width + FLOAT_SLACK * (1 + abs(value)))

    def _known(self, product: Product) -> tuple[LinearEstimate, float]:
        """The estimate of a product and its share, kept for the next time."""
        if product not in self._kept:
            if len(self._kept) >= MAX_KEPT_ESTIMATES:
                self._kept.clear()
            found = self.effects.estimate(product), self.family.share(product)
            self._kept[product] = found
        return self._kept[product]

    def _pieces(self, product: Product) -> list[tuple[float, Product]]:
        """A product that has a share, or its codes of equal weight as so many times a mask."""
        if len(product.weights) != 1 or self._known(product)[1]:
            return [(1.0, product)]
        ((attribute, weights),) = product.weights.items()
        levels = [each for each in np.unique(weights).tolist() if each]
        if len(levels) > MAX_LEVELS:
            return [(1.0, product)]
        masks = [{**product.masks, attribute: weights == each} for each in levels]
        return [
            (each, Product(product.shape, mask)) for each, mask in zip(levels, masks, strict=True)
        ]

    def _as_one(self, cell: Sequence[Product], chance: float) -> ProvenNumber | None:
        """All products as one set of weights, among all that there could be on a table."""
        scope = self.family.widest(tuple(sorted({a for each in cell for a in each.scope})))
        if scope is None or not all(isinstance(law, GaussianLaw) for law in self.effects.laws):
            return None
        found = self._estimate_as_one(cell, scope)
        if found is None:
            return None
        width = found.deviation * self._any_multiple(scope, chance)
        return ProvenNumber(
            found.value, found.deviation, width + FLOAT_SLACK * (1 + abs(found.value))
        )

    def _estimate_as_one(self, cell: Sequence[Product], scope: Scope) -> LinearEstimate | None:
        """The estimate of all products at once, where the scope is small enough."""
        sizes = [self.family.shape[attribute] for attribute in scope]
        if len(cell) == 1:
            return self.effects.estimate(cell[0])
        if math.prod(sizes) > MAX_DENSE_WEIGHTS:
            return None
        weights = sum((each.over(scope) for each in cell), start=np.zeros(math.prod(sizes)))
        return self.effects.estimate_dense(scope, weights.reshape(sizes))

    def prove_alone(self, cell: Sequence[Product], chance: float) -> ProvenNumber | None:
        """The same for a number that was named before anything was measured, by itself.

        Where its products are in no table together, each of them has a part of the chance.
        """
        if not all(each.scope in self.family.covered for each in cell):
            return None
        added = [each for each in cell if all(mask.any() for mask in each.masks.values())]
        scope = self.family.widest(tuple(sorted({a for each in added for a in each.scope})))
        one = None if scope is None or not added else self._estimate_as_one(added, scope)
        found = [self.effects.estimate(each) for each in added] if one is None else [one]
        draws = self.effects.draws
        value = sum(each.value for each in found)
        width = sum(linear_width(each.noise, draws, chance / len(found)) for each in found)
        deviation = sum(each.deviation for each in found)
        return ProvenNumber(value, deviation, width + FLOAT_SLACK * (1 + abs(value)))

    # Quotients ------------------------------------------------------------------------------------

    def mean(
        self, above: Product, below: Product, chance: float, *, alone: bool = False
    ) -> ProvenMean | None:
        """A declared mean around its centre, in units, by Fieller's argument.

        For the true quotient r, sum less r times count is nothing: the error of its estimate is
        one fixed combination of noise, and r is where that is within its width. The sum is a
        measured one where there is one and bins are wide, else that of middles, with room for what
        records are off them. `alone` is for a mean that was named before anything was measured.
        """
        if not all(isinstance(law, GaussianLaw) for law in self.effects.laws):
            return None
        share = self.family.mean_share(above, below)
        if not share:
            return None
        ((attribute, weights),) = above.weights.items()
        declared, sums = self.declared[attribute], self.sums.get(attribute)
        scale = _scale_of(weights, declared.centred)
        if scale is None or scale <= 0:
            return None
        masks = {a: mask for a, mask in below.masks.items() if a != attribute}
        own = below.masks.get(attribute)
        whole = own is None or bool(own[:-1].all())
        count, draws = self.effects.estimate(below), dict(self.effects.draws)
        if sums is not None and declared.slack and whole and sums.effects.covers(tuple(masks)):
            total = sums.effects.estimate(Product(below.shape, masks))
            apart = total.deviation**2 + count.deviation**2
            room, worth = float(sums.rounding / sums.unit), scale * float(sums.unit / declared.unit)
            draws |= sums.effects.draws
        else:
            total = self.effects.estimate(above)
            apart = self.effects.estimate(shifted_product(above, below, 1.0)).deviation ** 2
            room, worth = declared.slack * scale, 1.0
        variances = (total.deviation**2, count.deviation**2, apart)
        values = (total.value, count.value)
        ends = fieller(values, variances, _multiple(draws, chance * (1.0 if alone else share)))
        if ends is None:
            return None
        deviation = _quotient_deviation(values, variances)
        return ProvenMean(
            ((ends[0] - room) * worth, (ends[1] + room) * worth),
            values[0] / values[1] * worth,
            math.hypot(deviation, USUAL_SKEW * room) * worth,
        )

    def share(
        self, above: Product, below: Product, chance: float, *, alone: bool = False
    ) -> ProvenMean | None:
        """The mean of what two classes of records are worth, by the share that one of them has.

        It is a quotient of two counts, proven as the means of `mean` are, and from 0 to 1.
        """
        split = split_of(above, below)
        share = 0.0 if split is None else self.family.split_share(split)
        gaussian = all(isinstance(law, GaussianLaw) for law in self.effects.laws)
        if split is None or not share or not gaussian:
            return None
        part, whole, rest = map(self.effects.estimate, (split.part, split.whole, split.rest))
        variances = [each.deviation**2 for each in (part, whole, rest)]  # part less whole is -rest
        values = (part.value, whole.value)
        level = chance * (1.0 if alone else share)
        ends = fieller(values, variances, _multiple(self.effects.draws, level))
        inside, outside = split.worth
        if ends is None:
            return ProvenMean((outside, inside), (inside + outside) / 2, (inside - outside) / 2)
        low, high, value = (
            outside + (inside - outside) * min(1.0, max(0.0, each))
            for each in (*ends, values[0] / values[1])
        )
        error = _quotient_deviation(values, variances) * (inside - outside)
        return ProvenMean((low, high), value, error)

    # More attributes than any table has -----------------------------------------------------------

    def bounds_anything(self, cell: Sequence[Product]) -> bool:
        """Whether tables hold the attributes of each product, or pairs of those it counts by."""
        return all(
            each.scope in self.family.covered or (each.counts and self._holds_pairs(each.scope))
            for each in cell
        )

    def _holds_pairs(self, scope: Scope) -> bool:
        return len(scope) <= MAX_IMPLYING and all(
            pair in self.family.covered for pair in combinations(scope, 2)
        )

    def implied(self, cell: Sequence[Product], chance: float) -> Ends | None:
        """Bounds of a count over more attributes, from what tables prove of two at a time."""
        if not all(each.counts for each in cell):
            return None
        found = [self._implied_by_pairs(each, chance) for each in cell]
        ends = [each for each in found if each is not None]
        if len(ends) < len(found):
            return None
        return sum(low for low, _ in ends), sum(high for _, high in ends)

    def _implied_by_pairs(self, product: Product, chance: float) -> Ends | None:
        """Bonferroni's and Frechet's bounds of the people who are inside in every attribute."""
        scope = product.scope
        if len(scope) <= 2:
            number = self.prove((product,), chance)
            if number is None:
                return None
            return max(0.0, number.value - number.width), max(0.0, number.value + number.width)
        if not self._holds_pairs(scope):
            return None
        pairs = _Pairs(self, product, chance)
        low = max(
            pairs.at(i, j).low
            - sum(min(pairs.at(h, ~m).high for h in (i, j)) for m in scope if m not in (i, j))
            for i, j in combinations(scope, 2)
        )
        high = min(pairs.at(i, j).high for i, j in combinations(scope, 2))
        high = min(
            high,
            *(
                pairs.at(i, j).high - pairs.at(i, ~m).low + pairs.at(~j, ~m).high
                for i, j, m in permutations(scope, 3)
            ),
        )
        return max(0.0, low), max(0.0, high, low)

    def _any_multiple(self, scope: Scope, chance: float) -> float:
        """How many deviations no weights on the cells of a table pass.

        The errors of a table, each over its deviation, are a sub-Gaussian vector of n independent
        directions: its square passes n + 2 sqrt(n x) + 2 x with chance at most exp(-x).
        """
        cells = math.prod(self.family.shape[attribute] for attribute in scope)
        rarity = -math.log(chance * self.family.any_share(scope))
        return math.sqrt(cells + 2 * math.sqrt(cells * rarity) + 2 * rarity)


@dataclass(frozen=True)
class _Bounds:
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Proven counts of people by two attributes of a product, inside or (for ~a) outside of each.

    Where nothing is proven, no bounds stand.
    """

    proofs: TableProofs
    product: Product
    chance: float
    _known: dict[tuple[int, int], _Bounds] = field(default_factory=dict)

    def at(self, one: int, other: int) -> _Bounds:
        """The bounds of the people in one and the other."""
        key = (min(one, other), max(one, other))
        if key not in self._known:
            masks = dict(map(self._side, key))
            number = self.proofs.prove((Product(self.product.shape, masks),), self.chance)
            ends = (0.0, math.inf)
            if number is not None:
                ends = max(0.0, number.value - number.width), number.value + number.width
            self._known[key] = _Bounds(ends[0], max(ends))
        return self._known[key]

    def _side(self, which: int) -> tuple[int, Mask]:
        """An attribute, and the codes inside or outside of the product."""
        attribute = which if which >= 0 else ~which
        mask = self.product.masks[attribute]
        return attribute, mask if which >= 0 else ~mask


def _quotient_deviation(values: tuple[float, float], variances: Sequence[float]) -> float:
    """The deviation of a quotient, to first order."""
    ratio, (top, bottom, apart) = values[0] / values[1], variances
    spread = top - ratio * (top + bottom - apart) + ratio**2 * bottom
    return math.sqrt(max(0.0, spread)) / abs(values[1])


def _scale_of(weights: Floats, declared: Floats) -> float | None:
    """How many times the declared weights these are, where they are not nothing."""
    inside = weights != 0
    if not inside.any() or (declared[inside] == 0).any():
        return None
    scales = weights[inside] / declared[inside]
    return float(scales[0]) if np.allclose(scales, scales[0], rtol=1e-12, atol=0) else None


def _multiple(draws: Mapping[Law, int], chance: float) -> float:
    """How many deviations any combination of these draws is within."""
    if not draws:
        return 0.0
    unit = LinearEstimate(0.0, tuple(NoiseWeights(law, 1.0, 1.0) for law in draws))
    return linear_width(unit.noise, draws, chance) / unit.deviation * (1 + FLOAT_SLACK)


def fieller(
    values: tuple[float, float], variances: Sequence[float], multiple: float
) -> Ends | None:
    """The r with |above - r below| within so many deviations; None where they have no ends.

    `variances` are those of above, of below, and of above less below.
    """
    above, below = values
    top, bottom, apart = variances
    covariance = (top + bottom - apart) / 2
    square = multiple**2
    a = below**2 - square * bottom
    b = above * below - square * covariance
    c = above**2 - square * top
    inside = b * b - a * c
    if a <= 0 or inside < 0:
        return None
    root = math.sqrt(inside) * (1 + FLOAT_SLACK) + FLOAT_SLACK * abs(b)
    return (b - root) / a, (b + root) / a
