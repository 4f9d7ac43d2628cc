"""Sums and what a person's rows add up to, against ranks in fractions."""

from random import Random

import numpy as np
from exact_rank import determined, follows
from hypothesis import given
from hypothesis import strategies as st

from casemate.audit.online.sums import OnlineSums
from casemate.exact import Equation

seeds = st.integers(0, 2**32).map(Random)


def people(rng: Random, size: int) -> list[int]:
    """For each unknown, the first one of its person."""
    owner = [rng.randrange(size) for _ in range(size)]
    return [owner.index(each) for each in owner]


def exposes(matrix: list[list[int]], persons: list[int]) -> bool:
    """Whether a value is determined, or the total of a person's values."""
    totals = [[int(each == first) for each in persons] for first in set(persons)]
    return bool(determined(matrix)) or any(follows(matrix, total) for total in totals)


@given(seeds)
def test_sums_are_refused_exactly_when_a_value_or_a_total_would_follow(rng: Random) -> None:
    size = rng.randint(1, 7)
    persons = people(rng, size)
    sums, log = OnlineSums.by_records(np.array(persons, np.int64), rng.randbytes), list[list[int]]()
    for _ in range(8):
        rows = [[rng.choice([0, 1, 1, 2]) for _ in range(size)] for _ in range(rng.randint(1, 3))]
        rows = [row for row in rows if any(row)] or [[1] * size]
        asked = tuple(Equation.of(dict(enumerate(row))) for row in rows)
        expected = exposes([*log, *rows], persons)
        assert sums.would_expose(asked) == expected
        if not expected:
            sums.record(asked)
            log += rows


def test_sums_may_be_recorded_without_being_asked_about_before() -> None:
    sums = OnlineSums.by_records(np.arange(3))
    sums.record((Equation.of({0: 1, 1: 1}), Equation.of({1: 1, 2: 1})))
    assert sums.rank == 2
    assert sums.would_expose((Equation.of({0: 1, 2: 1}),))
