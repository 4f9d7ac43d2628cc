"""A small table of counts and what is measured of it, for every kind of stand-in.

`salt` keeps the draws of one test file apart from those of another.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from casemate.grid import Floats, Marginal, MeasuredMarginal, Product, Scope
from casemate.surrogate.dense import marginals

SHAPE, TOTAL = (3, 4, 2, 3), 5_000.0
EVERYTHING = (0, 1, 2, 3)
PAIRS: list[Scope] = list(itertools.combinations(range(4), 2))
TRIPLES: list[Scope] = list(itertools.combinations(range(4), 3))
SCOPES: list[Scope] = [(), *((a,) for a in range(4)), *PAIRS, *TRIPLES, EVERYTHING]


class Tables:
    """Counts, measurements and questions that follow from seeds."""

    def __init__(self, salt: int) -> None:
        self._salt = salt

    def counts(self, seed: int, shape: tuple[int, ...] = SHAPE, total: int = 5_000) -> Floats:
        """A skewed table."""
        draw = np.random.default_rng([seed, self._salt + 1])
        shares = draw.dirichlet(np.full(math.prod(shape), 0.3))
        return draw.multinomial(total, shares).reshape(shape).astype(float)

    def measured(
        self, cells: Floats, scopes: Sequence[Scope], deviation: float = 0.0, seed: int = 0
    ) -> list[MeasuredMarginal]:
        """Its marginals with noise."""
        draw, exact = np.random.default_rng([seed, self._salt + 2]), marginals(cells, scopes)
        return [
            MeasuredMarginal(
                Marginal(s), exact[s] + draw.normal(0, deviation, exact[s].shape), deviation**2
            )
            for s in scopes
        ]

    def question(self, seed: int, scope: Scope, weighted: bool = False) -> Product:
        """A product over a scope."""
        draw = np.random.default_rng([seed, self._salt + 3])
        masks = {a: draw.random(SHAPE[a]) < 0.6 for a in scope}
        weights = {scope[0]: draw.normal(0, 3, SHAPE[scope[0]])} if weighted else {}
        return Product(SHAPE, masks, weights)

    def every_question(self, seed: int) -> list[Product]:
        """One for each scope, with and without weights."""
        return [
            self.question(seed, scope, weighted)
            for scope in SCOPES[1:]
            for weighted in (False, True)
        ]
