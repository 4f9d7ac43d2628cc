"""Every protocol: the same list of checks, as a library and over every transport.

Brokers are real servers.
"""

import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from track.deployment import ALPHA, TRANSPORTS, Deployment, Served, deployed
from track.transport.eventually import eventually

from casemate.track import CountTracker
from casemate.track.modes import TRACKERS
from casemate.track.site import Site

NAMES = ["paris", "lima", "a b.*"]
pytestmark = pytest.mark.parametrize("mode", TRACKERS)


@pytest.fixture(params=TRANSPORTS)
def deployment(request: pytest.FixtureRequest) -> Deployment:
    return deployed(request.param, request)


def all_join(
    deployment: Deployment,
    stack: ExitStack,
    journals: Path | None = None,
    names: Sequence[str] = NAMES,
) -> list[Site]:
    members = [deployment.member(name, journals and journals / name) for name in names]
    return [stack.enter_context(member) for member in members]


def is_right(tracker: Served, truth: int) -> bool:
    """Whether the promise is kept; over a broker it is once nothing is in flight any more."""
    count = tracker.read()
    close = abs(count.value - truth) <= ALPHA * truth * (1 + 1e-12)
    return close and count.lo <= truth <= count.hi and count.stale_sites == ()


def test_counts_of_several_sites_are_within_alpha_and_a_poll_is_exact(
    mode: str, deployment: Deployment
) -> None:
    with ExitStack() as stack:
        sites = all_join(deployment, stack)
        tracker = stack.enter_context(closing(deployment.serve(mode, NAMES)))
        truth = 0
        for n in (1, 40, 900):  # more and more, and ever less evenly
            for i, site in enumerate(sites):
                for _ in range(n):
                    site.add(1 + i * i)
                truth += n * (1 + i * i)
            eventually(lambda now=truth: is_right(tracker, now))  # type: ignore[misc]  # bound now
            count = tracker.poll()
            assert (count.value, count.lo, count.hi) == (truth, truth, truth)
        assert tracker.read().words < truth


def test_a_server_that_starts_again_knows_everything_after_one_call(
    mode: str, deployment: Deployment
) -> None:
    with ExitStack() as stack:
        sites = all_join(deployment, stack)
        with closing(deployment.serve(mode, NAMES)) as former:
            for site in sites:
                site.add(700)
            eventually(lambda: is_right(former, 2100))
        sites[0].add(5)  # while nobody serves
        tracker = stack.enter_context(closing(deployment.serve(mode, NAMES)))
        eventually(lambda: is_right(tracker, 2105))
        # Redis brings what it had kept, too, which may be answered with a rule.
        assert tracker.read().words <= 5 * len(NAMES)
        assert tracker.poll().value == 2105
        sites[1].add(10_000)
        eventually(lambda: is_right(tracker, 12_105))


def test_a_site_without_a_journal_comes_back_as_another_beside_its_old_count(
    mode: str, deployment: Deployment
) -> None:
    first, *others = NAMES
    with ExitStack() as stack:
        sites = all_join(deployment, stack, names=others)
        former = deployment.member(first)
        former.__enter__().add(250)
        tracker = stack.enter_context(closing(deployment.serve(mode, NAMES)))
        for total in (1250, 1500, 1750):
            for site in sites:
                site.add(500 if total == 1250 else 0)
            eventually(lambda now=total: is_right(tracker, now))  # type: ignore[misc]  # bound now
            former.__exit__(None, None, None)
            former = deployment.member(first)
            former.__enter__().add(250)
        assert tracker.poll().value == 2000
        former.__exit__(None, None, None)


def test_sites_with_journals_go_on_where_they_were(
    mode: str, deployment: Deployment, tmp_path: Path
) -> None:
    with closing(deployment.serve(mode, NAMES)) as tracker:
        for total in (300, 600, 900):
            with ExitStack() as stack:
                for site in all_join(deployment, stack, tmp_path):
                    site.add(100)
                eventually(lambda now=total: is_right(tracker, now))  # type: ignore[misc]  # bound now
                assert tracker.poll().value == total


# In one process


def test_the_count_is_within_alpha_at_all_times_one_by_one_between_polls_and_in_batches(
    mode: str, seed: int
) -> None:
    random, items = np.random.default_rng(seed), 0
    with CountTracker(3, alpha=0.1, delta=1e-9, mode=mode) as tracker:
        assert tracker.poll().value == tracker.poll().value == 0
        for site in random.integers(0, 3, 6_000).tolist():
            tracker.site(site).add()
            items, count = items + 1, tracker.read()
            assert abs(count.value - items) <= 0.1 * items * (1 + 1e-12)
            assert count.lo <= items <= count.hi
            assert not count.stale_sites and count.lag == 0.0
            if items > 4_000 and items % 97 == 0:
                assert tracker.poll().value == items
        for size in (10, 1_000, 50_000, 3, 200_000):
            tracker.add_many(random.integers(0, 3, size))
            items += size
            assert abs(tracker.read().value - items) <= 0.1 * items
        tracker.add_many([0, 0, 2], [10, 20, 30])
        assert tracker.poll().value == items + 60


def test_a_thread_may_read_and_poll_while_others_count(mode: str) -> None:
    """Threads change places all the time; nothing is lost, and every poll is in between."""
    tracker = CountTracker(3, alpha=0.1, delta=1e-9, mode=mode)

    def count(site: int) -> None:
        for _ in range(2_000):
            tracker.site(site).add()

    threads = [threading.Thread(target=count, args=(i,)) for i in range(3)]
    before, polled = sys.getswitchinterval(), [0.0]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            polled += [tracker.poll().value]
            tracker.read()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert polled == sorted(polled)
    assert abs(tracker.read().value - 6_000) <= 0.1 * 6_000
    assert tracker.poll().value == 6_000


@pytest.mark.parametrize("alpha", [0.01, 0.999999])
def test_the_largest_counts_are_tracked(mode: str, alpha: float) -> None:
    tracker = CountTracker(3, alpha, mode=mode)
    for site in range(3):
        tracker.site(site).add(2**53)
    assert tracker.poll().value == 3 * 2**53
