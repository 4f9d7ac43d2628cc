"""Which people could live in a small block, given the statistics published about it.

Source     Garfinkel, Abowd and Martindale, "Understanding Database Reconstruction Attacks on
           Public Data" (2018), whose block of seven people the tests solve.
Guarantee  Every multiset of people that gives the published statistics, each exactly once, when
           the enumeration is complete. People are in order, so no two solutions are the same
           people in another order, and every variable of the model follows from the people.
Cost       Hard in general; a second for ten people, minutes for thirty, hence the limit.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from ortools.sat.python import cp_model

from casemate.solve.block_model import Block, Person, PersonModel
from casemate.solve.order_limit import Clock, Limit


@dataclass(frozen=True)
class Solutions:
    """The people that could live in the block; all there are, if `complete`."""

    tables: tuple[tuple[Person, ...], ...]
    complete: bool

    @property
    def common(self) -> tuple[Person, ...]:
        """The people that are in every table found; certain when the tables are all there are."""
        return shared(self.tables)


@dataclass(frozen=True)
class Certain:
    """The people in every solution; what was not settled within the limit is `undecided`."""

    people: tuple[Person, ...]
    undecided: tuple[Person, ...]


def shared(tables: Sequence[tuple[Person, ...]]) -> tuple[Person, ...]:
    """The people that all of some tables have, as often as they all have them.

    >>> shared([((8, "F"), (8, "F")), ((8, "F"), (9, "M"))])
    ((8, 'F'),)
    """
    counted = [Counter(table) for table in tables]
    both = reduce(lambda a, b: a & b, counted) if counted else Counter[Person]()
    return tuple(sorted(both.elements()))


def solve_block(block: Block, limit: Limit | None = None, most: int | None = None) -> Solutions:
    """Enumerate the solutions of a block, up to `most` of them."""
    model, clock = PersonModel(block), Clock(limit or Limit())
    solver = clock.solver(math.inf)
    solver.parameters.num_workers = 1
    solver.parameters.enumerate_all_solutions = True
    collect = _Collect(model, most)
    status = solver.solve(model.model, collect)
    finished = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) and not collect.stopped
    return Solutions(tuple(sorted(collect.found)), finished)


def certain(
    block: Block, limit: Limit | None = None, among: tuple[Person, ...] | None = None
) -> Certain:
    """The people in every solution, without enumerating: look for one that lacks somebody.

    `among` are those that the solutions seen so far have in common, where some were seen.
    """
    clock = Clock(limit or Limit())
    candidates = among
    while candidates is None or candidates:
        model = PersonModel(block)
        if candidates is not None:
            model.lacks_one_of(candidates)
        solver = clock.solver(math.inf)
        status = solver.solve(model.model)
        clock.spent(solver)
        if status == cp_model.INFEASIBLE:
            return Certain(candidates or (), ())
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Certain((), candidates or ())
        table = model.people(solver.value)
        candidates = shared([table, table if candidates is None else candidates])
    return Certain((), ())


class _Collect(cp_model.CpSolverSolutionCallback):
    """Keeps every solution, and stops when there are enough."""

    def __init__(self, model: PersonModel, most: int | None) -> None:
        super().__init__()
        self._model, self._most = model, most
        self.found: set[tuple[Person, ...]] = set()
        self.stopped = False

    def on_solution_callback(self) -> None:
        """Called by the solver for each solution."""
        if len(self.found) == self._most:
            self.stopped = True
            self.stop_search()
        else:
            self.found.add(self._model.people(self.value))
