"""The privacy of the literal construction, bounded from both sides by walking its noise.

Every combination of draws within a window is pushed through the real construction, on two tables
that differ in one person. The bounds are certified: nothing is sampled.
"""

from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest
from doors import draw_tree
from doors.draw_tree import Branch, Walked, at_least, branches, excess, walk_draws

from casemate.grid import Product
from casemate.papers.accuracy import PromiseTerms
from casemate.papers.online import DatabaseUpdate, LiteralConstruction, OnlineRecords, OnlineSetting
from casemate.privacy.noise import Noise
from casemate.privacy.noise.noise import silence

EPSILON, REACH = 9.0, 2  # scales of 1/4, 1/2 and 1, so that small windows hold nearly all
ONE_UPDATE = DatabaseUpdate(
    "weights", (2,), lambda _: 1.0, DatabaseUpdate.by_weights(2).start
)  # a T of 1
SETTING = OnlineSetting(
    ONE_UPDATE, PromiseTerms(questions=2, epsilon=EPSILON), people=4, alpha=0.25
)
ASKED = Product((2,), {0: np.array([True, False])})


def seen(first: int, noise: Noise) -> Hashable:
    """All that leaves about a table with so many people in the first cell."""
    records = OnlineRecords.in_memory(SETTING.terms)
    counts = np.array([first, SETTING.people - first])
    construction = LiteralConstruction(SETTING, counts, records, noise=noise)
    answer = construction.ask(ASKED)
    gaps = [entry.text for entry in records.transcript.replay() if entry.kind == "hard"]
    assert records.ledger.spent().amount <= EPSILON
    return answer, tuple(text.partition('"gap":')[2].partition(",")[0] for text in gaps)


def walked(first: int, hide: Callable[[Noise], Noise] = lambda noise: noise) -> Walked:
    return walk_draws(lambda noise: seen(first, hide(noise)), REACH)


@pytest.fixture(autouse=True)
def wider_for_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of their own for the numbers, whose noise is the widest."""

    def chosen(scale: Fraction, reach: int) -> tuple[Branch, ...]:
        return branches(scale, 3 * reach if scale == SETTING.noise.answer else reach)

    monkeypatch.setattr(draw_tree, "branches", chosen)


@pytest.mark.theorem("003: Theorem 5.13 (privacy of OnlineIC)")
def test_two_neighbours_are_told_apart_by_no_more_than_was_charged() -> None:
    tables = {first: walked(first) for first in (3, 4)}
    for here, there in ((3, 4), (4, 3)):
        left = excess(tables[here], tables[there], EPSILON)
        shown = at_least(tables[here], tables[there])
        print(f"epsilon >= {shown:.2f}; delta <= {left:.2g} at epsilon {EPSILON}")
        assert left < 0.02
    assert shown > 2.5, "the bounds are true but say nothing"


def test_the_test_above_would_notice_numbers_without_noise() -> None:
    def careless(noise: Noise) -> Noise:
        number = SETTING.noise.answer
        return lambda scale, size: (silence if scale == number else noise)(scale, size)

    tables = [walked(first, careless) for first in (3, 4)]
    assert excess(tables[1], tables[0], EPSILON) > 0.3
