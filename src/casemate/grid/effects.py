"""The best estimate of a question from all measured tables at once, and the noise that is in it.

Source     Orthogonal effects of factorial tables: the weights of a question on the cells of some
           attributes are split into effects (a total, main effects, interactions), and every table
           that holds the attributes of an effect estimates it with noise of its own.
Guarantee  An estimate is the best linear unbiased one, whatever the scopes and the noises of the
           tables: estimates of an effect are independent, so they are pooled by inverse variance.
           The weights of the noise depend on scopes and laws alone, never on what was measured.
Cost       Effects are pooled once; an estimate is a sum over one fitted table, and its noise one
           product for each effect.
docs/derivations/measured_proofs.md has the proofs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from casemate.grid.measured_table import MeasuredTable
from casemate.grid.product import Floats, Product, Scope, contract
from casemate.privacy.noise import Law, NoiseWeights, variance

MAX_KEPT_CELLS = 2**22
"""Cells of fitted tables that are kept in memory."""


@dataclass(frozen=True)
class LinearEstimate:
    """An unbiased number, and by which weights of which noise it is off."""

    value: float
    noise: tuple[NoiseWeights, ...] = ()

    @property
    def deviation(self) -> float:
        """The standard deviation of its error."""
        return math.sqrt(sum(each.squares * variance(each.law) for each in self.noise))


@dataclass(frozen=True, eq=False)
class _Effect:
    """What all tables together say of one effect, and the weights of their noise in it.

    `squares` and `largest` are by law, for weights of one on the cells of the effect.
    """

    values: Floats
    squares: tuple[float, ...]
    largest: tuple[float, ...]


@dataclass(eq=False)
class Effects:
    """Tables of one measure over whole codes, pooled effect by effect."""

    shape: tuple[int, ...]
    tables: tuple[MeasuredTable, ...]
    _pooled: dict[Scope, _Effect] = field(default_factory=dict)
    _fitted: dict[Scope, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(each.question.classes.whole for each in self.tables):
            raise ValueError("effects are pooled from tables of all codes")

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """The laws of the noise there is."""
        return tuple(dict.fromkeys(each.law for each in self.tables if each.law is not None))

    @cached_property
    def draws(self) -> dict[Law, int]:
        """How many draws of each law there were in all."""
        found = dict.fromkeys(self.laws, 0)
        for table in self.tables:
            if table.law is not None:
                found[table.law] += table.values.size
        return found

    def covers(self, scope: Scope) -> bool:
        """Whether all effects of these attributes were measured."""
        wanted = set(scope)
        return any(wanted <= set(each.question.classes.scope) for each in self.tables)

    # Estimates ----------------------------------------------------------------------------------

    def estimate(self, product: Product) -> LinearEstimate:
        """The best estimate of a product over attributes that are covered."""
        factors = [product.factor(attribute) for attribute in product.scope]
        value = float(contract(self.fitted(product.scope), factors))
        means = [float(each.mean()) for each in factors]
        rests = [each - mean for each, mean in zip(factors, means, strict=True)]
        squares = [float(each @ each) for each in rests]
        tops = [float(np.abs(each).max()) for each in rests]

        def parts() -> Iterator[tuple[Scope, float, float]]:
            for places in _subsets(tuple(range(len(factors)))):
                out = [abs(mean) for place, mean in enumerate(means) if place not in places]
                outside = math.prod(out)
                square = outside**2 * math.prod(squares[place] for place in places)
                top = outside * math.prod(tops[place] for place in places)
                yield tuple(product.scope[place] for place in places), square, top

        return LinearEstimate(value, self._noise(parts()))

    def estimate_dense(self, scope: Scope, weights: Floats) -> LinearEstimate:
        """The same for any weights on the cells of covered attributes."""
        value = float((weights * self.fitted(scope)).sum())

        def parts() -> Iterator[tuple[Scope, float, float]]:
            for places in _subsets(tuple(range(len(scope)))):
                others = tuple(axis for axis in range(len(scope)) if axis not in places)
                rest = _centred(np.asarray(weights.mean(axis=others)))
                effect = tuple(scope[place] for place in places)
                yield effect, float((rest**2).sum()), float(np.abs(rest).max())

        return LinearEstimate(value, self._noise(parts()))

    def fitted(self, scope: Scope) -> Floats:
        """The table over a scope that all measured ones together say is most likely.

        Fitted tables agree on the margins that they share. Entries may be below zero.
        """
        if scope not in self._fitted:
            sizes = [self.shape[attribute] for attribute in scope]
            found = np.zeros(sizes)
            for effect in _subsets(scope):
                others = math.prod(self.shape[a] for a in scope if a not in effect)
                axes = [size if a in effect else 1 for a, size in zip(scope, sizes, strict=True)]
                found += self._effect(effect).values.reshape(axes) / others
            kept = sum(each.size for each in self._fitted.values())
            if kept + found.size > MAX_KEPT_CELLS:
                self._fitted.clear()
            self._fitted[scope] = found
        return self._fitted[scope]

    # Effects ------------------------------------------------------------------------------------

    def _noise(self, parts: Iterator[tuple[Scope, float, float]]) -> tuple[NoiseWeights, ...]:
        """The noise of a question by the squares and the largest of its weights in each effect."""
        squares, largest = [0.0] * len(self.laws), [0.0] * len(self.laws)
        for scope, square, top in parts:
            effect = self._effect(scope)
            for place in range(len(self.laws)):
                squares[place] += square * effect.squares[place]
                largest[place] += top * effect.largest[place]
        both = zip(self.laws, squares, largest, strict=True)
        return tuple(NoiseWeights(law, square, top) for law, square, top in both)

    def _effect(self, scope: Scope) -> _Effect:
        if scope not in self._pooled:
            self._pooled[scope] = self._pool(scope)
        return self._pooled[scope]

    def _pool(self, scope: Scope) -> _Effect:
        """Pool all tables that hold an effect, by inverse variance; exact ones stand alone."""
        holding = [each for each in self.tables if set(scope) <= set(each.question.classes.scope)]
        if not holding:
            raise ValueError(f"no table holds the attributes {scope}")
        added = [each.values.size / math.prod(self.shape[a] for a in scope) for each in holding]
        spread = [variance(each.law) * cells for each, cells in zip(holding, added, strict=True)]
        precise = [float(v == 0) for v in spread] if 0 in spread else [1 / v for v in spread]
        shares = [each / sum(precise) for each in precise]
        values = sum(
            (
                share * _centred(_margin(table, scope))
                for share, table in zip(shares, holding, strict=True)
            ),
            start=np.zeros([self.shape[a] for a in scope]),
        )
        rows = list(zip(holding, added, shares, strict=True))
        squares = tuple(
            sum(share**2 * cells for table, cells, share in rows if table.law == law)
            for law in self.laws
        )
        largest = tuple(
            max((share for table, _, share in rows if table.law == law), default=0.0)
            for law in self.laws
        )
        return _Effect(values, squares, largest)


def _subsets(scope: Scope) -> Iterator[Scope]:
    for size in range(len(scope) + 1):
        yield from combinations(scope, size)


def _margin(table: MeasuredTable, scope: Scope) -> Floats:
    others = tuple(i for i, a in enumerate(table.question.classes.scope) if a not in scope)
    return np.asarray(table.values.sum(axis=others))


def _centred(table: Floats) -> Floats:
    """A table without its means along each axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
