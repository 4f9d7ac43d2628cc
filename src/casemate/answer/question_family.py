"""Shares of the chance to fail, one for each question of a family, fixed before any noise is drawn.

Guarantee  The shares of all questions together are at most one. Measured noise is drawn once and
           then seen, so a question that is chosen afterwards is proven at its share of the chance:
           whoever chooses, and however, some question of the family fails with at most all of it.
Public     A share follows from the grid, the tables that are measured first and the weights that
           the policy declares; nothing that was measured or asked has a part in it.
Even       More than half goes evenly to the contiguous ranges over one and two attributes.
Simple     A prefix code over the rest: the total, then attributes and, for each, what stands first:
           a level, a range from an edge, a range, any set of codes by its size, the attribute's
           own weights. A question has the sum of the shares of all its descriptions.
Any        The last share is for all weights on the cells of a table at once.
docs/derivations/measured_proofs.md has the proofs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from casemate.grid import CellSplit, Floats, Mask, Product, Scope

EVEN_SHARE, SIMPLE_SHARE, ANY_SHARE = 10 / 16, 5 / 16, 1 / 16
"""Of the chance: for ranges alike, for simple questions, and for all weights at once."""

TOTAL_SHARE, MEANS_SHARE = 1 / 16, 1 / 4
"""Of the share for simple questions: for the number of people, and for means."""

EVERYBODY_SHARE = 1 / 16
"""Of the share for means: for those of everybody; three quarters of the rest are for those by one
attribute, the only ones that have measured sums, then three quarters of what is left, and so on."""

INNER_SHARE = 7 / 8
"""Of the even share, for ranges without the last code, which is that of NULL."""

LEVEL, EDGE, RANGE, SUBSET, WEIGHTED = 5 / 16, 4 / 16, 3 / 16, 2 / 16, 2 / 16
"""Of an attribute's share, for each way to describe what is asked of it."""

Weights = Mapping[int, Sequence[Floats]]
"""By attribute, the weights that the policy declares: what its codes are worth in sums."""


@dataclass(frozen=True, eq=False)
class QuestionFamily:
    """The questions that can be proven from tables of these scopes, each with its share."""

    shape: tuple[int, ...]
    scopes: tuple[Scope, ...]
    weights: Weights = field(default_factory=dict)

    @cached_property
    def covered(self) -> frozenset[Scope]:
        """All scopes of which every cell was measured."""
        return frozenset(
            part
            for scope in self.scopes
            for size in range(len(scope) + 1)
            for part in combinations(scope, size)
        )

    def share(self, product: Product) -> float:
        """The share of one product of the family; zero for one that is outside."""
        if product.scope not in self.covered:
            return 0.0
        factors = {a: product.factor(a) for a in product.scope}
        return EVEN_SHARE * self._even_share(product) + SIMPLE_SHARE * self._simple_share(factors)

    def any_share(self, scope: Scope) -> float:
        """The share of all weights on the cells of one attribute, or of a whole table."""
        if scope not in self._for_any:
            return 0.0
        return ANY_SHARE / len(self._for_any)

    def widest(self, scope: Scope) -> Scope | None:
        """The smallest scope with a share for all weights that holds this one."""
        holding = [each for each in self._for_any if set(scope) <= set(each)]
        return min(holding, key=lambda each: (self._cells(each), each), default=None)

    @cached_property
    def _for_any(self) -> frozenset[Scope]:
        single = {scope for scope in self.covered if len(scope) == 1}
        return frozenset(single | {scope for scope in self.scopes if scope})

    def _cells(self, scope: Scope) -> int:
        return math.prod(self.shape[attribute] for attribute in scope)

    # Ranges alike -------------------------------------------------------------------------------

    def _even_share(self, product: Product) -> float:
        if product.ranges is None or not 1 <= len(product.scope) <= 2:
            return 0.0
        if any(first == end for first, end in product.ranges):
            return 0.0
        ends = zip(product.scope, product.ranges, strict=True)
        inner = all(end < self.shape[a] for a, (_, end) in ends)
        every, within = self._ranges
        if inner:
            return INNER_SHARE / within
        return (1 - INNER_SHARE) / (every - within)

    @cached_property
    def _ranges(self) -> tuple[int, int]:
        """How many ranges over one and two attributes there are, and without last codes."""
        single = [scope for scope in self.covered if len(scope) == 1]
        pairs = [scope for scope in self.covered if len(scope) == 2]

        def number(less: int) -> int:
            of = {a: (n := self.shape[a] - less) * (n + 1) // 2 for (a,) in single}
            return sum(of.values()) + sum(of[a] * of[b] for a, b in pairs)

        return number(0), max(1, number(1))

    # Simple questions ---------------------------------------------------------------------------

    def _simple_share(self, factors: Mapping[int, Floats]) -> float:
        if not factors:
            return TOTAL_SHARE
        order = self._order_shares.get(len(factors), 0.0)
        return order * math.prod(self._factor_share(a, each) for a, each in factors.items())

    @cached_property
    def _order_shares(self) -> dict[int, float]:
        """For one, two, ... attributes: the share of each scope of as many, halving as they grow.

        Means, which are proven with their own numerator and denominator, have theirs apart.
        """
        most = max(map(len, self.covered), default=0)
        found = {}
        for order in range(1, most + 1):
            scopes = sum(len(scope) == order for scope in self.covered)
            halves = 2.0 ** -(order if order < most else order - 1)
            found[order] = (1 - TOTAL_SHARE - MEANS_SHARE) * halves / scopes
        return found

    def mean_share(self, above: Product, below: Product) -> float:
        """The share of the mean of a declared attribute over a set of codes of some attributes.

        What is divided are its first declared weights on the codes of the divisor, no more and no
        fewer. Half is for divisors with records whose number is NULL, half for those without.
        """
        if above.scope not in self.covered or len(above.weights) != 1:
            return 0.0
        ((attribute, weights),) = above.weights.items()
        declared = self.weights.get(attribute, ())
        masks = dict(below.masks)
        own = masks.pop(attribute, np.ones(weights.size, np.bool_))
        if not declared or not _is_multiple(above.factor(attribute), declared[0] * own):
            return 0.0
        others = {a: mask for a, mask in above.masks.items() if a != attribute}
        if others.keys() != masks.keys() or any((masks[a] != others[a]).any() for a in masks):
            return 0.0
        if not own[:-1].all():
            masks[attribute] = own
        return self._share_of_means * self._masks_share(masks) / 2

    def split_share(self, split: CellSplit) -> float:
        """The share of how many of some records are in a set of codes of one attribute.

        That of the others is known with it, so it has the larger of the shares of both.
        """
        place, whole = split.attribute, split.whole
        if tuple(sorted({*whole.scope, place})) not in self.covered:
            return 0.0
        sides = (each.factor(place) != 0 for each in (split.part, split.rest))
        own = max(map(_mask_share, sides)) / len(self.shape)
        return self._share_of_means * self._masks_share(whole.masks) * own

    @property
    def _share_of_means(self) -> float:
        """That of the means of one declared attribute, or of all shares of a whole."""
        return SIMPLE_SHARE * MEANS_SHARE / (len(self.weights) + 1)

    def _masks_share(self, masks: Mapping[int, Mask]) -> float:
        """Of sets of codes of some attributes, nothing asked of any of them included."""
        scopes = max(1, sum(len(scope) == len(masks) for scope in self.covered))
        order = (
            0.75 * 0.25 ** (len(masks) - 1) * (1 - EVERYBODY_SHARE) if masks else EVERYBODY_SHARE
        )
        return order / scopes * math.prod(map(_mask_share, masks.values()))

    def _factor_share(self, attribute: int, factor: Floats) -> float:
        """The share of what is asked of one attribute among all that could be."""
        mask = factor != 0
        if np.array_equal(factor, mask):
            return _mask_share(mask)
        declared = self.weights.get(attribute, ())
        found = [_declared_share(factor, each) for each in declared]
        return WEIGHTED * sum(found) / len(declared) if declared else 0.0


def _mask_share(mask: Mask) -> float:
    """The share of a set of codes that is neither empty nor all of them."""
    size, chosen = mask.size, np.flatnonzero(mask)
    count = chosen.size
    if not 0 < count < size:
        return 0.0
    share = SUBSET / (size - 1) / math.comb(size, count)
    if count == 1:
        share += LEVEL / size
    first, end = int(chosen[0]), int(chosen[-1]) + 1
    if end - first == count:
        share += RANGE / (size * (size + 1) // 2 - 1)
        if first == 0 or end >= size - 1:
            share += EDGE / _edges(size)
    return share


@lru_cache
def _edges(size: int) -> int:
    """How many ranges begin at the first code or end at the last, or at the one before it."""
    return sum(
        first == 0 or end >= size - 1
        for first in range(size)
        for end in range(first + 1, size + 1)
        if end - first < size
    )


def _is_multiple(factor: Floats, weights: Floats) -> bool:
    """Whether weights are others, not all nothing, times some number above 0."""
    place = int(np.argmax(np.abs(weights)))
    if not weights[place] or factor[place] / weights[place] <= 0:
        return False
    scaled = factor[place] / weights[place] * weights
    return bool(np.allclose(factor, scaled, rtol=1e-12, atol=0.0))


def _declared_share(factor: Floats, weights: Floats) -> float:
    """The share of a multiple of declared weights on some of the codes: half for all of them."""
    inside = (factor != 0) & (weights != 0)
    if not inside.any() or (factor[weights == 0] != 0).any():
        return 0.0
    place = int(np.argmax(np.abs(weights) * inside))
    scale = factor[place] / weights[place]
    if not np.allclose(factor[inside], scale * weights[inside], rtol=1e-12, atol=0.0):
        return 0.0
    masks = [inside, inside | (weights == 0)]  # codes that are worth nothing may be there or not
    if any(mask.all() for mask in masks):
        return 0.5
    return 0.5 * max(_mask_share(mask) for mask in masks)
