"""Every protocol over every transport: the same list of checks; brokers are real servers."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from track.deployment import ALPHA, TRANSPORTS, Deployment, Served, deployed
from track.transport.eventually import eventually

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
