"""One dataset, open: its table, its ledger and transcript, and the construction over them."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from casemate.answer.answer import Spending, Standing
from casemate.answer.budget_plan import Means, public_attributes, required_budget, required_universe
from casemate.answer.construction import AnsweringOptions, OnlineConstruction
from casemate.answer.planner.comparison import choose_plan
from casemate.answer.work_limits import MAX_MEASURED_CELLS
from casemate.doors import Doorway, dataset_of, ledger_of
from casemate.errors import Misconfigured
from casemate.grid import PrivateCells, Relation
from casemate.privacy import tighter_epsilon
from casemate.privacy.noise import seeded_bits
from casemate.table import Budget, Exhausted, Policy, Strategy, Table, Universe
from casemate.table.sources import bound_contribution

SEEDED_NOTE = "not private: seeded"
FIXED_CHARGES_NOTE = "had every charge been fixed before the first answer"


@dataclass(frozen=True)
class Dataset:
    """A protected table with everything that answers questions about it."""

    table: Table
    universe: Universe
    doors: Doorway
    construction: OnlineConstruction
    notes: tuple[str, ...] = ()  # on everything that is said of it

    def standing(self) -> Standing:
        """Where the budget stands."""
        ledger, construction = self.doors.ledger, self.construction
        terms = ledger.terms
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
            strategy=construction.plan.strategy,
            questions=0 if newest is None else newest.questions,
            surprises=surprises.total(),
            surprises_left=construction.runs_left,
            principals=dict(sorted(surprises.items())),
            statement=ledger.statement(),
            notes=self.notes,
        )

    def with_tighter_epsilon(self, standing: Standing) -> Standing:
        """The same with the least epsilon that is known for what was charged so far."""
        if not standing.delta:
            return replace(standing, tighter_note="at delta 0 the sum is the least that is known")
        costs = [row.cost for row in self.doors.ledger.history() if row.cost is not None]
        try:
            found = tighter_epsilon(costs, standing.delta)
        except Misconfigured as reason:
            return replace(standing, tighter_note=str(reason))
        if math.isinf(found):
            return replace(standing, tighter_note="something left without noise")
        return replace(standing, tighter_epsilon=found, tighter_note=FIXED_CHARGES_NOTE)

    def close(self) -> None:
        """Let go of everything."""
        self.doors.close()
        self.table.close()


def open_durable(table: Table, *, to_ask: bool = True) -> Dataset:
    """A dataset whose ledger, transcript and secrets outlive the process."""
    budget = required_budget(table.policy)
    universe = _measurable_universe(table.policy)  # before there is a ledger
    doors = Doorway.durable(table, budget)
    try:
        dataset = assemble(table, universe, budget, doors)
    except BaseException:
        doors.close()
        raise
    if to_ask and doors.key is not None:
        dataset.table.source.relation()  # chooses the rows that count, before anything is charged
    return dataset


def open_for_looking(table: Table) -> Dataset:
    """A dataset that nothing will be asked of: no ledger is made where there is none."""
    budget = required_budget(table.policy)
    where = ledger_of(table.policy, budget)
    if not isinstance(where, Path) or _is_there(where):
        return open_durable(table, to_ask=False)
    note = f"nothing was asked yet: there is no ledger {where}"
    doors = Doorway.in_memory(table, budget)
    return assemble(table, _measurable_universe(table.policy), budget, doors, (note,))


def _is_there(ledger: Path) -> bool:
    """Whether a ledger's file, or anything that stands beside one, is there."""
    if not ledger.parent.is_dir():
        return False
    return any(each.name.startswith(ledger.name) for each in ledger.parent.iterdir())


def open_simulated(table: Table, seed: int) -> Dataset:
    """A dataset in memory with seeded noise: for simulations, which protect nobody."""
    budget = required_budget(table.policy)
    doors = Doorway.in_memory(table, budget, bytes(32), seeded_bits(seed))
    return assemble(table, _measurable_universe(table.policy), budget, doors, (SEEDED_NOTE,))


def assemble(
    table: Table, universe: Universe, budget: Budget, doors: Doorway, notes: tuple[str, ...] = ()
) -> Dataset:
    """A dataset from its parts."""
    policy, relation = table.policy, Relation.of(table.policy, budget)
    if doors.key is not None:
        table = Table(policy, bound_contribution(universe, table.source, doors.key))
    plan = choose_plan(Means.of(budget, relation), universe.shape, policy.answering)
    options = AnsweringOptions(
        float(policy.answering.confidence),
        policy.answering.ration,
        policy.answering.exhausted is Exhausted.UNVERIFIED,
    )
    construction = OnlineConstruction(
        plan,
        doors,
        PrivateCells.of(universe, table.source, doors.key),
        [attribute.name for attribute in universe.attributes],
        options,
        public=public_attributes(universe, budget),
    )
    return Dataset(table, universe, doors, construction, notes)


def _measurable_universe(policy: Policy) -> Universe:
    """The grid of a policy, of a size that its strategy can measure."""
    universe = required_universe(policy)
    if policy.answering.strategy is Strategy.HISTOGRAM and universe.cells > MAX_MEASURED_CELLS:
        raise Misconfigured(
            f"`answer.strategy` is histogram, and the grid of {dataset_of(policy)} has more than "
            f"{MAX_MEASURED_CELLS:,} cells to measure; declare fewer bins, or choose another "
            f"strategy"
        )
    return universe
