import math
import random
from dataclasses import replace

import pytest
from chance import ALARM, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.engine import EndRound, PublishedCount
from casemate.track.instruction import Blocks, Every, SiteStanding
from casemate.track.protocols.robust.theorem import constants
from casemate.track.protocols.robust.tracker import Robust
from casemate.track.setting import Setting
from casemate.track.simulate.runs import PlainRun

SITES, ALPHA, DELTA, HORIZON = 16, 0.2, 0.01, 10**5


def silent() -> float:
    return 0.0


def engine(sites: int = SITES, draw: random.Random | None = None) -> Robust:
    return Robust(Setting(sites, ALPHA, DELTA, HORIZON), draw.random if draw else silent)


def in_a_round(sites: int = SITES) -> Robust:
    made = engine(sites)
    made.begin([made.constants.begins_at, *[0] * (sites - 1)])
    return made


# Algorithm 1: the sites ---------------------------------------------------------------------------


def triggers(size: int, blocks: int, draw: random.Random, begun: int = 0) -> list[int]:
    rule, found = Blocks(float(size)), list[int]()
    for reports in range(blocks):
        last = found[-1] if found else begun
        found.append(rule.after(SiteStanding(begun, reports, last, last), draw.random))
    return found


@pytest.mark.theorem("001: Algorithm 1")
@given(st.integers(2, 1000), st.integers(0, 10**9), st.integers(0, 2**32))
def test_every_block_reports_exactly_once(size: int, begun: int, seed: int) -> None:
    for block, trigger in enumerate(triggers(size, 20, random.Random(seed), begun)):
        assert block * size < trigger - begun <= (block + 1) * size


def bits(size: int, items: int, draw: random.Random) -> int:
    return sum(trigger <= items for trigger in triggers(size, items // size + 1, draw))


def printed_bits(size: int, items: int, draw: random.Random) -> int:
    """Algorithm 1 to the letter: counts within a block from 0, a bit when they pass r."""
    sent = set[int]()
    thresholds = [draw.randint(1, size) for _ in range(items // size + 1)]
    for count in range(1, items + 1):
        block, offset = divmod(count, size)
        if offset > thresholds[block]:
            sent.add(block)
    return len(sent)


def assert_mean_is(values: list[int], mean: float, least: int, most: int) -> None:
    """Hoeffding's inequality."""
    spread = (most - least) * math.sqrt(len(values) * math.log(2 / ALARM) / 2)
    assert abs(sum(values) - len(values) * mean) <= spread


@pytest.mark.theorem("001: Algorithm 1")
@pytest.mark.parametrize(("size", "items"), [(5, 13), (2, 7), (9, 4)])
def test_the_bits_are_unbiased(size: int, items: int, rng: random.Random) -> None:
    whole = items // size
    found = [bits(size, items, rng) for _ in range(4000)]
    assert set(found) <= {whole, whole + 1}
    assert_mean_is(found, items / size, whole, whole + 1)


@pytest.mark.parametrize(("size", "items"), [(5, 13), (2, 7), (9, 4)])
def test_the_printed_comparison_is_biased(size: int, items: int, rng: random.Random) -> None:
    whole = items // size
    found = [printed_bits(size, items, rng) for _ in range(4000)]
    with pytest.raises(AssertionError):
        assert_mean_is(found, items / size, whole, whole + 1)


# Algorithm 2: rounds ------------------------------------------------------------------------------


def test_every_item_is_reported_until_blocks_hold_two() -> None:
    run, begins_at = (
        PlainRun(SITES, engine(), silent),
        constants(Setting(SITES, ALPHA, DELTA, HORIZON)).begins_at,
    )
    for item in range(begins_at):
        assert run.server.words == run.output == item
        run.add(item % SITES)
    assert run.server.words_by_kind == {
        "report": begins_at,
        "call": SITES,
        "answer": SITES,
        "rule": SITES,
    }
    assert run.output == begins_at
    assert set(run.server.rules) == {Blocks(2.0)}


@pytest.mark.theorem("001: Algorithm 2")
def test_the_count_stands_still_within_a_phase_and_moves_by_its_bits_after() -> None:
    e = in_a_round()
    begun, phase = e.constants.begins_at, math.ceil(e.constants.threshold)
    assert e.hear(0, Blocks(2.0), begun, phase - 1, begun) is None
    assert e.estimate().value == begun
    assert e.hear(1, Blocks(2.0), 0, 1, 2) is None
    assert e.estimate().value == begun + 2 * phase


def test_a_round_ends_after_its_last_phase() -> None:
    e = in_a_round(4)
    whole = 2 * math.ceil(e.constants.threshold)
    half = whole // 2
    assert e.hear(1, Blocks(2.0), 0, half, 2 * half) is None
    assert e.hear(2, Blocks(2.0), 0, half - 1, 2 * half) is None
    assert e.hear(3, Blocks(2.0), 0, 1, 2) == EndRound()


def test_a_site_that_has_passed_its_blocks_ends_the_round() -> None:
    e = in_a_round()
    blocks = e.constants.blocks
    assert e.hear(3, Blocks(2.0), 0, blocks, 2 * blocks) is None
    assert e.hear(3, Blocks(2.0), 0, blocks + 1, 2 * blocks + 2) == EndRound()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=40))
def test_repeated_reports_change_nothing(told: list[tuple[int, int]]) -> None:
    once, often = in_a_round(4), in_a_round(4)
    sent = [0] * 4
    begun = [once.constants.begins_at, 0, 0, 0]
    for site, more in told:
        sent[site] += more
        report = (site, Blocks(2.0), begun[site], sent[site], 2 * sent[site])
        assert once.hear(*report) == often.hear(*report)
        often.hear(*report)
        assert once.estimate() == often.estimate()


def test_a_site_that_begins_anew_adds_to_its_bits() -> None:
    e = in_a_round()
    phase = math.ceil(e.constants.threshold)
    e.hear(5, Blocks(2.0), 0, phase - 2, 2 * phase)
    assert e.hear(5, Blocks(2.0), 2 * phase, 0, 2 * phase) is None
    e.hear(5, Blocks(2.0), 2 * phase, 1, 2 * phase + 1)
    assert e.estimate().value == e.constants.begins_at
    e.hear(5, Blocks(2.0), 2 * phase, 2, 2 * phase + 3)
    assert e.estimate().value > e.constants.begins_at


def test_a_small_count_after_a_restart_goes_back_to_exact_reporting() -> None:
    e = in_a_round()
    assert e.begin([3] * SITES) == Every()
    assert e.estimate().value == 3 * SITES
    assert e.hear(2, Every(), 3, 1, 4) is None
    assert e.estimate().value == 3 * SITES + 1


# What is promised ---------------------------------------------------------------------------------


def test_exact_counts_are_sure_and_others_as_sure_as_asked() -> None:
    e = engine()
    assert e.proved
    assert e.estimate().confidence == 1.0
    assert in_a_round().estimate().confidence == 1 - DELTA


def test_the_interval_is_alpha_of_the_last_exact_count_and_never_below_it() -> None:
    e = in_a_round()
    found, exact = e.estimate(), e.constants.begins_at
    assert (found.lo, found.value) == (exact, exact)
    assert found.hi == pytest.approx(exact * (1 + ALPHA))


def test_nothing_is_claimed_where_nothing_is_proved() -> None:
    e = in_a_round(2)
    assert not e.proved
    assert e.estimate().confidence == 0.0


def test_nothing_is_claimed_after_more_rounds_than_are_covered() -> None:
    e = engine()
    counts = [e.constants.begins_at, *[0] * (SITES - 1)]
    for _ in range(10_000):
        e.begin(counts)
        if not e.estimate().confidence:
            break
    assert e.estimate().confidence == 0.0
    assert engine().proved


def misses(run: PlainRun, items: int) -> bool:
    """Whether the truth was ever outside the interval, when items come to the sites in turn."""
    missed = False
    for item in range(1, items + 1):
        run.add(item % 4)
        seen = run.server.read()
        missed |= not seen.lo <= item <= seen.hi
    return missed


@pytest.mark.theorem("001: Theorem 1")
def test_the_interval_holds_the_truth_at_all_times(rng: random.Random) -> None:
    setting = Setting(4, 0.5, 0.01, 1500)
    runs = [PlainRun(4, Robust(setting, rng.random), rng.random) for _ in range(40)]
    assert_rate_at_most(sum(misses(run, 1500) for run in runs), len(runs), 0.01)


def test_an_interval_of_a_tenth_does_not(rng: random.Random) -> None:
    """The twin: the count is that of a tracker with ten times the error."""
    setting = Setting(4, 0.5, 0.01, 1500)
    runs = [PlainRun(4, _Boastful(setting, rng.random), rng.random) for _ in range(40)]
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(misses(run, 1500) for run in runs), len(runs), 0.01)


class _Boastful(Robust):
    def estimate(self) -> PublishedCount:
        honest = super().estimate()
        reach = (honest.hi - honest.lo) / 20
        return replace(honest, lo=honest.value - reach, hi=honest.value + reach)
