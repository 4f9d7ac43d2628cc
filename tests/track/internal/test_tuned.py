import math
from collections import defaultdict
from fractions import Fraction

import pytest
from track.robust.coins import Outcome, SmallTracker

from casemate.track.engine import Change, EndRound
from casemate.track.instruction import Blocks, Growth
from casemate.track.protocols.tuned.design import TunedDesign
from casemate.track.protocols.tuned.tracker import RobustTuned, TunedRound
from casemate.track.protocols.windows import centred_rule
from casemate.track.simulate.runs import PlainRun

HALF = 1 / math.log(2)  # the noise scale whose ratio is one half


def plan(noise_scale: float, threshold: int = 2, sites: int = 2) -> TunedDesign:
    return TunedDesign(sites, 0.1, 50.0, threshold, 2, noise_scale, 0.0)


def worst_odds(outcomes: list[Outcome], size: int) -> float:
    """By how much a transcript can change the odds that an open block has reported.

    Reports of the sites before it are taken as known, as the proof does.
    """
    weights: dict[tuple[object, ...], Fraction] = defaultdict(Fraction)
    offsets: dict[tuple[float, ...], tuple[int, ...]] = {}
    for o in outcomes:
        assert offsets.setdefault(o.transcript, o.offsets) == o.offsets
        for site in range(len(o.offsets)):
            weights[o.transcript, site, o.reported[: site + 1]] += o.weight
    worst = 1.0
    for transcript, stand in offsets.items():
        for site, offset in enumerate(stand):
            befores = {key[2][:-1] for key in weights if key[:2] == (transcript, site)}  # type: ignore[index]  # keys hold a tuple there
            for before in befores if offset else ():
                sent = weights[transcript, site, (*before, True)]
                unsent = weights[transcript, site, (*before, False)]
                if not sent or not unsent:
                    return math.inf
                ratio = float(sent / unsent / Fraction(offset, size - offset))
                worst = max(worst, ratio, 1 / ratio)
    return worst


@pytest.mark.theorem("001: Lemma 5")
@pytest.mark.parametrize("adversary", range(4))
@pytest.mark.parametrize(("threshold", "size", "items"), [(1, 2, 5), (2, 3, 4), (2, 3, 5)])
def test_the_odds_of_a_secret_report_stay_within_the_ratio(
    threshold: int, size: int, items: int, adversary: int
) -> None:
    tracker = SmallTracker(plan(HALF, threshold), size, items, adversary)
    outcomes = list(tracker.outcomes())
    assert sum(o.weight for o in outcomes) == 1
    assert len({o.transcript for o in outcomes}) > 2
    assert 1 < worst_odds(outcomes, size) <= 2


def test_without_noise_a_transcript_can_tell_whether_a_block_has_reported() -> None:
    trackers = [SmallTracker(plan(0.0), 3, 5, adversary) for adversary in range(4)]
    assert max(worst_odds(list(tracker.outcomes()), 3) for tracker in trackers) == math.inf


def make_round(threshold: int = 3, size: int = 10, phases: int = 4) -> TunedRound:
    silent = TunedDesign(2, 0.1, 50.0, threshold, phases, 0.0, 0.0)
    return TunedRound(silent, [100, 200], size, lambda: 0.5)


def test_a_phase_ends_at_its_length_and_its_last_site_begins_again() -> None:
    tracked = make_round()
    assert tracked.middle() == 300 + 10 * 1
    assert tracked.hear(0, 100, 1) is None
    assert tracked.hear(1, 200, 1) is None
    assert tracked.hear(1, 200, 2) == Change(narrower={1: Blocks(10.0)})
    assert tracked.middle() == 300 + 10 * (3 + 1)
    assert tracked.hear(1, 213, 0) is None  # its 13 items take the place of two reports
    assert tracked.middle() == 300 + 10 * (3 + 1) - 7
    assert tracked.hear(0, 100, 2) is None  # the next phase is as long: three reports, not five
    assert tracked.hear(1, 213, 1) is None
    assert tracked.hear(0, 100, 3) == Change(narrower={0: Blocks(10.0)})


def test_reports_past_the_end_of_a_phase_count_only_by_the_exact_count() -> None:
    tracked = make_round()
    assert isinstance(tracked.hear(0, 100, 5), Change)
    tracked.hear(0, 151, 0)
    assert tracked.middle() == 300 + 51 + 10 * 1


def test_a_round_ends_with_its_last_phase() -> None:
    tracked = make_round(phases=1)
    tracked.hear(0, 100, 2)
    assert tracked.hear(0, 100, 3) == EndRound()


def test_repeated_news_changes_nothing() -> None:
    tracked = make_round()
    tracked.hear(0, 100, 2)
    tracked.hear(0, 100, 2)
    assert tracked.tally.draws == 2


def tracker(sites: int, items: int, alpha: float = 0.1) -> tuple[PlainRun, RobustTuned]:
    engine = RobustTuned(sites, alpha, 0.01)
    run = PlainRun(sites, engine, lambda: 0.25)
    for item in range(items):
        run.add(item % sites)
    return run, engine


def test_windows_come_first_and_are_sure() -> None:
    run, engine = tracker(64, 500)
    assert engine.round is None and isinstance(engine.opening(), Growth)
    assert engine.estimate().confidence == 1
    assert run.server.rounds == 0


def test_rounds_follow_and_say_what_they_may_have_spent() -> None:
    run, engine = tracker(64, 5_000)
    count = run.server.read()
    assert engine.round is not None and run.server.rounds > 1
    assert 0.99 <= count.confidence < 1
    assert count.lo <= 5_000 <= count.hi
    assert count.hi <= 1.1 / 0.9 * count.lo * (1 + 1e-12)
    assert abs(count.value - 5_000) <= 500


def test_a_poll_in_the_middle_of_a_round_begins_a_round_at_the_exact_counts() -> None:
    run, engine = tracker(64, 5_000)
    run.server.call_round()
    assert engine.round is not None
    assert engine.round.base == 5_000 and engine.round.passed == 0


def test_a_new_server_takes_over_from_what_the_sites_know() -> None:
    run, _ = tracker(64, 5_000)
    engine = RobustTuned(64, 0.1, 0.01)
    engine.begin([site.count for site in run.sites])
    assert engine.estimate().lo == 5_000 and engine.estimate().confidence == 1
    assert engine.hear(3, centred_rule(0.1), 0, 1, 80) == EndRound()
    assert isinstance(engine.summons(), Blocks)
    engine.begin([80] * 64)
    assert engine.round is not None
    assert engine.estimate().lo <= 5_120 <= engine.estimate().hi


def test_many_items_at_once_are_counted() -> None:
    run, engine = tracker(64, 5_000)
    for site in run.sites:
        site.add(1_000)
    estimate = engine.estimate()
    assert estimate.lo <= 69_000 <= estimate.hi
