"""Several minima and maxima at once, against every table there is."""

from random import Random

import numpy as np
import pytest
from every_table import Tables, consistent, every_table, random_log, twice_the_answer

from casemate.audit.online.questions import ExtremeQuestion, Family
from casemate.audit.online.sums import Components, would_expose
from casemate.audit.order.online import Extreme, OnlineExtremes
from casemate.errors import Refused
from casemate.exact import OrderQuestion
from casemate.query import Aggregate, Function

UNIT = 8  # first answers lie on halves, second ones on quarters, and values between those
COUNT = Aggregate(Function.COUNT, None)


def extreme(kind: Extreme, members: list[int]) -> ExtremeQuestion:
    return ExtremeQuestion(kind, np.array(sorted(members), np.int64), COUNT, ())


def history(log: list[OrderQuestion], size: int) -> tuple[OnlineExtremes, Components[Family]]:
    past, parts = OnlineExtremes(size), Components[Family](size)
    for question in log:
        kind: Extreme = "max" if question.kind == "max" else "min"
        past.record(kind, question.members.tolist(), question.low)
        parts.join(question.members, Family.EXTREMES)
    return past, parts


def some_answers_expose(
    log: list[OrderQuestion], pair: list[ExtremeQuestion], tables: Tables
) -> bool:
    """Try every two answers, and look at the records that any question links to the two."""
    linked = {member for each in pair for member in each.members.tolist()}
    for _ in log:
        for question in log:
            linked |= set(question.members.tolist()) if linked & set(question.members) else set()
    past = consistent(log, tables, UNIT)
    answers = [
        twice_the_answer(OrderQuestion(each.kind, each.members, 0, 0), past, UNIT)[0] // 2
        for each in pair
    ]
    halves = range(-UNIT // 2, 3 * UNIT, UNIT // 2)
    quarters = range(-3 * UNIT // 4, 3 * UNIT, UNIT // 4)
    for first in halves:
        for second in quarters:
            left = past[(answers[0] == first) & (answers[1] == second)]
            if len(left) and (left == left[0]).all(axis=0)[sorted(linked)].any():
                return True
    return False


def test_two_at_once_are_refused_exactly_when_some_two_answers_expose_somebody() -> None:
    rng, refused = Random(5), 0
    everything = {size: every_table(size, -2, 4, UNIT) for size in (2, 3)}
    for _ in range(25):
        size = rng.choice([2, 3, 3])
        _, log = random_log(rng, ["max", "min"], size, rng.choice([0, 1, 1]))
        pair = [
            extreme(rng.choice(["max", "min"]), rng.sample(range(size), rng.randint(2, size)))
            for _ in range(2)
        ]
        past, parts = history(log, size)
        expected = some_answers_expose(log, pair, everything[size])
        assert would_expose(pair, past, parts) == expected, (log, pair)
        refused += expected
    assert 2 < refused < 25


def test_each_may_be_harmless_and_all_together_not() -> None:
    """Two of three with a smaller maximum leave the third with the maximum of all."""
    past, parts = OnlineExtremes(6), Components[Family](6)
    past.record("max", range(6), 9)
    parts.join(np.arange(6), Family.EXTREMES)
    pairs = [extreme("max", [0, 1, 2]), extreme("max", [2, 3, 4])]
    assert not any(past.would_expose(each.kind, each.members.tolist()) for each in pairs)
    assert would_expose(pairs, past, parts)


def test_too_many_linked_ones_are_not_decided_together() -> None:
    past, parts = OnlineExtremes(24), Components[Family](24)
    past.record("max", range(24), 9)
    parts.join(np.arange(24), Family.EXTREMES)
    cells = [extreme("max", [*range(4 * place, 4 * place + 4)]) for place in range(6)]
    with pytest.raises(Refused, match="one of them at a time"):
        would_expose(cells, past, parts)


def test_cells_that_nothing_links_are_decided_one_by_one() -> None:
    past, parts = OnlineExtremes(400), Components[Family](400)
    cells = [extreme("max", [*range(4 * place, 4 * place + 4)]) for place in range(100)]
    assert not would_expose(cells, past, parts)
