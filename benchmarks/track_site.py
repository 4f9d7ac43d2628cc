"""Claim: a site counts millions of things a CPU second in plain Python, journal included."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.claims import Claim, show
from casemate.track import CountTracker
from casemate.track.journal import FileJournal
from casemate.track.reporting_rule import Growth, Sample
from casemate.track.site import Site

ITEMS, BATCH, SITES = 5_000_000, 50_000_000, 1024


def rate(items: int, work: Callable[[], None]) -> float:
    """Items a CPU second, the best of three."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return items / best


class Bare:
    """The peer: a method that adds, and nothing else."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, n: int = 1) -> None:
        self.count += n


def adding(site: Site | Bare) -> Callable[[], None]:
    def work() -> None:
        add = site.add
        for _ in range(ITEMS):
            add()

    return work


def main() -> None:
    claims = []
    with tempfile.TemporaryDirectory() as folder:
        for name, rule in (("centred", Growth(101, 99)), ("sampled", Sample(1e-4))):
            journal = FileJournal(Path(folder) / name)
            found = rate(ITEMS, adding(Site(name, lambda _report: None, rule, journal)))
            what = f"add(), {name}, with a journal, million a CPU second"
            claims.append(Claim(what, "at least 5", f"{found / 1e6:.1f}"))
            journal.close()
    claims.append(Claim("a method that only adds", "", f"{rate(ITEMS, adding(Bare())) / 1e6:.1f}"))
    ids = np.random.default_rng(0).integers(0, SITES, BATCH)
    tracker = CountTracker(SITES, alpha=0.01)
    found = rate(BATCH, lambda: tracker.add_many(ids))
    what = "add_many(), 1,024 sites, million a CPU second"
    claims.append(Claim(what, "at least 200", f"{found / 1e6:.0f}"))
    counting = rate(BATCH, lambda: np.bincount(ids, minlength=SITES).sum())
    claims.append(Claim("numpy.bincount alone", "", f"{counting / 1e6:.0f}"))
    show(claims)


if __name__ == "__main__":
    main()
