"""Claim: a hard limit shared by many sites costs few messages, and `acquire` is a local call.

Every item is a real call of `acquire` at a site of a real quota, up to the first refusal. Asked is
what leases of R / k of what the server has left take, with everything recalled when it has nothing.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.claims import Claim, show
from casemate.track.quota import Quota

LIMIT = 10**7
ASKED = {
    (16, "uniform"): "496",
    (64, "uniform"): "1,848",
    (1024, "uniform"): "<= 25,000 (24,082)",
    (1024, "zipf"): "98,706",
}
CALLS = 1_000_000


@dataclass(frozen=True)
class Spent:
    """What it took to use up a limit."""

    messages: int
    admitted: int
    asked: int  # calls of `acquire` that were not local


def stream(load: str, sites: int, items: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    if load == "uniform":
        return list(rng.integers(0, sites, items).tolist())
    exponent = 1.5 if load == "zipf 1.5" else 1.0
    weights = 1 / np.arange(1, sites + 1) ** exponent
    return list(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(items)).tolist())


def used_up(quota: Quota, places: list[int]) -> Spent:
    """Acquire one at a time until the first refusal."""
    acquires = [quota.site(name).acquire for name in quota.sites]
    for admitted, place in enumerate(places):
        if not acquires[place]():
            return Spent(quota.messages, admitted, quota.server.messages["request"])
    raise RuntimeError("the stream ended before the limit was reached")


def counted(limit: int, load: str, sites: int, remainder: float, seed: int) -> list[Claim]:
    places = stream(load, sites, limit + limit // 50, seed)
    spent = used_up(Quota(limit, sites, remainder=remainder), places)
    if spent.admitted > limit:
        raise RuntimeError("more was admitted than the limit allows")
    name = f"k = {sites}, {load}"
    if remainder != 0.01:
        name += f", remainder {remainder:g}"
        return [Claim(f"{name}: messages", "", f"{spent.messages:,}"), _share(name, spent, limit)]
    local = 1 - spent.asked / spent.admitted
    return [
        Claim(f"{name}: messages", ASKED.get((sites, load), ""), f"{spent.messages:,}"),
        _share(name, spent, limit),
        Claim(f"{name}: share of calls without a message", "", f"{local:.5%}"),
    ]


def _share(name: str, spent: Spent, limit: int) -> Claim:
    share = f"{spent.admitted / limit:.3%}"
    return Claim(f"{name}: admitted before the first refusal", ">= 99 %", share)


class LockedCounter:
    """The plain thing: one lock, one counter, no other site."""

    def __init__(self, limit: int) -> None:
        self._lock, self._limit, self._used = threading.Lock(), limit, 0

    def acquire(self, n: int = 1) -> bool:
        with self._lock:
            if self._used + n > self._limit:
                return False
            self._used += n
            return True


def rate(acquire: Callable[[], bool], calls: int = CALLS) -> float:
    """Calls per CPU second."""
    start = time.process_time()
    for _ in range(calls):
        acquire()
    return calls / (time.process_time() - start)


def speed(turns: int = 5) -> list[Claim]:
    """In turns, in one run; the best of each."""
    with tempfile.TemporaryDirectory() as folder, Quota(1 << 40, journal=folder) as kept:
        contenders = {
            "a plain locked counter": LockedCounter(1 << 40).acquire,
            "a quota's site in memory": Quota(1 << 40).site(0).acquire,
            "a quota's site with a journal": kept.site(0).acquire,
        }
        best = dict.fromkeys(contenders, 0.0)
        for _ in range(turns):
            for name, acquire in contenders.items():
                best[name] = max(best[name], rate(acquire))
    plain = best["a plain locked counter"]
    return [
        Claim(f"acquire() of {name}", "", f"{each / 1e6:.1f} M per CPU-s, {each / plain:.2f}x")
        for name, each in best.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=LIMIT)
    parser.add_argument("--sites", type=int, nargs="*", default=[16, 64, 1024])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    claims = []
    for sites in asked.sites:
        for load in ("uniform", "zipf", "zipf 1.5"):
            claims += counted(asked.limit, load, sites, 0.01, asked.seed)
    last = asked.sites[-1]
    for remainder in (0.001, 0.0):
        claims += counted(asked.limit, "uniform", last, remainder, asked.seed)
    show(claims + speed())


if __name__ == "__main__":
    main()
