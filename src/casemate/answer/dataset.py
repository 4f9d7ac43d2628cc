"""One dataset, open: its table, its ledger and transcript, and the construction over them."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from casemate.answer.answer import BudgetStanding, Spending
from casemate.answer.budget_plan import Means, public_attributes, required_budget, required_universe
from casemate.answer.construction import AnsweringOptions, OnlineConstruction
from casemate.answer.declaration import Declaration, declared_questions
from casemate.answer.prior import PublicPrior
from casemate.answer.work_limits import MAX_MEASURED_CELLS
from casemate.doors import Doorway, dataset_of, ledger_of
from casemate.errors import Misconfigured
from casemate.grid import PrivateCells, Relation, declared_sums, sums_by_attribute
from casemate.privacy import tighter_epsilon
from casemate.privacy.noise import seeded_bits
from casemate.surrogate import KeptFit
from casemate.table import Budget, Exhausted, Policy, Strategy, Table, Universe
from casemate.table.sources import bound_contribution

SEEDED_NOTE = "not private: seeded"
PRIOR_NOTE = "before anything is measured the stand-in is like"
FIXED_CHARGES_NOTE = "had every charge been fixed before the first answer"


@dataclass(frozen=True)
class Dataset:
    """A protected table with everything that answers questions about it."""

    table: Table
    universe: Universe
    doors: Doorway
    relation: Relation
    prior: PublicPrior
    notes: tuple[str, ...] = ()  # on everything that is said of it

    @property
    def options(self) -> AnsweringOptions:
        """How answers are given."""
        answering = self.table.policy.answering
        unverified = answering.exhausted is Exhausted.UNVERIFIED
        return AnsweringOptions(float(answering.confidence), answering.ration, unverified)

    @cached_property
    def construction(self) -> OnlineConstruction:
        """What answers questions that were not answered before; made at the first of them."""
        from casemate.answer.planner.comparison import choose_plan

        policy, universe, doors = self.table.policy, self.universe, self.doors
        budget, source = required_budget(policy), self.table.source
        means, public = Means.of(budget, self.relation), public_attributes(universe, budget)
        sums = sums_by_attribute(universe, self.relation, public)
        return OnlineConstruction(
            choose_plan(means, universe.shape, policy.answering, [each.cells for each in sums]),
            doors,
            PrivateCells.of(universe, source, doors.key),
            [attribute.name for attribute in universe.attributes],
            self.options,
            public=public,
            declared=declared_sums(universe),
            sums={each: partial(each.exact, source, doors.key) for each in sums},
            make=self.prior.make,
            kept=None if doors.beside is None else KeptFit.beside(doors.beside),
        )

    def standing(self) -> BudgetStanding:
        """Where the budget stands."""
        ledger, construction = self.doors.ledger, self.construction
        terms = ledger.terms
        newest = self.doors.transcript.newest()
        construction.stand_in.catch_up(self.doors.transcript)
        surprises = construction.stand_in.surprises
        return BudgetStanding(
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

    def with_tighter_epsilon(self, standing: BudgetStanding) -> BudgetStanding:
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
    where = ledger_of(table.policy, budget)
    if to_ask and isinstance(where, Path) and not where.exists():
        table.source.relation()  # opens a table that may not be as the policy says
        _ = PublicPrior(table.policy, universe).shares, declared_questions(table, universe)
    doors = Doorway.durable(table, budget)
    try:
        return assemble(table, universe, budget, doors)
    except BaseException:
        doors.close()
        raise


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
    relation = Relation.of(table.policy, budget)
    if doors.key is not None:
        table = Table(table.policy, bound_contribution(universe, table.source, doors.key))
    prior, where = PublicPrior(table.policy, universe), table.policy.answering.prior
    declaration = Declaration(table, universe, doors)

    def ready() -> None:
        _ = table.source.relation(), prior.shares
        declaration.record()

    doors = replace(doors, ready=ready)
    public = () if where is None else (f"{PRIOR_NOTE} {Path(where).name}, which is public",)
    notes = (*notes, *public, *declaration.notes())
    return Dataset(table, universe, doors, relation, prior, notes)


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
