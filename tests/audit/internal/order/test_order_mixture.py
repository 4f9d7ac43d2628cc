"""The two ways to judge a mixture, each on its own, against every table there is."""

import math
from random import Random

import numpy as np
from every_table import consistent, every_table, random_log

from casemate.audit.order.case import OrderFindings, case_of
from casemate.audit.order.mixture import LinkedRecords, Turn, judge_alone, maximise
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.exact import Domain, OrderQuestion

LIMIT = SearchLimit(seconds=math.inf, work=50, workers=1)


def whole(log: list[OrderQuestion], truth: list[int], high: int) -> tuple[Turn, LinkedRecords]:
    case, _ = case_of(log, Domain.of(len(truth), 0, high), truth, 1)
    part = LinkedRecords(case, np.arange(len(truth)), case.questions, case.low, case.high)
    return Turn(OrderFindings(case), Clock(LIMIT), math.inf), part


def movable(log: list[OrderQuestion], truth: list[int], high: int) -> list[bool]:
    tables = consistent(log, every_table(len(truth), 0, high))
    return [bool(each) for each in (tables != np.array(truth)).any(axis=0)]


def test_balls_alone_agree_with_brute_force(rng: Random) -> None:
    for _ in range(70):
        truth, log = random_log(
            rng, ["sum", "avg", "max", "min", "median", "count_at_least"], rng.randint(2, 4), 4
        )
        turn, part = whole(log, truth, 4)
        judged = [judge_alone(turn, part, (record, 1)) for record in range(len(truth))]
        assert judged == movable(log, truth, 4)


def test_the_maximiser_alone_agrees_with_brute_force(rng: Random) -> None:
    for _ in range(70):
        truth, log = random_log(
            rng, ["sum", "avg", "max", "min", "median", "count_equal"], rng.randint(2, 4), 4
        )
        turn, part = whole(log, truth, 4)
        settled = maximise(turn, part, part.records, np.ones(len(truth), np.int64))
        expected = movable(log, truth, 4)
        assert sorted(settled.unmovable.tolist()) == [
            i for i, far in enumerate(expected) if not far
        ]
        assert turn.findings.free.tolist() == expected


def test_a_small_ball_proves_what_the_questions_inside_it_say(rng: Random) -> None:
    """Two records a far-away hard part cannot change: the ball never grows to reach it."""
    log = [
        OrderQuestion.of("sum", [0, 1], 9),
        OrderQuestion.of("sum", [0, 1], 1, coefficients=[1, -1]),
    ]
    log += [OrderQuestion.of("avg", [1, *range(2, 30)], 5)]
    truth = [5, 4, *[5] * 27, 6]
    turn, part = whole(log, truth, 9)
    assert judge_alone(turn, part, (0, 1)) is False
    assert judge_alone(turn, part, (7, 1)) is True
