"""The privacy loss of the online construction as shipped, bounded from both sides.

Neighbouring tables of two to four records are asked whole conversations: start, gate, surprise,
ledger, and a retry after a crash. Every combination of draws within windows is pushed through the
real code. Everything that left is the outcome: all answers of all lives, and the whole transcript.
The bounds are certified: nothing is sampled.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, permutations
from typing import Any

import numpy as np
import pytest
from answer.conversation_tree import (
    Walked,
    Window,
    delta_at_most,
    delta_in_all,
    epsilon_at_least,
    walk,
)
from answer.small_dataset import World
from crashes import Clock, Crash
from grid.small_grid import cells_of, counting

from casemate.answer.budget_plan import BudgetPlan
from casemate.answer.construction import OnlineConstruction, gate_of
from casemate.answer.schedule import GateSchedule
from casemate.doors import EntryKind, MemorySecrets, open_transcript
from casemate.errors import GateClosed, TranscriptDamaged
from casemate.grid import Floats, GridQuestion, Relation
from casemate.privacy import Currency
from casemate.privacy.ledger import Ledger
from casemate.privacy.mechanisms import Calibration
from casemate.privacy.noise import LaplaceLaw, Noise, Sources
from casemate.privacy.noise.noise import silence
from casemate.surrogate import Make, stand_in_for
from casemate.table import Strategy

# Every kind of draw has a scale of its own, so that its window can be told by it.
TOTAL, START, SURPRISE = Fraction(1), Fraction(4, 5), Fraction(3, 5)
THRESHOLD, COMPARISON = Fraction(1, 2), Fraction(2, 5)
GATE = GateSchedule(Calibration(THRESHOLD, COMPARISON, one_sided=True), runs=1, false_alarm=0.3)
Table = tuple[int, ...]  # how many records are in each cell


class NoGuess:
    """Typical errors of nothing: an estimate from public numbers, which nobody looks at here."""

    def __init__(self, *_: object) -> None:
        pass

    def errors(self, asked: GridQuestion) -> list[Floats]:
        return [np.zeros(len(part.cells)) for part in asked.parts]


# Conversations ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conversation:
    """Questions about the cells of a table with one attribute, asked in two lives."""

    plan: BudgetPlan
    asked: Sequence[int | None]  # the cells whose counts are asked for; None: of all together
    make: Callable[[Table], Make] = lambda _: stand_in_for
    charged: list[Fraction] = field(default_factory=list)

    def held(self, table: Table, noise: Noise, last: int | None) -> Hashable:
        """All that left."""
        room, clock = self._room(table), Clock(last)
        for thing, name in (
            (room.ledger, "charge"),
            (room.ledger, "record_output"),
            (room.secrets, "write"),
            (room.transcript, "run"),
        ):
            setattr(thing, name, clock.around(getattr(thing, name)))
        stepped: Noise = clock.before(noise)
        room.doors = replace(room.doors, sources=Sources(silence, stepped), noise=stepped)
        sent: list[str] = []
        for _ in range(1 if last is None else 2):
            try:
                self._life(room, table, sent, clock)
            except Crash:
                continue
        self.charged.append(room.ledger.spent().amount)
        texts = (entry.text for entry in room.transcript.of_kinds(tuple(EntryKind)))
        return tuple(dict.fromkeys(sent)), tuple(texts)

    def _room(self, table: Table) -> World:
        codes = np.repeat(np.arange(len(table)), table).reshape(-1, 1)
        return World(cells_of(codes, (len(table),)), self.plan, seed=None, names=("cell",))

    def _life(self, room: World, table: Table, sent: list[str], clock: Clock) -> None:
        make, shape = self.make(table), (len(table),)
        construction = OnlineConstruction(
            room.plan, room.doors, room.cells, room.names, make=make, typical=NoGuess
        )
        for cell in self.asked:
            try:
                masks: dict[int, Sequence[int]] = {} if cell is None else {0: [cell]}
                outcome = construction.ask(counting(masks, shape))
            except GateClosed:
                sent.append("closed")
                return
            sent.append(repr((cell, outcome.parts)))
            clock.tick()

    def walked(self, table: Table, values: "Values", last: int | None = None) -> Walked:
        hidden = (THRESHOLD, COMPARISON)
        window = values.window(table)
        return walk(lambda noise: self.held(table, noise, last), window, hidden.__contains__)

    def bounds(
        self, tables: Sequence[Table], values: "Values", last: int | None = None
    ) -> tuple[float, float, Fraction]:
        """Epsilon is at least, delta is at most at what was charged, and what was charged."""
        self.charged.clear()
        pairs = list(permutations([self.walked(table, values, last) for table in tables], 2))
        charged = max(self.charged)
        low = max(epsilon_at_least(*pair) for pair in pairs)
        delta = max(delta_at_most(*pair, charged) for pair in pairs)
        print(f"epsilon >= {low:.3f}; delta <= {delta:.2g} at {float(charged):.3f}, as charged")
        return low, delta, charged


@dataclass(frozen=True)
class Values:
    """What may leave of the number of people and of each cell, the same for both neighbours."""

    total: range
    cells: Sequence[range]
    threshold: int = 6
    comparison: int = 4

    def window(self, table: Table) -> Window:
        """The noise that leads there from a table; the gate's noise by itself."""

        def window(scale: Fraction, size: int, place: int) -> range:
            reach = {THRESHOLD: self.threshold, COMPARISON: self.comparison}.get(scale)
            if reach is not None:
                return range(-reach - 1, reach + 1)  # from 0 to `reach` once they are one-sided
            wanted, exact = self.total, sum(table)
            if size == len(table):
                wanted, exact = self.cells[place], table[place]
            return range(wanted.start - exact, wanted.stop - exact)

        return window


# The start --------------------------------------------------------------------------------------


def start_plan(relation: Relation) -> BudgetPlan:
    total = None if relation.counted else LaplaceLaw(TOTAL, Fraction(relation.rows))
    law = LaplaceLaw(START, relation.of_table)
    plan = BudgetPlan(Strategy.TABLES, Currency.EPSILON, relation, start=((0,),))
    return replace(plan, total_law=total, start_law=law)


ADD_REMOVE, REPLACE = Relation(), Relation(True, 1, counted=True)
TWO_ROWS = Relation(rows=2)
NEIGHBOURS = {
    "add-remove": (ADD_REMOVE, [(2, 1), (2, 0)]),
    "replace": (REPLACE, [(2, 1), (1, 2)]),
    "two rows of a person": (TWO_ROWS, [(1, 2), (1, 0)]),
}
FEW = Values(range(1, 4), (range(1, 3), range(3)))


@pytest.mark.parametrize("last", [None, *range(1, 20, 6)])
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_the_start_with_a_crash_and_a_retry_loses_what_was_charged_to_the_last_bit(
    name: str, last: int | None
) -> None:
    relation, tables = NEIGHBOURS[name]
    conversation = Conversation(start_plan(relation), asked=[0])
    low, delta, charged = conversation.bounds(tables, FEW, last)
    assert charged == conversation.plan.start_price, "something was paid twice"
    assert delta < 1e-9 and low == pytest.approx(float(charged), abs=1e-9)


@pytest.mark.slow
def test_with_everything_that_was_not_walked_the_start_loses_what_was_charged() -> None:
    conversation = Conversation(start_plan(ADD_REMOVE), asked=[0])
    values = Values(range(-1, 7), (range(-1, 6), range(-3, 5)))
    tables = [conversation.walked(table, values) for table in NEIGHBOURS["add-remove"][1]]
    for pair in permutations(tables, 2):
        assert delta_in_all(*pair, conversation.plan.start_price) < 0.08


def test_the_tests_above_would_notice_that_a_person_has_two_rows() -> None:
    _, tables = NEIGHBOURS["two rows of a person"]
    low, delta, charged = Conversation(start_plan(ADD_REMOVE), asked=[0]).bounds(tables, FEW)
    assert low > 1.9 * charged and delta > 0.1


# The gate, and what it finds ----------------------------------------------------------------------


def cold_plan(relation: Relation) -> BudgetPlan:
    total = None if relation.counted else LaplaceLaw(TOTAL, Fraction(relation.rows))
    plan = BudgetPlan(Strategy.COLD, Currency.EPSILON, relation, total_law=total, gate=GATE)
    return replace(plan, surprise_law=LaplaceLaw(SURPRISE, relation.of_table))


EVERYBODY = None
NARROW = Values(range(2, 3), (range(2, 3), range(2)))


@pytest.mark.parametrize(
    ("asked", "share"),
    [([EVERYBODY, 1], 0.75), ([1, EVERYBODY], 0.4)],
)
@pytest.mark.slow
def test_an_easy_question_and_a_surprise_lose_no_more_than_was_charged(
    asked: list[int | None], share: float
) -> None:
    """One deviation grows where the other shrinks: asked in the worse order, that tells most."""
    conversation = Conversation(cold_plan(ADD_REMOVE), asked)
    low, delta, charged = conversation.bounds(NEIGHBOURS["add-remove"][1], NARROW)
    assert delta < 0.001
    assert share * charged < low <= charged, "the bounds are true but say nothing"


# Whole conversations, with a crash at any moment ------------------------------------------------


def warm_plan(relation: Relation) -> BudgetPlan:
    return replace(cold_plan(relation), start=((0,),), start_law=start_plan(relation).start_law)


MOMENTS = 40  # of a conversation in which the gate fires, and a few beyond it
WHOLE = {
    "add-remove": NARROW,
    "replace": Values(range(1), (range(1, 2), range(1, 3))),
    "two rows of a person": Values(range(2, 3), (range(1, 2), range(1, 3))),
}


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("add-remove", 27),
        ("replace", None),
        pytest.param("add-remove", None, marks=pytest.mark.slow),
        pytest.param("two rows of a person", None, marks=pytest.mark.slow),
    ],
)
def test_a_whole_conversation_with_a_crash_and_a_retry_loses_no_more_than_was_charged(
    name: str, last: int | None
) -> None:
    require_no_more_than_charged(name, last)


@pytest.mark.slow
def test_at_every_moment_of_a_crash_no_more_is_lost_than_was_charged() -> None:
    for last in range(MOMENTS):
        require_no_more_than_charged("add-remove", last)


def require_no_more_than_charged(name: str, last: int | None) -> None:
    relation, tables = NEIGHBOURS[name]
    conversation = Conversation(warm_plan(relation), asked=[1])
    low, delta, charged = conversation.bounds(tables, WHOLE[name], last)
    plan = conversation.plan
    most = plan.start_price + plan.run_price + plan.price_of(plan.surprise_law)
    assert charged == most, "something was paid twice"
    assert delta < 0.001
    assert 0.25 * charged < low <= charged, "the bounds are true but say nothing"


@pytest.mark.parametrize("number", [1, 2])
def test_a_draw_that_was_lost_before_it_was_durable_leaves_no_trace(number: int) -> None:
    """The draw of the number of people, and that of the table: the next one alone decides."""
    assert len({after_a_lost_draw(number, lost) for lost in (-3, 0, 5)}) == 1


def after_a_lost_draw(number: int, lost: int) -> Hashable:
    """All that left when the process died between this draw, which was `lost`, and its commit."""
    conversation, table = Conversation(start_plan(ADD_REMOVE), asked=[0]), (2, 1)
    room, draws, dying = conversation._room(table), count(1), list[bool]()
    store: Any = room.transcript._store
    append = store.append

    def noise(scale: Fraction, size: int) -> Any:
        if next(draws) != number:
            return silence(scale, size)
        dying.append(True)
        return silence(scale, size) + lost

    def dies(entry: Any) -> None:
        append(entry)
        if dying:
            dying.clear()
            raise Crash

    store.append = dies
    room.doors = replace(room.doors, sources=Sources(silence, noise), noise=noise)
    sent: list[str] = []
    with pytest.raises(Crash):
        conversation._life(room, table, sent, Clock(None))
    conversation._life(room, table, sent, Clock(None))
    assert room.ledger.spent().amount == room.plan.start_price
    return tuple(sent), tuple(entry.text for entry in room.transcript.of_kinds(tuple(EntryKind)))


# Twins --------------------------------------------------------------------------------------------


def exactly(table: Table) -> Make:
    """The mistake: a stand-in of exactly as many people as there are."""
    return lambda shape, *_: stand_in_for(shape, float(sum(table)), 0.0)


def test_the_tests_above_would_notice_a_stand_in_that_knows_the_exact_number_of_people() -> None:
    _, tables = NEIGHBOURS["add-remove"]
    told = Conversation(start_plan(ADD_REMOVE), asked=[0], make=exactly)
    low, _, charged = told.bounds(tables, FEW)
    assert low > charged
    compared = Conversation(cold_plan(ADD_REMOVE), asked=[1], make=exactly)
    assert compared.bounds(tables, NARROW)[1] > 0.5


LIVES = 5


def verdict(table: Table, noise: Noise) -> Hashable:
    """What one comparison lets out, by itself."""
    room = Conversation(cold_plan(REPLACE), [1])._room(table)
    room.doors = replace(room.doors, noise=noise)
    construction, gate = room.construction(), gate_of(room.plan, room.doors)
    construction.start()
    assert gate is not None
    return repr(construction._verdict(gate, counting({0: [1]}, (2,)), ""))


def loss_of_one_comparison() -> float:
    window = Values(range(1), ()).window((0, 0, 0))
    tables = [
        walk(lambda noise, table=table: verdict(table, noise), window, lambda _: True)  # type: ignore[misc]  # bound now
        for table in NEIGHBOURS["replace"][1]
    ]
    return max(epsilon_at_least(*pair) for pair in permutations(tables, 2))


def charged_for_comparisons(free: bool) -> tuple[int, Fraction]:
    """How many independent comparisons are made after the gate's memory was lost, and their price.

    `free` is the mistake: a run is named by its number, so that one made again is paid already.
    """
    room = Conversation(cold_plan(REPLACE), [1])._room((2, 1))
    drawn: list[Fraction] = []

    def recording(scale: Fraction, size: int) -> Any:
        drawn.append(scale)
        return silence(scale, size)

    names = count()
    for _ in range(LIVES):
        transcript, number = open_transcript(":memory:"), 0 if free else next(names)
        room.doors = replace(
            room.doors,
            transcript=transcript,
            secrets=MemorySecrets(),
            noise=recording,
            name=lambda number=number: f"r{number}",  # type: ignore[misc]  # bound now
        )
        construction, gate = room.construction(), gate_of(room.plan, room.doors)
        construction.start()
        assert gate is not None
        construction._verdict(gate, counting({0: [1]}, (2,)), "")
    return drawn.count(THRESHOLD), room.ledger.spent().amount


def test_comparisons_after_a_lost_memory_are_new_runs_and_paid_for() -> None:
    comparisons, charged = charged_for_comparisons(free=False)
    assert comparisons == LIVES
    assert loss_of_one_comparison() * comparisons <= charged == LIVES * GATE.calibration.epsilon


def test_the_test_above_would_notice_a_lost_comparison_drawn_again_for_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(TranscriptDamaged, match="vouches for entry"):
        charged_for_comparisons(free=True)  # the ledger knows that this run has ended
    monkeypatch.setattr(Ledger, "record_output", lambda *_: b"")  # and now it does not
    comparisons, charged = charged_for_comparisons(free=True)
    assert comparisons == LIVES and charged == GATE.calibration.epsilon
    assert loss_of_one_comparison() * comparisons > charged
