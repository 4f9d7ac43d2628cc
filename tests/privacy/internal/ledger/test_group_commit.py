"""Who is released when: nobody before the commit, everybody after it, the refused alone."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from casemate.errors import LedgerDamaged, LedgerUnavailable, Misconfigured, Refused
from casemate.privacy import Pure
from casemate.privacy.ledger import open_ledger
from casemate.privacy.ledger.group_commit import LARGEST_BATCH, GroupCommit
from casemate.privacy.ledger.store import LedgerBook, LedgerInMemory


class Disk:
    """A store whose commits a test can hold up or make fail."""

    def __init__(self) -> None:
        self.book = LedgerInMemory().book
        self.reached, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.held = False
        self.failure: Exception | None = None
        self.finished = False

    @contextmanager
    def transaction(self) -> Iterator[LedgerBook]:
        yield self.book
        self.reached.release()
        if self.held:
            assert self.go_on.acquire(timeout=60)
        if self.failure is not None:
            raise self.failure

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def store(disk: Disk) -> Iterator[GroupCommit[LedgerBook]]:
    store = GroupCommit(disk.transaction, disk.finish)
    yield store
    disk.held, disk.failure = False, None
    disk.go_on.release(1000)
    store.close()


def saying(value: int) -> Callable[[LedgerBook], int]:
    def say(book: LedgerBook) -> int:
        return value

    return say


def test_nobody_is_released_before_the_commit(store: GroupCommit[LedgerBook], disk: Disk) -> None:
    disk.held = True
    first = store.submit(saying(7))
    assert disk.reached.acquire(timeout=60), "the work is done and the commit has begun"
    rest = [store.submit(saying(n)) for n in range(300)]
    assert not first.done()
    disk.go_on.release()
    assert first.result(60) == 7
    assert disk.reached.acquire(timeout=60)
    assert not any(future.done() for future in rest), "the second commit has not returned yet"
    disk.go_on.release()
    assert [future.result(60) for future in rest] == list(range(300))
    assert store.commits == 2, "those who waited share one commit"


@pytest.mark.parametrize("refusal", [Refused("too much"), Misconfigured("another relation")])
def test_a_refusal_fails_its_own_caller_alone(
    store: GroupCommit[LedgerBook], disk: Disk, refusal: Refused | Misconfigured
) -> None:
    def refuse(book: LedgerBook) -> int:
        raise refusal

    disk.held = True
    opener = store.submit(saying(0))
    assert disk.reached.acquire(timeout=60)
    futures: list[Future[int]] = [
        store.submit(saying(1)),
        store.submit(refuse),
        store.submit(saying(2)),
    ]
    disk.go_on.release(2)
    wait([opener, *futures], 60)
    assert (futures[0].result(), futures[2].result()) == (1, 2)
    with pytest.raises(type(refusal), match=str(refusal)):
        futures[1].result()
    assert store.commits == 2


@pytest.mark.parametrize("failure", [LedgerUnavailable("disk full"), LedgerDamaged("row 3")])
def test_a_failed_commit_fails_all_its_callers_and_the_next_one_is_served(
    store: GroupCommit[LedgerBook], disk: Disk, failure: LedgerUnavailable | LedgerDamaged
) -> None:
    disk.held, disk.failure = True, failure
    futures = [store.submit(saying(0))]
    assert disk.reached.acquire(timeout=60)
    futures += [store.submit(saying(0)) for _ in range(5)]
    disk.go_on.release(2)
    for future in futures:
        with pytest.raises(type(failure), match=str(failure)):
            future.result(60)
    assert store.commits == 0
    disk.held, disk.failure = False, None
    assert store.run(saying(1)) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_casemate_stops_the_ledger_and_leaves_nobody_waiting(
    store: GroupCommit[LedgerBook], disk: Disk
) -> None:
    def blunder(book: LedgerBook) -> int:
        raise ZeroDivisionError

    disk.held = True
    opener = store.submit(saying(0))
    assert disk.reached.acquire(timeout=60)
    futures = [store.submit(saying(1)), store.submit(blunder)]
    disk.held = False
    disk.go_on.release()
    assert opener.result(60) == 0
    for future in futures:
        with pytest.raises(LedgerUnavailable, match="because of an error in casemate"):
            future.result(60)
    store.close()
    with pytest.raises(LedgerUnavailable, match="is closed; open it again"):
        store.run(saying(2))
    assert disk.finished


def test_closing_serves_whoever_waits_and_then_lets_go(disk: Disk) -> None:
    store = GroupCommit(disk.transaction, disk.finish)
    futures = [store.submit(saying(n)) for n in range(LARGEST_BATCH + 10)]
    store.close()
    assert [future.result(0) for future in futures] == list(range(LARGEST_BATCH + 10))
    assert disk.finished
    store.close()
    with pytest.raises(LedgerUnavailable, match="is closed"):
        store.run(saying(0))


def test_a_fork_must_open_the_ledger_again(
    store: GroupCommit[LedgerBook], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(LedgerUnavailable, match="before a fork"):
        store.run(saying(0))


def test_256_callers_share_their_commits_a_hundred_to_one(tmp_path: Path) -> None:
    callers, each = 256, 8
    together = threading.Barrier(callers)
    with open_ledger(tmp_path / "a.ledger", dataset="d", policy="", epsilon=Fraction(1)) as ledger:
        before = ledger.commits

        def spend(name: int) -> None:
            together.wait()
            for turn in range(each):
                cost = Pure(Fraction(1, callers * each))
                ledger.charge(cost, key=f"{name}.{turn}", purpose="race", principal=str(name))

        threads = [threading.Thread(target=spend, args=(name,)) for name in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        commits = ledger.commits - before
        assert ledger.remaining() == 0
    assert callers * each / commits >= 100
