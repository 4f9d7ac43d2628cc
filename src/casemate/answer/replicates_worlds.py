"""Worlds in which the stand-in is the truth: everything that was measured, with fresh noise.

Source     The parametric bootstrap: what was done to the table is done again to the stand-in.
Guarantee  None is claimed. It is a deterministic function of what is public: the generator's key
           is a digest of the measurements, so a replay of a transcript gives the same bits.
Cost       A draw for each measured cell and world, once; one look at the stand-in's marginals.

The first world is the real one: it holds what was really measured. Every array here has one axis
for each attribute, and the worlds last.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from casemate.surrogate.product import Floats, MeasuredMarginal, Measurement, Product, Scope
from casemate.surrogate.projection import LEAST
from casemate.surrogate.replay import WIDE

LEAST_VARIANCE = 1e-12
"""An exact number counts as one of this variance: it counts most, and nothing is infinite."""


MOST_NUMBERS = 2**24
"""Numbers of all tables in all worlds; a table beyond that is not drawn again."""


class StandIn(Protocol):
    """What is looked at of a surrogate."""

    @property
    def total(self) -> float:
        """How many records it believes there are."""
        ...

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        ...

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope."""
        ...

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """Its counts over many scopes."""
        ...


class Worlds:
    """The measurements of the real world and of `number` others, in the form a fit takes.

    `total_variance` is how well the total was known before the measurements, as a stand-in takes
    it. `totals` holds the total of each world and `wanted` its tables, as shares of that.
    """

    def __init__(
        self,
        stand_in: StandIn,
        measurements: Sequence[Measurement],
        total_variance: float,
        number: int,
    ) -> None:
        self.number = number
        self.key = _digest(measurements, total_variance)
        self.tables = _fitting(
            [m for m in measurements if isinstance(m, MeasuredMarginal)], MOST_NUMBERS // number
        )
        self.products = [m for m in measurements if not isinstance(m, MeasuredMarginal)]
        believed = stand_in.marginals([table.marginal.scope for table in self.tables])
        noised = [
            self._measured(place, believed[t.marginal.scope], t.values, t.variance)
            for place, t in enumerate(self.tables)
        ]
        self.totals = self._totals(stand_in.total, total_variance, noised)
        self.wanted = self._wanted(noised)

    def values(self, place: int, believed: float) -> Floats:
        """The answers to a single measured question in all worlds, in counts."""
        measured = self.products[place]
        exact, real = np.array(believed), np.array(measured.value)
        return self._measured(len(self.tables) + place, exact, real, measured.variance)

    def _measured(self, place: int, exact: Floats, real: Floats, variance: float) -> Floats:
        """One measurement in all worlds; no other measurement moves its noise."""
        draws = np.random.Generator(np.random.Philox(key=self.key, counter=place << 128))
        noise = draws.standard_normal((*exact.shape, 1 + self.number))
        noised: Floats = exact[..., None] + math.sqrt(variance) * noise
        noised[..., 0] = real
        return noised

    def _totals(self, believed: float, variance: float, noised: Sequence[Floats]) -> Floats:
        """The number of records, joined as a stand-in joins all that is known of it."""
        if variance == 0:
            return np.full(1 + self.number, believed)
        whole = [place for place, each in enumerate(self.products) if not each.product.scope]
        shown = [self.values(place, believed) for place in whole]
        shown += [values.sum(axis=tuple(range(values.ndim - 1))) for values in noised]
        variances = [self.products[place].variance for place in whole]
        variances += [t.variance * t.values.size for t in self.tables]
        if math.isfinite(variance) or not shown:  # a total that nothing is known of may be anything
            variance, one = min(variance, believed**2), np.array(believed)
            place = len(self.tables) + len(self.products)
            shown.append(self._measured(place, one, one, variance))
            variances.append(variance)
        weights = [1 / max(each, LEAST_VARIANCE) for each in variances]
        totals = np.maximum(np.average(np.stack(shown), axis=0, weights=weights), 1.0)
        totals[0] = believed
        return np.asarray(totals)

    def _wanted(self, noised: Sequence[Floats]) -> list[Floats]:
        """Narrow tables agree with each other and are distributions; wide ones are as measured."""
        wanted = [values / self.totals for values in noised]
        narrow = [place for place, t in enumerate(self.tables) if len(t.marginal.scope) < WIDE]
        moved = agreed_worlds(
            [self.tables[place] for place in narrow], [noised[p] for p in narrow], self.totals
        )
        for place, values in zip(narrow, moved, strict=True):
            wanted[place] = as_distributions(values / self.totals)
        return wanted


def _fitting(tables: Sequence[MeasuredMarginal], cells: int) -> list[MeasuredMarginal]:
    """The tables that have no more cells together, the first ones first."""
    kept = []
    for table in tables:
        cells -= table.values.size
        if cells >= 0:
            kept.append(table)
    return kept


def _digest(measurements: Sequence[Measurement], total_variance: float) -> int:
    """A key for generators that depends on everything that was measured."""
    digest = hashlib.sha256(repr(float(total_variance)).encode())
    for measured in measurements:
        if isinstance(measured, MeasuredMarginal):
            digest.update(repr((measured.marginal.scope, float(measured.variance))).encode())
            digest.update(measured.values.tobytes())
        else:
            digest.update(repr(sorted(measured.to_dict().items())).encode())
    return int.from_bytes(digest.digest()[:16], "little")


def agreed_worlds(
    tables: Sequence[MeasuredMarginal], values: Sequence[Floats], totals: Floats
) -> list[Floats]:
    """What `casemate.surrogate.marginals.agreed` does, in all worlds at once."""
    scopes = [table.marginal.scope for table in tables]
    moved = [_with_total(each, totals) for each in values]
    for attribute in sorted({a for scope in scopes for a in scope}):
        holding = [place for place, scope in enumerate(scopes) if attribute in scope]
        sides = [_other_axes(scopes[place], attribute) for place in holding]
        shown = [moved[place].sum(axis=axes) for place, axes in zip(holding, sides, strict=True)]
        rows = [one.size / moved[place].size for place, one in zip(holding, shown, strict=True)]
        exact = [max(tables[place].variance, LEAST_VARIANCE) for place in holding]
        precise = [row / variance for row, variance in zip(rows, exact, strict=True)]
        mean = np.average(np.stack(shown), axis=0, weights=precise)
        for place, axes, one, row in zip(holding, sides, shown, rows, strict=True):
            moved[place] = moved[place] + np.expand_dims((mean - one) * row, axes)
    return moved


def _with_total(values: Floats, totals: Floats) -> Floats:
    axes = tuple(range(values.ndim - 1))
    return np.asarray(values + (totals - values.sum(axis=axes)) / math.prod(values.shape[:-1]))


def _other_axes(scope: Scope, attribute: int) -> tuple[int, ...]:
    return tuple(axis for axis, a in enumerate(scope) if a != attribute)


def as_distributions(shares: Floats) -> Floats:
    """The nearest distributions, no cell without mass, as the stand-in's fit has them."""
    flat = shares.reshape(-1, shares.shape[-1])
    falling = np.sort(flat, axis=0)[::-1]
    surplus = np.cumsum(falling, axis=0) - 1.0
    ranks = np.arange(1, len(flat) + 1)[:, None]
    kept = np.count_nonzero(falling * ranks > surplus, axis=0)
    over = surplus[kept - 1, np.arange(flat.shape[1])] / kept
    wanted = np.maximum(flat - over, LEAST / len(flat))
    return np.asarray((wanted / wanted.sum(axis=0)).reshape(shares.shape))
