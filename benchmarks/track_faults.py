"""Claim: a bad network changes nothing that a tracker promises.

Messages are repeated, overtaken and lost in a simulated network in which one item comes at each
step; a server starts again without anything it knew; processes are killed with -9 in the tests.
"""

import sys
from itertools import accumulate
from pathlib import Path

from benchmarks.claims import Claim, show
from casemate.track.modes import TRACKERS, make_engine
from casemate.track.setting import Setting

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles.bad_network import BadNetwork, Faults

SETTING = Setting(sites=64, alpha=0.05, delta=1e-6, items=10**6)
ITEMS, RUNS, BEAT = 10_000, 5, 4
LOADS = {
    "even": [1.0] * SETTING.sites,
    "skewed": [(i + 1) ** -1.5 for i in range(SETTING.sites)],
    "single site": [1.0] + [0.0] * (SETTING.sites - 1),
}


def begun(mode: str, faults: Faults, seed: int) -> BadNetwork:
    """A tracker that has counted a little, so that one item in flight is less than alpha."""
    run = BadNetwork(SETTING.sites, make_engine(mode, SETTING), faults, seed, beat=BEAT)
    run.attendant.open()
    for n in range(4 * SETTING.sites):
        run.step(n % SETTING.sites)
    return run


def worst(mode: str, faults: Faults, load: str, seed: int) -> float:
    run, found = begun(mode, faults, seed), 0.0
    weights = list(accumulate(LOADS[load]))
    for site in run.random.choices(range(SETTING.sites), cum_weights=weights, k=ITEMS):
        run.step(site)
        found = max(found, abs(run.value - run.truth) / (SETTING.alpha * run.truth))
    return found


def violations(mode: str, faults: Faults, load: str) -> tuple[int, float]:
    errors = [worst(mode, faults, load, seed) for seed in range(RUNS)]
    return sum(error > 1 for error in errors), max(errors)


def restarted(mode: str) -> tuple[bool, int]:
    """Whether a server that lost everything is exact after one call, and the words of that."""
    run = begun(mode, Faults(), 0)
    run.serve(make_engine(mode, SETTING))
    run.attendant.open()
    return run.attendant.server.heard == run.truth, run.attendant.server.words


def main() -> None:
    repeated = Faults(duplicate=0.2, delay=5, reorder=True)
    claims = []
    for mode in TRACKERS:
        count, error = violations(mode, repeated, "even")
        shown = f"{count} of {RUNS}, error {error:.2f}"
        claims.append(Claim(f"{mode}: 20 % repeated and overtaken, runs broken", "0", shown))
        for load in LOADS:
            count, error = violations(mode, Faults(drop=0.05), load)
            shown = f"{count} of {RUNS}, error {error:.2f}"
            claims.append(Claim(f"{mode}: 5 % lost, {load} load", "0", shown))
        exact, words = restarted(mode)
        shown = f"{'exact' if exact else 'wrong'}, {words / SETTING.sites:.1f} k words"
        claims.append(Claim(f"{mode}: server started again", "exact, 2 k words", shown))
    show(claims)


if __name__ == "__main__":
    main()
