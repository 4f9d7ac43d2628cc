"""A long table is attacked without storing its equations, and comes to the same."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from casemate.attack import Attack
from casemate.attack.attack import Attacked, AttackOptions
from casemate.attack.evidence import Evidence
from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.published import Knowledge
from casemate.published import predicates as large_numbers
from casemate.query.parse import Logged
from casemate.table import Table

QUERIES = [
    *(f"SELECT SUM(visits) FROM t WHERE age BETWEEN {a} AND {a + 9}" for a in range(0, 90, 7)),
    *(f"SELECT SUM(visits) FROM t WHERE age >= {a} AND sex = 'female'" for a in range(5, 80, 11)),
    "SELECT region, AVG(visits) FROM t GROUP BY region",
    "SELECT SUM(visits) FROM t WHERE age > 1000",
]


def evidence(*, large: bool, noise: NoiseLaw | None = None) -> Evidence:
    with pytest.MonkeyPatch.context() as patch, Table.open("population:300") as table:
        if large:
            patch.setattr(large_numbers, "MOST_ENTRIES", 0)
        known = Knowledge(known={7: (Fraction(2), Fraction(2))})
        random = np.random.default_rng(1)
        found = Evidence.of(QUERIES, table, noise=noise, knowledge=known, random=random)
        _ = found.truth, found.told
        return found


@pytest.mark.parametrize("noise", [None, NoiseLaw("laplace", 2.0), NoiseLaw("round", 5.0)])
def test_the_problem_is_the_same_one(noise: NoiseLaw | None) -> None:
    long, short = evidence(large=True, noise=noise), evidence(large=False, noise=noise)
    assert not long.equations.system.rows
    assert long.truth is not None and short.truth is not None
    place = short.equations.record
    np.testing.assert_array_equal(long.truth[place], short.truth)
    np.testing.assert_array_equal(np.flatnonzero(long.told), np.sort(place[short.told]))
    for end in ("low", "high", "whole"):
        np.testing.assert_array_equal(
            getattr(long.problem, end)[place], getattr(short.problem, end)
        )
    point = np.random.default_rng(2).random(long.problem.equations.width)
    ours, theirs = (rows(each, at) for each, at in ((long, point), (short, point[place])))
    np.testing.assert_allclose(ours, theirs)


def rows(found: Evidence, point: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each equation says of a point beside what was published, whatever their order is.

    A database gives the groups of one statement in any order it likes.
    """
    equations, problem = found.problem.equations, found.problem
    said = equations.lengths * equations.times(point) / problem.spread
    pairs = np.column_stack([said, problem.answers / problem.spread])
    return pairs[np.argsort(said)]


def test_an_attack_on_a_long_table_comes_to_the_same() -> None:
    def attack() -> Attacked:
        random = np.random.default_rng(3)
        options = AttackOptions(targets=3)
        return Attack.of(QUERIES, "population:300", options=options, random=random)

    short = attack()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_numbers, "MOST_ENTRIES", 0)
        long = attack()
    assert long.scores["visits"].recovered == pytest.approx(short.scores["visits"].recovered)
    assert long.scores["visits"].records == short.scores["visits"].records
    assert [each.record for each in short.secrets] == [
        each.record for each in long.secrets if long.evidence.told[int(str(each.record)) - 1]
    ]


def test_given_answers_are_used_for_a_long_table_too() -> None:
    log = [
        Logged("SELECT SUM(visits) FROM t WHERE age < 50", 1),
        Logged("SELECT SUM(visits) FROM t", 2),
    ]
    with pytest.MonkeyPatch.context() as patch, Table.open("population:200") as table:
        patch.setattr(large_numbers, "MOST_ENTRIES", 0)
        given = [replace_answer(each, number) for each, number in zip(log, (11, 17), strict=True)]
        found = Evidence.of(given, table)
    assert found.problem.answers.tolist() == [11.0, 17.0]


def replace_answer(entry: Logged, answer: int) -> Logged:
    return Logged(entry.sql, entry.line, Decimal(answer))
