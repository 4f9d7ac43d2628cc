"""A public table that the stand-in starts from, in place of the assumption that all is alike.

Guarantee  Nothing private has a part in it: the policy says that the table is public, and its
           content is part of the edition, so whoever replays a transcript starts from the same.
Mixed      Most of it is the table's own distribution; a small part is that of its columns as if
           they were independent, and a smaller one is even: what is measured can then correct it
           in every cell, also where the public table has nobody.
"""

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from casemate.errors import Misconfigured
from casemate.grid import Floats, PrivateCells
from casemate.surrogate import MAX_DENSE_CELLS, DailyStandIn, stand_in_for
from casemate.table import Policy, Table, Universe

INDEPENDENT_SHARE, EVEN_SHARE = 0.09, 0.01
"""How much of a prior is of independent columns, and how much is the same in every cell."""


@dataclass(frozen=True)
class PublicPrior:
    """The public table of a policy, or none: read at most once, and before anything is charged."""

    policy: Policy
    universe: Universe

    def make(self, shape: tuple[int, ...], total: float, variance: float) -> DailyStandIn:
        """A stand-in that starts from it."""
        return stand_in_for(shape, total, variance, prior=self.shares)

    @cached_property
    def shares(self) -> Floats | None:
        """The share of each cell; None where all are alike."""
        where = self.policy.answering.prior
        return None if where is None else _read(where, self.policy, self.universe)


def _read(where: str, policy: Policy, universe: Universe) -> Floats:
    if universe.cells > MAX_DENSE_CELLS:
        raise Misconfigured(
            f"`answer.prior` needs a grid of at most {MAX_DENSE_CELLS:,} cells, and this policy's "
            f"has more; declare fewer bins or columns, or leave it out"
        )
    described = replace(policy, source=where, key=None, person=None, public_tables=(), path=None)
    with Table.open(described, by_policy=True) as table:
        rows = replace(universe, person=None, keyed=False)
        counts = PrivateCells.of(rows, table.source, None).marginal(tuple(range(len(rows.shape))))
    people = int(counts.sum())
    if not people:
        raise Misconfigured(f"`answer.prior` names {where}, which has no rows; leave it out")
    return mixed(counts / people)


def mixed(shares: Floats) -> Floats:
    """The shares with a little of everything, so that no cell is without mass.

    >>> mixed(np.array([[0.5, 0.0], [0.0, 0.5]])).round(3).tolist()
    [[0.475, 0.025], [0.025, 0.475]]
    """
    axes = range(shares.ndim)
    alone = [shares.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes]
    independent = reduce(np.multiply.outer, alone)
    own = 1 - INDEPENDENT_SHARE - EVEN_SHARE
    found: Floats = own * shares + INDEPENDENT_SHARE * independent + EVEN_SHARE / shares.size
    return found
