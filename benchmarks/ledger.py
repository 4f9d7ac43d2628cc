"""Durable charges: how many share a commit, and what that gains over one commit each."""

import tempfile
import threading
import time
from fractions import Fraction
from pathlib import Path

from benchmarks.claims import Claim, show
from casemate.privacy import Pure
from casemate.privacy.ledger import Ledger, open_ledger

CALLERS, EACH, ALONE = 256, 40, 200
COST = Pure(Fraction(1, 10**6))


def grouped(ledger: Ledger) -> tuple[float, float]:
    """Charges per second and per commit when all callers charge at once."""
    together = threading.Barrier(CALLERS + 1)

    def spend(name: int) -> None:
        together.wait()
        for turn in range(EACH):
            ledger.charge(COST, key=f"{name}.{turn}", purpose="benchmark", principal=str(name))

    threads = [threading.Thread(target=spend, args=(name,)) for name in range(CALLERS)]
    for thread in threads:
        thread.start()
    commits = ledger.commits
    together.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    return CALLERS * EACH / seconds, CALLERS * EACH / (ledger.commits - commits)


def one_by_one(ledger: Ledger) -> float:
    """Charges per second when a single caller waits for each commit."""
    start = time.perf_counter()
    for turn in range(ALONE):
        ledger.charge(COST, key=f"alone.{turn}", purpose="benchmark")
    return ALONE / (time.perf_counter() - start)


def measured_in_turn(ledger: Ledger) -> list[Claim]:
    alone = one_by_one(ledger)
    together, per_commit = grouped(ledger)
    rows = ledger.verify().number + 1
    start = time.process_time()
    ledger.verify()
    walk = (time.process_time() - start) / rows
    return [
        Claim(f"charges per commit, {CALLERS} callers", ">= 100", f"{per_commit:.0f}"),
        Claim("durable charges/s, grouped", "", f"{together:,.0f}"),
        Claim("durable charges/s, one by one", "", f"{alone:,.0f}"),
        Claim("grouped / one by one, same run", "> 1", f"{together / alone:.1f}"),
        Claim("verifying a row", "", f"{walk * 1e6:.0f} us CPU"),
    ]


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(
            Path(folder) / "benchmark.ledger", dataset="benchmark", policy="", epsilon=Fraction(1)
        ) as ledger,
    ):
        show(measured_in_turn(ledger))
