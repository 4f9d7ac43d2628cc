"""A small table of counts and what is measured of it, for every kind of stand-in."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from casemate.grid import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    Scope,
)
from casemate.surrogate.histogram import marginals

SHAPE, TOTAL = (3, 4, 2, 3), 5_000.0
EVERYTHING = (0, 1, 2, 3)
PAIRS: list[Scope] = list(itertools.combinations(range(4), 2))
TRIPLES: list[Scope] = list(itertools.combinations(range(4), 3))
SCOPES: list[Scope] = [(), *((a,) for a in range(4)), *PAIRS, *TRIPLES, EVERYTHING]


def counts(seed: int, shape: tuple[int, ...] = SHAPE, total: int = 5_000) -> Floats:
    """A skewed table."""
    draw = np.random.default_rng([seed, 11])
    shares = draw.dirichlet(np.full(math.prod(shape), 0.3))
    return draw.multinomial(total, shares).reshape(shape).astype(float)


def measured(
    cells: Floats, scopes: Sequence[Scope], deviation: float = 0.0, seed: int = 0
) -> list[MeasuredMarginal]:
    """Marginals of a table with noise."""
    draw, exact = np.random.default_rng([seed, 12]), marginals(cells, scopes)
    return [
        MeasuredMarginal(
            Marginal(s), exact[s] + draw.normal(0, deviation, exact[s].shape), deviation**2
        )
        for s in scopes
    ]


def question(seed: int, scope: Scope, weighted: bool = False) -> Product:
    """A product over a scope."""
    draw = np.random.default_rng([seed, 13])
    masks = {a: draw.random(SHAPE[a]) < 0.6 for a in scope}
    weights = {scope[0]: draw.normal(0, 3, SHAPE[scope[0]])} if weighted else {}
    return Product(SHAPE, masks, weights)


def interval(seed: int, scope: Scope) -> Product:
    """A range of codes on each attribute of a scope, which may be empty."""
    draw, masks = np.random.default_rng([seed, 8]), {}
    for a in scope:
        first, end = sorted(draw.integers(0, SHAPE[a] + 1, 2))
        masks[a] = (np.arange(SHAPE[a]) >= first) & (np.arange(SHAPE[a]) < end)
    return Product(SHAPE, masks)


def every_question(seed: int) -> list[Product]:
    """For each scope products with and without weights, and ranges."""
    made = [question(seed, scope, weighted) for scope in SCOPES[1:] for weighted in (False, True)]
    return [*made, *(interval(seed + k, scope) for scope in SCOPES for k in range(3))]


def transcript(seed: int) -> list[Measurement]:
    """Questions, weighted ones, tables of one to three attributes and a total, in some order."""
    cells = counts(seed)
    made: list[Measurement] = [*measured(cells, [*PAIRS[:3], *TRIPLES[:2], (1,)], 20.0, seed)]
    for k, scope in enumerate([(0,), (1, 3), (0, 1, 2), (2,), (0, 3), EVERYTHING]):
        product = question(seed + k, scope, weighted=k % 2 == 1)
        made.append(MeasuredProduct(product, float(cells.ravel() @ product.dense()), 9.0))
    made.append(MeasuredProduct(Product(SHAPE, {}), 5_020.0, 400.0))
    return [made[i] for i in np.random.default_rng([seed, 14]).permutation(len(made))]
