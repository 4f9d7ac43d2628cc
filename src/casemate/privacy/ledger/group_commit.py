"""Group commit: many callers, one transaction, and nobody is released before it is durable.

Making a transaction durable costs a flush of the disk, some milliseconds, whether it holds one
charge or a thousand. So callers put their work into a queue, one thread takes all that waits there,
does it in one transaction, and hands out the results after the commit returned.

Guarantee  A result is handed out only after its transaction committed. Work that is refused fails
           its own caller alone. When the store fails, every caller of that transaction is told
           that the outcome is not known; keys make it safe to try again.
Waiting    A caller alone is served at once. After a transaction with n callers the next one waits
           for n to come back (half as many after each smaller one), at most
           `ARRIVAL_WAIT_SECONDS` after the last arrival and `BATCH_WAIT_SECONDS` in all: those
           just released usually return sooner than the disk would be done without them.
Stopping   A programming error inside a piece of work stops the ledger: whoever waits, and whoever
           asks later, gets `LedgerUnavailable`.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from casemate.errors import CasemateError, LedgerDamaged, LedgerUnavailable
from casemate.privacy.book.book import Result

BookView = TypeVar("BookView")  # what work is done on: a book
ARRIVAL_WAIT_SECONDS, BATCH_WAIT_SECONDS = 0.002, 0.02
LARGEST_BATCH = 4096
"""Pieces of work in one transaction."""

Work = Callable[[Any], Any]
Ticket = tuple[Work, "Future[Any]"]


class GroupCommit(Generic[BookView]):
    """A store that shares each of its transactions among all the callers that wait for one."""

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[BookView]],
        finish: Callable[[], None],
    ) -> None:
        self.commits = 0
        self._transaction, self._finish = transaction, finish
        self._waiting: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._expected = 1  # callers that may come back soon
        self._lock, self._open, self._process = threading.Lock(), True, os.getpid()
        self._thread = threading.Thread(target=self._serve, name="ledger commits", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[BookView], Result]) -> Result:
        """Do the work in the next transaction, and return its result once that is durable."""
        result: Result = self.submit(work).result()
        return result

    def submit(self, work: Callable[[BookView], Result]) -> "Future[Result]":
        """Queue the work; the future is done when its transaction is durable, or failed."""
        if os.getpid() != self._process:
            raise LedgerUnavailable("this ledger was opened before a fork; open it again after it")
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()  # what is queued will be done
        with self._lock:
            if not self._open:
                raise LedgerUnavailable("this ledger is closed; open it again")
            self._waiting.put((work, future))
        return future

    def close(self) -> None:
        """Serve whoever waits, then stop and let go of the store."""
        with self._lock:
            if self._open and os.getpid() == self._process:
                self._open = False
                self._waiting.put(None)
        self._thread.join()

    def _serve(self) -> None:
        try:
            while batch := self._gather_batch():
                self._commit(batch)
        finally:
            with self._lock:
                self._open = False
            _fail(self._left_over(), "the ledger has stopped")
            self._finish()

    def _gather_batch(self) -> list[Ticket]:
        """Wait for work, then for those who can be expected to bring more of it."""
        first = self._waiting.get()
        batch, deadline = [] if first is None else [first], time.monotonic() + BATCH_WAIT_SECONDS
        while batch and len(batch) < LARGEST_BATCH:
            complete = len(batch) >= self._expected or time.monotonic() >= deadline
            try:
                ticket = self._waiting.get(timeout=0 if complete else ARRIVAL_WAIT_SECONDS)
            except queue.Empty:
                break
            if ticket is None:
                self._waiting.put(None)  # closing: serve this batch, then see the end again
                break
            batch.append(ticket)
        self._expected = max(len(batch), self._expected // 2)  # a crowd is not forgotten at once
        return batch

    def _commit(self, batch: list[Ticket]) -> None:
        """Do a batch in one transaction; release its callers afterwards, and only then."""
        try:
            with self._transaction() as book:
                outcomes = [_outcome(work, book) for work, _ in batch]
            self.commits += 1
            _release(batch, outcomes)
        except (LedgerUnavailable, LedgerDamaged) as failure:
            for _, future in batch:  # an exception of its own for each thread that raises it
                future.set_exception(type(failure)(*failure.args))
        finally:
            _fail(batch, "the ledger has stopped because of an error in casemate")

    def _left_over(self) -> list[Ticket]:
        tickets = []
        while not self._waiting.empty():
            ticket = self._waiting.get()
            if ticket is not None:
                tickets.append(ticket)
        return tickets


def _outcome(work: Work, book: Any) -> Any:
    """The result, or the refusal that belongs to this caller alone."""
    try:
        return work(book)
    except (LedgerUnavailable, LedgerDamaged):
        raise
    except CasemateError as refusal:
        return refusal


def _release(batch: list[Ticket], outcomes: list[Any]) -> None:
    for (_, future), outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, CasemateError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _fail(batch: list[Ticket], why: str) -> None:
    """Tell those who were not answered that they never will be."""
    for _, future in batch:
        if not future.done():
            future.set_exception(
                LedgerUnavailable(f"{why}; open it again and retry with the same key")
            )
