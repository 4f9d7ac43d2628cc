"""Second tables for extremes, medians, comparisons and sums, searched for by CP-SAT.

`IntegerModel` holds published answers as constraints on integers, `LiteralModel` what unit
propagation leaves of maxima and minima; `settle` decides which records can differ from the truth by
maximising how many do at once, and `Judge` says in which order parts are judged.

Guarantee  The truth solves the model, so a search that starts from it always has a table to show.
           When no table moves any of the candidates, and that is proved, all of them are
           determined. A candidate that some table moves is struck off, and the rest go on.
Departure  A bound on how many candidates one table moves is no bound on how many are movable one
           at a time (three records of which any two must stay), so it is reported as what it is.
           `test_more_records_can_be_free_than_can_differ_in_one_table` shows the difference.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from casemate.audit.order.case import IntegerCase, Intervals, OrderFindings, Proof
from casemate.audit.order.extremes import BOTTOM, TOP, ExtremeClauses, Moves, UnitPropagation, parts
from casemate.audit.time_limit import CP_SAT_LARGEST_VALUE, Clock
from casemate.exact import COUNTS, Exact, OrderQuestion

Term = cp_model.IntVar | int


class IntegerModel:
    """Integer values of some records in their bounds; records with equal bounds are constants.

    The literal "this record is at least v" is made once and shared by all questions. An even median
    is a split into halves: nobody of the lower is above a, nobody of the upper below b, both are
    attained, and a + b is twice the answer; enumerating the pairs (a, b) instead is far slower.
    Every variable gets a hint, those of the medians too: an incomplete hint is no start at all.
    """

    def __init__(self, low: NDArray[Any], high: NDArray[Any], truth: NDArray[Any]) -> None:
        self.model = cp_model.CpModel()
        self._low, self._high, self._truth = low, high, truth
        self.variables: dict[int, cp_model.IntVar] = {}
        self._at_least: dict[tuple[int, int], cp_model.IntVar] = {}

    def value(self, record: int) -> Term:
        """The variable of a record, or its only value."""
        low, high = int(self._low[record]), int(self._high[record])
        if low == high:
            return low
        if record not in self.variables:
            self.variables[record] = self.model.new_int_var(low, high, "")
            self.model.add_hint(self.variables[record], int(self._truth[record]))
        return self.variables[record]

    def at_least(self, record: int, bound: int) -> Term:
        """The literal "this record is at least `bound`", or 0 or 1 where its bounds say so."""
        if bound <= self._low[record]:
            return 1
        if bound > self._high[record]:
            return 0
        if (record, bound) not in self._at_least:
            literal = self.bool_var(bool(self._truth[record] >= bound))
            self._at_least[record, bound] = literal
            self.model.add(self.value(record) >= bound).only_enforce_if(literal)
            self.model.add(self.value(record) < bound).only_enforce_if(~literal)
        return self._at_least[record, bound]

    def bool_var(self, hint: bool) -> cp_model.IntVar:
        """A new literal that starts at `hint`."""
        literal = self.model.new_bool_var("")
        self.model.add_hint(literal, hint)
        return literal

    def move_literal(self, record: int, width: int) -> cp_model.LiteralT | None:
        """A literal that is true only where the record is `width` or more from the truth."""
        truth = int(self._truth[record])
        above, below = (
            self.at_least(record, truth + width),
            self.at_least(record, truth - width + 1),
        )
        ways: list[cp_model.LiteralT] = [above] if isinstance(above, cp_model.IntVar) else []
        ways += [~below] if isinstance(below, cp_model.IntVar) else []
        if len(ways) < 2:
            return ways[0] if ways else None
        literal = self.bool_var(False)
        self.model.add_bool_or([*ways, ~literal])
        return literal

    def between(self, terms: Iterable[Any], low: int | float, high: int | float) -> None:
        """Some terms add up to an integer in an interval that may be open to one side."""
        total = sum(terms)
        if isinstance(total, int):
            if not low <= total <= high:
                self.model.add_bool_or([])  # constants that contradict: no solution
        elif math.isfinite(low) and math.isfinite(high):
            self.model.add_linear_constraint(total, int(low), int(high))
        else:
            self.model.add(total >= int(low) if math.isfinite(low) else total <= int(high))

    def multiples(self, records: Sequence[int], unit: Exact | None) -> None:
        """Some records are multiples of a whole number."""
        step = int(unit or 1)
        for record in records:
            value = self.value(record)
            if step > 1 and not isinstance(value, int):
                low, high = int(self._low[record]), int(self._high[record])
                times = self.model.new_int_var(-(-low // step), high // step, "")
                self.model.add_hint(times, int(self._truth[record]) // step)
                self.model.add(value == step * times)

    def any_of(self, literals: Sequence[Any]) -> None:
        """At least one of some literals and constants is true."""
        if not any(isinstance(each, int) and each for each in literals):
            self.model.add_bool_or([each for each in literals if not isinstance(each, int)])

    def truth_of(self, records: Sequence[int]) -> list[int]:
        """The true values, where a hint needs them."""
        return [int(self._truth[each]) for each in records]

    def range_of(self, records: Sequence[int]) -> tuple[int, int]:
        """The bounds that hold all of some records."""
        lows = [int(self._low[each]) for each in records]
        return min(lows), max(int(self._high[each]) for each in records)


def narrow_bounds(
    questions: Iterable[OrderQuestion], low: NDArray[Any], high: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The bounds after every maximum and minimum has pressed on its members."""
    low, high = low.copy(), high.copy()
    for question in questions:
        members = question.members
        if question.kind == "max":
            high[members] = np.minimum(high[members], math.floor(question.high))
        elif question.kind == "min":
            low[members] = np.maximum(low[members], math.ceil(question.low))
    return low, high


def publish(model: IntegerModel, question: OrderQuestion) -> None:
    """Add what one published answer says; a maximum's or minimum's bound is in the model's."""
    members = question.members.tolist()
    low, high = question.low, question.high
    if question.kind == "max":
        model.any_of([model.at_least(each, math.ceil(low)) for each in members])
    elif question.kind == "min":
        least = math.floor(high) + 1
        model.any_of([_not(model.at_least(each, least)) for each in members])
    elif question.kind == "median":
        (_odd_median if len(members) % 2 else _even_median)(model, members, question)
    elif question.kind == "step":
        _step(model, question)
    elif question.kind == "whole":
        model.multiples(members, question.value)
    else:
        size = len(members) if question.kind == "avg" else 1
        terms = _terms(model, members, question)
        model.between(terms, math.ceil(low * size), math.floor(high * size))


def _step(model: IntegerModel, question: OrderQuestion) -> None:
    record, reached = question.members.tolist()
    value = Fraction(question.value or 0)
    least = math.floor(value) + 1 if question.strict else math.ceil(value)
    unit = int(question.high)
    model.between([model.value(reached), -unit * model.at_least(record, least)], 0, 0)


def _not(literal: Any) -> Any:
    return 1 - literal if isinstance(literal, int) else ~literal


def _terms(model: IntegerModel, members: list[int], question: OrderQuestion) -> list[Any]:
    """What a sum, an average or a count adds up."""
    if question.value is None:
        factors = [1] * len(members) if question.coefficients is None else question.coefficients
        return [int(f) * model.value(each) for f, each in zip(factors, members, strict=True)]
    bound = math.ceil(question.value)
    reached: list[Any] = [model.at_least(each, bound) for each in members]
    if question.kind == "count_equal":
        # A threshold that is no integer is equalled by nobody: what reaches it has passed it.
        beyond = bound + (bound == question.value)
        reached += [-1 * model.at_least(each, beyond) for each in members]
    return reached


def _odd_median(model: IntegerModel, members: list[int], question: OrderQuestion) -> None:
    half = len(members) // 2 + 1
    reach = [model.at_least(each, math.ceil(question.low)) for each in members]
    exceed = [model.at_least(each, math.floor(question.high) + 1) for each in members]
    model.between(reach, half, math.inf)
    model.between(exceed, -math.inf, half - 1)


def _even_median(model: IntegerModel, members: list[int], question: OrderQuestion) -> None:
    truth, half = model.truth_of(members), len(members) // 2
    order = sorted(range(len(members)), key=truth.__getitem__)
    upper_places = set(order[half:])
    least, most = math.ceil(2 * question.low), math.floor(2 * question.high)
    a, b = _middle_pair(model, members, (truth[order[half - 1]], truth[order[half]]))
    model.model.add_linear_constraint(a + b, least, most)
    model.model.add(a <= b)
    upper = [model.bool_var(place in upper_places) for place in range(len(members))]
    model.between(upper, half, half)
    for record, above in zip(members, upper, strict=True):
        _one_half(model, record, above, (a, b), question)
    lower = [~each for each in upper]
    _require_attained(model, members, lower, order[half - 1], lambda value: value >= a)
    _require_attained(model, members, upper, order[half], lambda value: value <= b)


def _one_half(
    model: IntegerModel,
    record: int,
    above: cp_model.IntVar,
    pair: tuple[cp_model.IntVar, cp_model.IntVar],
    question: OrderQuestion,
) -> None:
    """A member is at most a or at least b, whichever half it is in."""
    value = model.value(record)
    model.model.add(value <= pair[0]).only_enforce_if(~above)
    model.model.add(value >= pair[1]).only_enforce_if(above)
    # Implied: whoever is above is at least the median, whoever is below at most.
    model.any_of([~above, model.at_least(record, math.ceil(question.low))])
    model.any_of([above, _not(model.at_least(record, math.floor(question.high) + 1))])


def _require_attained(
    model: IntegerModel,
    members: list[int],
    half: Sequence[Any],
    at: int,
    reaches: Callable[[Any], Any],
) -> None:
    """Somebody of a half is at its end of the middle pair; in the truth, the one at this place."""
    attains = [model.bool_var(place == at) for place in range(len(members))]
    for record, inside, literal in zip(members, half, attains, strict=True):
        model.model.add_implication(literal, inside)
        model.model.add(reaches(model.value(record))).only_enforce_if(literal)
    model.any_of(attains)


def _middle_pair(
    model: IntegerModel, members: list[int], hints: tuple[int, int]
) -> tuple[cp_model.IntVar, cp_model.IntVar]:
    low, high = model.range_of(members)
    pair = model.model.new_int_var(low, high, ""), model.model.new_int_var(low, high, "")
    for variable, hint in zip(pair, hints, strict=True):
        model.model.add_hint(variable, hint)
    return pair


# Which records can differ from the truth --------------------------------------------------------


@dataclass(frozen=True)
class Settled:
    """Those that no table moves, those left undecided, and how many of these move together."""

    unmovable: NDArray[np.int64]
    undecided: NDArray[np.int64]
    together: int


def settle(
    model: cp_model.CpModel,
    moved: Mapping[int, cp_model.LiteralT],
    accept: Callable[[cp_model.CpSolver], NDArray[np.bool_]],
    clock: Clock,
    patience: float = math.inf,
) -> Settled:
    """Decide every record of `moved`, whose literal is true only where the record has moved.

    One maximisation may take `patience`, as long as each still finds somebody.
    `accept` takes a solution as a witness and says, in the order of `moved`, which records have
    been shown to be movable so far.
    """
    records = np.array(list(moved), np.int64)
    literals = list(moved.values())
    candidates, together = np.arange(len(records)), len(records)
    while len(candidates) and not clock.over:
        model.maximize(sum(literals[each] for each in candidates))
        solver = clock.solver(patience)
        status = solver.solve(model)
        clock.spent(solver)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        if status == cp_model.OPTIMAL and round(solver.objective_value) == 0:
            return Settled(records[candidates], records[:0], 0)
        # A bound for these candidates holds for the fewer that the next turn looks at, too.
        together = min(together, math.floor(solver.best_objective_bound + 1e-6))
        kept = candidates[~accept(solver)[candidates]]
        if len(kept) == len(candidates):
            break
        candidates = kept
    return Settled(records[:0], records[candidates], min(together, len(candidates)))


def values_of(
    solver: cp_model.CpSolver, variables: Mapping[int, cp_model.IntVar]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The records and values of a solution."""
    values = [solver.value(variable) for variable in variables.values()]
    return np.array(list(variables), np.int64), np.array(values, np.int64)


# What unit propagation leaves of maxima and minima ----------------------------------------------


class LiteralModel:
    """One connected part of the clauses that are still open, as a model of its literals."""

    def __init__(
        self,
        clauses: ExtremeClauses,
        propagation: UnitPropagation,
        open_clauses: list[int],
        integer: bool,
    ) -> None:
        self.model = cp_model.CpModel()
        self._clauses, self._forced = clauses, propagation.forced
        self._literal: dict[tuple[int, int], cp_model.IntVar] = {}
        self.records: list[int] = []
        for clause in open_clauses:
            side = int(clauses.side[clause])
            members = [each for each in clauses.records_of(clause) if not self._forced[each]]
            self.model.add_bool_or([self.literal(each, side) for each in members])
        gap = clauses.high - clauses.low
        for record in self.records:
            ends = [self.literal(record, TOP), self.literal(record, BOTTOM)]
            exactly = integer and gap[record] == 1
            (self.model.add_exactly_one if exactly else self.model.add_at_most_one)(ends)

    def literal(self, record: int, side: int) -> cp_model.IntVar:
        """The literal "this record is at this end"."""
        if (record, side) not in self._literal:
            for end in (TOP, BOTTOM):
                self._literal[record, end] = self.model.new_bool_var("")
            self.records.append(record)
        return self._literal[record, side]

    def hint(self, place: NDArray[np.int64]) -> None:
        """Start the search from where each record stands."""
        for (record, side), literal in self._literal.items():
            self.model.add_hint(literal, bool(place[record] == side))

    def sides(self, solver: cp_model.CpSolver) -> NDArray[np.int64]:
        """Where a solution puts each of the part's records; 0 where it is at neither end."""
        return np.array(
            [
                solver.value(self.literal(each, TOP)) - solver.value(self.literal(each, BOTTOM))
                for each in self.records
            ],
            np.int64,
        )


def settle_literals(
    findings: OrderFindings,
    clauses: ExtremeClauses,
    propagation: UnitPropagation,
    moves: Moves,
    clock: Clock,
) -> None:
    """Decide the records that small moves did not free, one connected part at a time."""
    for part in parts(clauses, propagation):
        wanted = {
            record
            for clause in part
            for record in clauses.records_of(clause)
            if moves.wanted[record] and not propagation.forced[record]
        }
        if wanted:
            model = LiteralModel(clauses, propagation, part, findings.case.integer)
            settled = _settle_part(findings, model, sorted(wanted), moves, clock)
            findings.expose(settled.unmovable, "order")
            findings.give_up(settled.together)


def _settle_part(
    findings: OrderFindings, model: LiteralModel, wanted: list[int], moves: Moves, clock: Clock
) -> Settled:
    # A record that is wanted stands at an end that clauses need; it has moved once it left that.
    moved = {each: ~model.literal(each, int(moves.place[each])) for each in wanted}
    model.hint(moves.at_end)
    records, asked = np.array(model.records), np.array(wanted)

    def accept(solver: cp_model.CpSolver) -> NDArray[np.bool_]:
        sides = model.sides(solver)
        left = (sides != moves.place[records]) & (moves.place[records] != 0)
        # Whoever leaves an end may as well go to the other: no clause minds.
        sides = np.where(left & (sides == 0), -moves.place[records], sides)
        goes = sides != 0
        findings.offer(records[goes], moves.values(records[goes], sides[goes]))
        loose: NDArray[np.bool_] = findings.loose[asked]
        return loose

    return settle(model.model, moved, accept, clock)


def any_table(
    clauses: ExtremeClauses, propagation: UnitPropagation, clock: Clock
) -> NDArray[Any] | None:
    """A table that satisfies all the clauses; None if there is none.

    Whoever need not be at an end is put halfway, so the ends are even numbers. Raises
    TimeoutError if the limit comes first.
    """
    sides = propagation.forced.copy()
    for part in parts(clauses, propagation):
        model = LiteralModel(clauses, propagation, part, integer=False)
        solver = clock.solver(math.inf)
        status = solver.solve(model.model)
        clock.spent(solver)
        if status == cp_model.INFEASIBLE:
            return None
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise TimeoutError("no table was found within the limit")
        sides[model.records] = model.sides(solver)
    inner = (clauses.low + clauses.high) // 2
    return np.where(sides == TOP, clauses.high, np.where(sides == BOTTOM, clauses.low, inner))


# Any mixture of answers over integers in bounds -------------------------------------------------
# A part is judged as a whole first, by the maximiser; what that leaves is judged one record at a
# time, in growing balls around it. With everything outside a ball held at the truth, a second table
# is a witness; with only the questions inside a ball, the lack of one is a proof.


MAX_MODEL_ENTRIES = 1_000_000  # members of all questions together, in a model of a whole part
BALL_SIZES = (6, 12, 25, 50, 100, 200)
Wish = tuple[int, int]  # a record, and how far it is to move


@dataclass(frozen=True, eq=False)
class LinkedRecords:
    """Some records with all the questions about them, and the bounds they come with."""

    case: IntegerCase
    records: NDArray[np.int64]
    questions: tuple[OrderQuestion, ...]
    low: NDArray[Any]
    high: NDArray[Any]

    @property
    def too_large(self) -> bool:
        """Whether a value could leave the range in which a solver's sums are safe."""
        ends = (self.low[self.records], self.high[self.records])
        return bool(max(abs(end).max() for end in ends) >= CP_SAT_LARGEST_VALUE)

    @property
    def too_many(self) -> bool:
        """Whether building a model of the whole part would itself take too long."""
        return sum(len(question.members) for question in self.questions) > MAX_MODEL_ENTRIES

    @cached_property
    def around(self) -> dict[int, list[OrderQuestion]]:
        """The questions about each record, smallest first."""
        found: dict[int, list[OrderQuestion]] = {each: [] for each in self.records.tolist()}
        for question in sorted(self.questions, key=lambda each: len(each.members)):
            for member in question.members.tolist():
                found[member].append(question)
        return found

    def model(
        self, questions: Iterable[OrderQuestion], frozen: NDArray[np.bool_] | None = None
    ) -> IntegerModel:
        """A model of some of the questions, with some records held at the truth."""
        asked = list(questions)
        low, high = narrow_bounds(asked, self.low, self.high)
        if frozen is not None:
            low, high = (np.where(frozen, self.case.truth, end) for end in (low, high))
        model = IntegerModel(low, high, self.case.truth)
        for question in asked:
            publish(model, question)
        return model


@dataclass(frozen=True)
class Turn:
    """What a search works with: where it notes what it shows, and how long it may take."""

    findings: OrderFindings
    clock: Clock
    patience: float  # for one call of the solver


def maximise(
    turn: Turn, part: LinkedRecords, wanted: NDArray[np.int64], width: NDArray[Any]
) -> Settled:
    """Judge all the wanted records of a part at once."""
    findings = turn.findings
    model = part.model(part.questions)
    literals = {each: model.move_literal(each, int(width[each])) for each in wanted.tolist()}
    stuck = np.array([each for each, literal in literals.items() if literal is None], np.int64)
    moved = {each: literal for each, literal in literals.items() if literal is not None}
    asked = np.array(list(moved), np.int64)

    def accept(solver: cp_model.CpSolver) -> NDArray[np.bool_]:
        findings.offer(*values_of(solver, model.variables))
        return are_movable(findings, asked, width)

    settled = settle(model.model, moved, accept, turn.clock, turn.patience)
    unmovable = np.concatenate([stuck, settled.unmovable])
    return Settled(unmovable, settled.undecided, settled.together)


def are_movable(
    findings: OrderFindings, records: NDArray[np.int64], width: NDArray[Any]
) -> NDArray[np.bool_]:
    """Which records some witness moves, by the width of the case or by the least one."""
    least = width[records] < findings.case.width[records]
    found: NDArray[np.bool_] = np.where(least, findings.loose[records], findings.free[records])
    return found


def judge_alone(turn: Turn, part: LinkedRecords, wish: Wish) -> bool | None:
    """Whether a record can move, by growing balls around it; None if that stays open."""
    for size in BALL_SIZES:
        ball = _ball(part, wish[0], size)
        if turn.clock.over:
            return None
        if _moves_inside(turn, part, wish, ball):
            return True
        if _stays_inside(turn, part, wish, ball):
            return False
        if len(ball) == len(part.records):
            return None
    return None


def _ball(part: LinkedRecords, record: int, size: int) -> list[int]:
    """The records nearest to one, through small questions first."""
    found, order = {record}, [record]
    for each in order:
        for question in part.around[each]:
            fresh = [other for other in question.members.tolist() if other not in found]
            found.update(fresh)
            order += fresh
            if len(order) >= size:
                return order[:size]
    return order


def _moves_inside(turn: Turn, part: LinkedRecords, wish: Wish, ball: Sequence[int]) -> bool:
    frozen = np.ones(len(part.case.truth), bool)
    frozen[list(ball)] = False
    touched = {id(each): each for inside in ball for each in part.around[inside]}
    model = part.model(touched.values(), frozen)
    solver = _solve_for_move(turn, model, wish)
    if solver is None or solver.status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return False
    return turn.findings.offer(*values_of(solver.solver, model.variables))


def _stays_inside(turn: Turn, part: LinkedRecords, wish: Wish, ball: Sequence[int]) -> bool:
    members = set(ball)
    touched = {id(each): each for inside in ball for each in part.around[inside]}
    inside = [each for each in touched.values() if members.issuperset(each.members.tolist())]
    solver = _solve_for_move(turn, part.model(inside), wish)
    return solver is None or solver.status == cp_model.INFEASIBLE


@dataclass(frozen=True)
class _Run:
    solver: cp_model.CpSolver
    status: cp_model.CpSolverStatus


def _solve_for_move(turn: Turn, model: IntegerModel, wish: Wish) -> _Run | None:
    """Look for a table in which the record has moved; None if its bounds leave no room."""
    moved = model.move_literal(*wish)
    if moved is None:
        return None
    model.model.add_bool_or([moved])
    solver = turn.clock.solver(turn.patience)
    status = solver.solve(model.model)
    turn.clock.spent(solver)
    return _Run(solver, status)


# The order in which parts are judged, and what each result proves -------------------------------


COMPARING = ("max", "min", "step", "whole", *COUNTS)
FIRST_TURN_SECONDS = (
    5.0  # for the first maximisation of a part that finds nobody, then for all balls
)


class Judge:
    """Judges every part as a whole, smallest first, and then what is left record by record.

    The lack of a second table proves something only where the solver looked everywhere: over
    integers whose bounds are known, and where values are only compared, because another table
    then has a neighbour on the grid that gives the same answers. Elsewhere it only looked on a
    grid in a box.
    """

    def __init__(self, findings: OrderFindings, intervals: Intervals, clock: Clock) -> None:
        case = findings.case
        self._findings, self._clock, self._case = findings, clock, case
        self._least = np.ones(len(case.truth), np.int64)
        pairs = list(zip(intervals.low, intervals.high, strict=True))
        fixed = [low is not None and low == high for low, high in pairs]
        findings.expose(np.flatnonzero(fixed), "bounds")
        self._known = np.array([None not in pair for pair in pairs], bool)
        self._low = _ends(case.low, [None if low is None else math.ceil(low) for low, _ in pairs])
        self._high = _ends(case.high, [None if up is None else math.floor(up) for _, up in pairs])

    def run(self, parts: Sequence[tuple[NDArray[np.int64], Sequence[OrderQuestion]]]) -> None:
        """Judge the parts, with more patience each time something stays open."""
        left = [self._part(*part) for part in parts]
        together = {id(part): len(part.records) for part in left}
        judged, patience = list(left), FIRST_TURN_SECONDS
        while left and not self._clock.over:
            turn = Turn(self._findings, self._clock, patience)
            again = [part for part in left if self._whole(turn, part, together)]
            balls = Turn(self._findings, self._clock.within(patience), patience / 10)
            for part in again:
                for record in self._open(part).tolist():
                    self._alone(balls, part, record)
            left = [part for part in again if len(self._open(part))]
            patience *= 2
        for part in judged:
            self._findings.give_up(min(together[id(part)], len(self._open(part))))

    def _part(
        self, records: NDArray[np.int64], questions: Sequence[OrderQuestion]
    ) -> LinkedRecords:
        low, high, exposed = self._low.copy(), self._high.copy(), self._findings.exposed
        low[exposed] = high[exposed] = self._case.truth[exposed]
        return LinkedRecords(self._case, records, tuple(questions), low, high)

    def _proves(self, part: LinkedRecords) -> bool:
        known = self._case.integer and bool(self._known[part.records].all())
        return known or only_compared(part.questions, self._known)

    def _open(self, part: LinkedRecords) -> NDArray[np.int64]:
        return part.records[self._findings.open[part.records]]

    def _whole(self, turn: Turn, part: LinkedRecords, together: dict[int, int]) -> bool:
        """Judge a part by the maximiser, and say whether more patience could show more."""
        wanted = self._open(part)
        if part.too_large or not len(wanted):
            return False
        if part.too_many:
            return True
        least = self._findings.narrow[wanted]
        settled = self._maximise(turn, part, wanted[~least], self._case.width)
        if self._proves(part):
            together[id(part)] = settled.together
            narrow = self._open(part)
            narrow = narrow[self._findings.narrow[narrow]]
            exact = self._maximise(turn, part, narrow, self._least)
            return bool(len(settled.undecided) or len(exact.undecided))
        return bool(len(settled.undecided))

    def _maximise(
        self, turn: Turn, part: LinkedRecords, wanted: NDArray[np.int64], width: NDArray[Any]
    ) -> Settled:
        settled = maximise(turn, part, wanted, width)
        if self._proves(part):
            self._conclude(settled.unmovable, width)
        return settled

    def _conclude(self, records: NDArray[np.int64], width: NDArray[Any]) -> None:
        """Note that no table moves these by the width."""
        self._findings.confine(records)
        proof: Proof = "integer" if self._case.integer else "order"
        self._findings.expose(records[width[records] == 1], proof)

    def _alone(self, turn: Turn, part: LinkedRecords, record: int) -> None:
        """Judge one record by the balls around it, by its width and then by the least."""
        while self._findings.open[record]:
            width = 1 if self._findings.narrow[record] else int(self._case.width[record])
            movable = judge_alone(turn, part, (record, width))
            if movable is not False or not self._proves(part):
                return
            self._conclude(np.array([record]), np.full(len(self._least), width))


def only_compared(questions: Iterable[OrderQuestion], bounded: NDArray[np.bool_]) -> bool:
    """Whether no value is added to another, except marks of steps and bounded whole numbers."""
    asked = list(questions)
    marks = {int(q.members[1]) for q in asked if q.kind == "step"}
    whole = (each for q in asked if q.kind == "whole" for each in q.members.tolist())
    marks.update(each for each in whole if bounded[each])
    return all(
        q.kind in COMPARING
        or (q.kind == "median" and len(q.members) % 2 == 1)
        or (q.kind in ("sum", "avg") and marks.issuperset(q.members.tolist()))
        for q in asked
    )


def _ends(stood_in: NDArray[Any], known: Sequence[int | None]) -> NDArray[Any]:
    """The known bounds, and where there is none the one that stands in."""
    ends = stood_in.copy()
    for place, end in enumerate(known):
        if end is not None:
            ends[place] = end
    return ends
