"""A small private table in memory, doors onto it, and a construction over both."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from grid.small_grid import NAMES, SHAPE, cells_of
from numpy.typing import NDArray

from casemate.answer.budget_plan import BudgetPlan, Means, plan_of
from casemate.answer.construction import DEFAULT_OPTIONS, AnsweringOptions, OnlineConstruction
from casemate.doors import Doorway, Edition, MemorySecrets, Transcript, open_transcript
from casemate.grid import PrivateCells, Relation, Scope
from casemate.privacy import Currency
from casemate.privacy.ledger import Ledger, open_ledger
from casemate.privacy.noise import Sources, discrete_gaussian, discrete_laplace, seeded_bits
from casemate.privacy.noise.noise import silence
from casemate.table import Answering, Budget

EDITION = Edition("p", "v")


def means(epsilon: float = 1.0, relation: Relation = Relation()) -> Means:  # noqa: B008 - frozen
    return Means.of(Budget(Fraction(epsilon), Fraction(1, 10**6)), relation)


@dataclass
class World:
    """What outlives a process, and constructions over it, made anew as after a restart."""

    cells: PrivateCells
    plan: BudgetPlan
    options: AnsweringOptions = DEFAULT_OPTIONS
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
        options = replace(self.options, **changes)
        return OnlineConstruction(
            self.plan, self.doors, self.cells, self.names, options, public=self.public
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
