"""One dataset, open: its table, its ledger and transcript, and the construction over them."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from casemate.answer.answer import Spending, Standing
from casemate.answer.construction import Manners, OnlineConstruction
from casemate.answer.effort import MOST_CELLS
from casemate.answer.plan import BudgetPlan, Means
from casemate.answer.planner.comparison import chosen
from casemate.doors import Doorway, dataset_of, place_of_ledger
from casemate.errors import Misconfigured
from casemate.grid import PrivateCells, Relation, Scope
from casemate.privacy import tighter_epsilon
from casemate.privacy.ledger import Ledger
from casemate.privacy.noise import seeded_bits
from casemate.table import Budget, Exhausted, Policy, Protects, Role, Strategy, Table, Universe
from casemate.table.sources import bounded

SEEDED = "not private: seeded"
FIXED = "had every charge been fixed before the first answer"


@dataclass(frozen=True)
class Dataset:
    """A protected table with everything that answers questions about it."""

    table: Table
    universe: Universe
    doors: Doorway
    construction: OnlineConstruction
    notes: tuple[str, ...] = ()  # on everything that is said of it

    @property
    def policy(self) -> Policy:
        """What is public about the table."""
        return self.table.policy

    @property
    def plan(self) -> BudgetPlan:
        """How the budget is used."""
        return self.construction.plan

    @property
    def ledger(self) -> Ledger:
        """What may still be spent."""
        return self.doors.ledger

    def standing(self) -> Standing:
        """Where the budget stands."""
        terms, ledger, construction = self.ledger.terms, self.ledger, self.construction
        newest = self.doors.transcript.newest()
        construction.stand_in.catch_up(self.doors.transcript)
        surprises = construction.stand_in.surprises
        return Standing(
            dataset=terms.dataset,
            budget=Spending.of(terms.budget, terms),
            spent=Spending.of(ledger.spent().amount, terms),
            remaining=Spending.of(ledger.remaining(), terms),
            delta=terms.delta,
            neighbours=terms.neighbours,
            protects=terms.protects,
            strategy=self.plan.strategy,
            questions=0 if newest is None else newest.questions,
            surprises=surprises.total(),
            surprises_left=construction.runs_left,
            principals=dict(sorted(surprises.items())),
            statement=ledger.statement(),
            notes=self.notes,
        )

    def tightened(self, standing: Standing) -> Standing:
        """The same with the least epsilon that is known for what was charged so far."""
        if not standing.delta:
            return replace(standing, tighter_note="at delta 0 the sum is the least that is known")
        costs = [row.cost for row in self.ledger.history() if row.cost is not None]
        try:
            found = tighter_epsilon(costs, standing.delta)
        except Misconfigured as reason:
            return replace(standing, tighter_note=str(reason))
        if math.isinf(found):
            return replace(standing, tighter_note="something left without noise")
        return replace(standing, tighter_epsilon=found, tighter_note=FIXED)

    def close(self) -> None:
        """Let go of everything."""
        self.doors.close()
        self.table.close()


def durable(table: Table) -> Dataset:
    """A dataset whose ledger, transcript and secrets outlive the process, ready to be asked."""
    dataset = _durable(table)
    if dataset.doors.key is not None:
        dataset.table.source.relation()  # chooses the rows that count, before anything is charged
    return dataset


def _durable(table: Table) -> Dataset:
    budget = required_budget(table.policy)
    required_universe(table.policy)
    doors = Doorway.durable(table, budget)
    try:
        return assembled(table, budget, doors)
    except BaseException:
        doors.close()
        raise


def looked_at(table: Table) -> Dataset:
    """A dataset that nothing will be asked of: no ledger is made where there is none."""
    budget = required_budget(table.policy)
    where = place_of_ledger(table.policy, budget)
    if not isinstance(where, Path) or _is_there(where):
        return _durable(table)
    note = f"nothing was asked yet: there is no ledger {where}"
    return replace(assembled(table, budget, Doorway.in_memory(table, budget)), notes=(note,))


def _is_there(ledger: Path) -> bool:
    """Whether a ledger's file, or anything that stands beside one, is there."""
    if not ledger.parent.is_dir():
        return False
    return any(each.name.startswith(ledger.name) for each in ledger.parent.iterdir())


def simulated(table: Table, seed: int) -> Dataset:
    """A dataset in memory with seeded noise: for simulations, which protect nobody."""
    budget = required_budget(table.policy)
    doors = Doorway.in_memory(table, budget, bytes(32), seeded_bits(seed))
    return replace(assembled(table, budget, doors), notes=(SEEDED,))


def assembled(table: Table, budget: Budget, doors: Doorway) -> Dataset:
    """A dataset from its parts."""
    policy = table.policy
    universe, relation = required_universe(policy), Relation.of(policy, budget)
    if doors.key is not None:
        table = Table(policy, bounded(universe, table.source, doors.key))
    plan = chosen(Means.of(budget, relation), universe.shape, policy.answering)
    manners = Manners(
        float(policy.answering.confidence),
        policy.answering.ration,
        policy.answering.exhausted is Exhausted.UNVERIFIED,
    )
    construction = OnlineConstruction(
        plan,
        doors,
        PrivateCells.of(universe, table.source, doors.key),
        [attribute.name for attribute in universe.attributes],
        manners,
        public=_public(universe, budget),
    )
    return Dataset(table, universe, doors, construction)


def required_universe(policy: Policy) -> Universe:
    """The grid of a policy that has one, of a size that its strategy can measure."""
    universe = Universe.of(policy)
    if not universe.attributes:
        raise Misconfigured(
            f"no column of {dataset_of(policy)} can be asked about; declare `values`, or `min` and "
            f"`max`, for the columns that questions may use"
        )
    if policy.answering.strategy is Strategy.HISTOGRAM and universe.cells > MOST_CELLS:
        raise Misconfigured(
            f"`answer.strategy` is histogram, and the grid of {dataset_of(policy)} has more than "
            f"{MOST_CELLS:,} cells to measure; declare fewer bins, or choose another strategy"
        )
    return universe


def required_budget(policy: Policy) -> Budget:
    """The budget of a policy that has one."""
    if policy.budget is None:
        raise Misconfigured(
            f"{dataset_of(policy)} has no budget, so nothing can be answered privately; write a "
            f"policy with a [budget] section (casemate policy init drafts one)"
        )
    return policy.budget


def _public(universe: Universe, budget: Budget) -> Scope:
    """The attributes of which everything is public."""
    if budget.protects is not Protects.PRIVATE_COLUMNS:
        return ()
    return tuple(i for i, each in enumerate(universe.attributes) if each.role is Role.PUBLIC)
