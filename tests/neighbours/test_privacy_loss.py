"""The privacy loss of whole conversations, from below: two neighbours told apart by what leaves.

An analyst who knows everybody else talks to a session about one person, choosing each question by
the answers before it, until the budget is gone. The statistic and its threshold are fixed before
the first conversation. A lower confidence bound on epsilon (Clopper-Pearson, at the policy's delta)
must stay below the budget, and exceeds it where the session is broken.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chance import ALARM
from neighbours.tables import csv
from scipy import stats

from casemate import Refused, Session

EPSILON = 1.0
DELTA = 1e-6
OTHERS = 6
QUESTIONS = 3
POLICY = """
[table]
source = "people.csv"
[columns.sex]
values = ["f", "m"]
[columns.ill]
role = "private"
values = [0, 1]
[budget]
epsilon = {epsilon}
delta = {delta}
[answer]
strategy = "{strategy}"
questions = {questions}
surprises = 2
"""
STRATEGIES = ("laplace", "gaussian", "tables", "histogram", "cold", "measure")


@dataclass(frozen=True)
class Neighbours:
    """Policies over two tables: with the person, who is a woman and ill, and without."""

    there: Path
    away: Path


def written(folder: Path, strategy: str, epsilon: float = EPSILON) -> Neighbours:
    others = [("fm"[place % 2], "0") for place in range(OTHERS)]
    paths = []
    for name, rows in (("there", [*others, ("f", "1")]), ("away", others)):
        place = folder / name
        place.mkdir(parents=True)
        csv(place / "people.csv", ("sex", "ill"), rows)
        known = "cold" if strategy == "measure" else strategy
        delta = 0 if strategy == "laplace" else DELTA
        text = POLICY.format(epsilon=epsilon, delta=delta, strategy=known, questions=QUESTIONS)
        (place / "casemate.toml").write_text(text)
        paths.append(place / "casemate.toml")
    return Neighbours(*paths)


Ask = Callable[[str], float]


def evidence(ask: Ask) -> float:
    """What an analyst makes of one conversation: how much it speaks for the person being there.

    Each question is about whom the last answer made likely; a refusal ends it. Every answer above
    the half between both possibilities speaks for the person.
    """
    found, condition = 0.0, "ill = 1"
    for turn in range(QUESTIONS):
        try:
            value = ask(f"SELECT COUNT(*) FROM t WHERE {condition}")
        except Refused:
            break
        found += max(-1.0, min(1.0, value - 0.5))
        likely = "sex = 'f'" if value > 0.5 else "sex <> 'm'"
        condition = f"ill = 1 AND {likely}" if turn == 0 else f"ill = 1 OR ({likely} AND ill = 1)"
    return found


def conversation(policy: Path, seed: int, measure: bool) -> float:
    """The evidence of one conversation with a session of its own."""
    with Session.simulated(policy, seed) as session:
        return evidence(lambda sql: number(session.query(sql, measure=measure)))


def number(answer: Any) -> float:
    return float(answer.rows[0][0].value or 0.0)


def epsilon_at_least(there: int, away: int, trials: int, delta: float) -> float:
    """A lower bound on epsilon from one event, at this delta."""
    lower = float(stats.beta.ppf(ALARM / 2, there, trials - there + 1)) if there else 0.0
    upper = float(stats.beta.ppf(1 - ALARM / 2, away + 1, trials - away)) if away < trials else 1.0
    return math.log((lower - delta) / upper) if lower > delta else -math.inf


Talk = Callable[[Path, int], float]


def loss(neighbours: Neighbours, trials: int, rng: Random, talk: Talk) -> float:
    """A lower bound on the privacy loss, from either side."""
    there, away = (
        sum(talk(policy, rng.getrandbits(60)) > 0 for _ in range(trials))
        for policy in (neighbours.there, neighbours.away)
    )
    return max(
        epsilon_at_least(there, away, trials, DELTA),
        epsilon_at_least(trials - away, trials - there, trials, DELTA),
    )


def plainly(policy: Path, seed: int) -> float:
    return conversation(policy, seed, measure=False)


def measured(policy: Path, seed: int) -> float:
    return conversation(policy, seed, measure=True)


@pytest.mark.parametrize("strategy", ["laplace", "cold"])
def test_few_conversations_do_not_tell_neighbours_apart(
    strategy: str, seed: int, tmp_path: Path
) -> None:
    found = loss(written(tmp_path, strategy), 20, Random(f"few {seed}"), plainly)
    assert found <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_thousands_of_conversations_do_not_tell_neighbours_apart(
    strategy: str, seed: int, tmp_path: Path
) -> None:
    talk = measured if strategy == "measure" else plainly
    found = loss(written(tmp_path, strategy), 500, Random(f"loss {seed} {strategy}"), talk)
    print(f"{strategy}: epsilon at least {found:.3f} of {EPSILON}")
    assert found <= EPSILON


def with_one_exact_bit(policy: Path, _: int) -> float:
    """The breach that was found: a question fails where the person is, and only there."""
    cells = (policy.parent / "people.csv").read_text()

    def ask(sql: str) -> float:
        return 1.0 if '"f","1"' in cells else 0.0

    return evidence(ask)


def test_one_exact_bit_is_noticed_in_few_conversations(seed: int, tmp_path: Path) -> None:
    neighbours = written(tmp_path, "laplace")
    assert loss(neighbours, 80, Random(seed), with_one_exact_bit) > EPSILON


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "times"), [("laplace", 4), ("gaussian", 30)])
def test_too_little_noise_is_noticed(strategy: str, times: int, seed: int, tmp_path: Path) -> None:
    """A session that spends several times the budget that was promised."""
    broken = written(tmp_path, strategy, times * EPSILON)
    assert loss(broken, 400, Random(f"broken {seed} {strategy}"), plainly) > EPSILON
