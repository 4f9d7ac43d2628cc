"""Rules: at which counts a site reports."""

import math
from fractions import Fraction

import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.instruction import (
    ONE,
    Blocks,
    Every,
    Growth,
    Rule,
    Sample,
    SiteStanding,
    from_plain,
    gap,
    to_plain,
)

counts = st.integers(min_value=0, max_value=10**9)
rules: st.SearchStrategy[Rule] = st.one_of(
    st.just(Every()),
    st.builds(Growth, st.integers(ONE, 2 * ONE), st.integers(1, ONE)),
    st.builds(Sample, st.floats(1e-6, 1)),
    st.builds(Blocks, st.floats(1, 1e6)),
)


def at(count: int) -> SiteStanding:
    return SiteStanding(count, 0, count, count)


@given(rules)
def test_a_rule_survives_being_written_down(rule: Rule) -> None:
    assert from_plain(to_plain(rule)) == rule


@given(rules, counts, st.floats(0, 1, exclude_max=True))
def test_the_next_trigger_lies_ahead(rule: Rule, count: int, uniform: float) -> None:
    assert rule.after(at(count), lambda: uniform) > count


@given(counts, st.fractions(Fraction(1, 1000), Fraction(9, 10)))
def test_a_window_holds_every_count_up_to_the_ratio(count: int, ratio: Fraction) -> None:
    numerator = int((1 + ratio) * ONE)
    top = Growth(numerator, ONE).top(count)
    assert top <= Fraction(numerator, ONE) * count < top + 1


def test_a_gap_is_geometric(seed: int) -> None:
    uniforms = np.random.default_rng(seed).random(20_000).tolist()
    gaps = [gap(u, 0.2) for u in uniforms]
    assert_follows(gaps, lambda n: 1 - 0.8 ** max(n, 0))


def test_a_gap_that_counts_from_zero_is_not(seed: int) -> None:
    uniforms = np.random.default_rng(seed).random(20_000).tolist()
    with pytest.raises(AssertionError):
        assert_follows([gap(u, 0.2) - 1 for u in uniforms], lambda n: 1 - 0.8 ** max(n, 0))


@given(st.floats(1, 500), st.integers(0, 50), st.floats(0, 1 - 2**-40))  # above it, floats round
def test_the_trigger_of_a_block_lies_in_that_block(size: float, block: int, u: float) -> None:
    trigger = Blocks(size).after(SiteStanding(10, block, 10, 10), lambda: u) - 10
    assert block * size < trigger <= math.ceil((block + 1) * size)
