"""A small private table in memory, doors onto it, and a construction over both."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.answer.construction import USUAL, Manners, OnlineConstruction
from casemate.answer.plan import BudgetPlan, Means, plan_of
from casemate.doors import Doorway, Edition, MemorySecrets, Transcript, open_transcript
from casemate.grid import GridQuestion, LinearCells, PrivateCells, Product, Relation, Scope
from casemate.grid.classes import merged
from casemate.privacy import Currency
from casemate.privacy.ledger import Ledger, open_ledger
from casemate.privacy.noise import Sources, discrete_gaussian, discrete_laplace, seeded_bits
from casemate.privacy.noise.noise import silence
from casemate.table import Answering, Budget

EDITION = Edition("p", "v")
SHAPE = (4, 3, 2)
NAMES = ("age", "kind", "ill")


def cells_of(codes: NDArray[np.int64], shape: tuple[int, ...] = SHAPE) -> PrivateCells:
    """The cells of a table of codes, one row a record."""

    def count_scope(scope: Scope) -> NDArray[np.int64]:
        sizes = [shape[a] for a in scope]
        table = np.zeros(sizes, np.int64)
        np.add.at(table, tuple(codes[:, a] for a in scope), 1) if scope else table.fill(len(codes))
        return table

    return PrivateCells(shape, lambda classes: merged(count_scope(classes.scope), classes))


def people(number: int, seed: int = 1, shape: tuple[int, ...] = SHAPE) -> NDArray[np.int64]:
    """Records whose attributes depend on each other."""
    random = np.random.default_rng(seed)
    first = random.integers(0, shape[0], number)
    rest = [
        (first * (i + 1) + random.integers(0, width, number) // (i + 2)) % width
        for i, width in enumerate(shape[1:])
    ]
    return np.stack([first, *rest], axis=1).astype(np.int64)


def means(epsilon: float = 1.0, relation: Relation = Relation()) -> Means:  # noqa: B008 - frozen
    return Means.of(Budget(Fraction(epsilon), Fraction(1, 10**6)), relation)


def counting(masks: dict[int, Sequence[int]], shape: tuple[int, ...] = SHAPE) -> GridQuestion:
    """How many records have these codes."""
    chosen = {a: np.isin(np.arange(shape[a]), codes) for a, codes in masks.items()}
    return GridQuestion((LinearCells(((Product(shape, chosen),),)),))


@dataclass
class World:
    """What outlives a process, and constructions over it, made anew as after a restart."""

    cells: PrivateCells
    plan: BudgetPlan
    manners: Manners = USUAL
    seed: int | None = 7  # None: no noise at all
    names: Sequence[str] = NAMES
    public: Scope = ()
    ledger: Ledger = field(init=False)
    transcript: Transcript = field(default_factory=lambda: open_transcript(":memory:"))
    secrets: MemorySecrets = field(default_factory=MemorySecrets)

    def __post_init__(self) -> None:
        epsilon = Fraction(1000)
        facts: dict[str, Any] = {"dataset": "d", "policy": "p", "epsilon": epsilon}
        if self.plan.currency is Currency.RHO:
            facts["delta"] = Fraction(1, 10**6)
        self.ledger = open_ledger(":memory:", **facts)
        runs = count()
        laplace = gaussian = silence
        if self.seed is not None:
            bits = seeded_bits(self.seed)
            laplace = partial(discrete_laplace, bits=bits)
            gaussian = partial(discrete_gaussian, bits=bits)
        self.doors = Doorway(
            self.ledger,
            self.transcript,
            self.secrets,
            EDITION,
            Sources(gaussian, laplace),
            laplace,
            lambda: f"r{next(runs)}",
        )

    def construction(self, **changes: Any) -> OnlineConstruction:
        manners = replace(self.manners, **changes)
        return OnlineConstruction(
            self.plan, self.doors, self.cells, self.names, manners, public=self.public
        )


def world(
    codes: NDArray[np.int64],
    *,
    shape: tuple[int, ...] = SHAPE,
    answering: Answering = Answering(),  # noqa: B008 - frozen
    relation: Relation = Relation(),  # noqa: B008 - frozen
    epsilon: float = 1.0,
    **changes: Any,
) -> World:
    """A world over a table of codes, with the plan of its budget."""
    plan = plan_of(means(epsilon, relation), shape, answering)
    return World(cells_of(codes, shape), plan, **changes)
