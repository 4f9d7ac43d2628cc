"""Claim: `population` is drawn at any size, in little more memory than the table itself takes."""

import resource
import time

from numpy.random import Generator, Philox

from benchmarks.claims import Claim, show
from casemate.table.shipped import population

ROWS = 10_000_000


def peak() -> int:
    """The most bytes this process has had in memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    population.columns(1, Generator(Philox(0)))  # the tables of chances are built once
    memory, start = peak(), time.process_time()
    table = population.columns(ROWS, Generator(Philox(0)))
    seconds, added = time.process_time() - start, peak() - memory
    held = sum(series.values.nbytes for series in table.values())
    rate = f"{ROWS / seconds / 1e6:.2f} million"
    show(
        [
            Claim("rows of population per CPU second", "stated", rate),
            Claim(f"CPU seconds for {ROWS:,} rows", "feasible", f"{seconds:.1f}"),
            Claim("peak memory over the table's own", "modest", f"{added / held:.2f}"),
            Claim("the table itself", "stated", f"{held / 2**20:,.0f} MiB"),
        ]
    )


if __name__ == "__main__":
    main()
