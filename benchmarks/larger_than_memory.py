"""Claim: 50 million Parquet rows are filtered and aggregated under a 2 GB limit."""

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.claims import Claim, show
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.place import Files, find

ROWS = 50_000_000
FILES = 4
LIMIT = "1700MB"  # of the engine, so that the whole process stays below 2 GB


@dataclass(frozen=True)
class Answer:
    """What two aggregates over the whole table gave, and what they cost."""

    areas: int  # the groups of one that is small in memory
    people: int  # the groups of one that is not: more than every second row is one
    seconds: float
    peak: int  # the most bytes this process has had in memory


def generate(folder: Path, rows: int, files: int) -> None:
    """Write rows of eight columns through DuckDB itself."""
    connection = duckdb.connect(config={"memory_limit": LIMIT, "temp_directory": str(folder)})
    connection.execute("SET enable_progress_bar = false")
    for part in range(files):
        first, last = part * rows // files, (part + 1) * rows // files
        connection.execute(
            f"COPY (SELECT i AS id, hash(i) % 1000 AS area, hash(i + 1) % 100 AS age, "
            f"hash(i + 2) % 2 = 0 AS member, hash(i + 3) / 1.8e19 AS ratio, "
            f"CAST(hash(i + 4) % 10000000 AS DECIMAL(12, 2)) / 100 AS income, "
            f"'diagnosis ' || hash(i + 5) % 50 AS diagnosis, "
            f"DATE '2020-01-01' + CAST(hash(i + 6) % 1000 AS INTEGER) AS day "
            f"FROM range({first}, {last}) AS r(i)) TO '{folder}/part-{part}.parquet'"
        )
    connection.close()


def answer(folder: Path, limit: str) -> Answer:
    """Filter and aggregate all of it through a source with a memory limit."""
    place = find("part-*.parquet", folder)
    if not isinstance(place, Files):
        raise RuntimeError("the rows were not generated")
    source = DuckDBSource(place, memory_limit=limit)
    rows = f"{source.relation()} AS t WHERE age < 90 AND diagnosis <> 'diagnosis 7'"
    start = time.process_time()
    areas = source.read(
        "SELECT area, COUNT(*) AS n, SUM(income) AS income, AVG(ratio) AS ratio "
        f"FROM {rows} GROUP BY area"
    )
    people = source.read(
        "SELECT COUNT(*) AS n, MAX(income) AS income FROM "
        f"(SELECT id // 2 AS pair, area, SUM(income) AS income FROM {rows} GROUP BY 1, 2) AS p"
    )
    seconds = time.process_time() - start
    source.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Answer(len(areas["area"].values), int(people["n"].values[0]), seconds, peak)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), ROWS, FILES)
        size = sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))
        # In a process of its own, so that nothing but the aggregate is in its peak of memory.
        script = (
            "import sys; from pathlib import Path; "
            "from benchmarks.larger_than_memory import LIMIT, answer; "
            "a = answer(Path(sys.argv[1]), LIMIT); print(a.areas, a.people, a.seconds, a.peak)"
        )
        ran = subprocess.run(
            [sys.executable, "-c", script, folder], check=True, capture_output=True, text=True
        )
    areas, people, seconds, peak = ran.stdout.split()
    show(
        [
            Claim(f"peak memory over {ROWS:,} rows", "2 GB", f"{int(peak) / 1e9:.2f} GB"),
            Claim("groups of the first aggregate", "1000", areas),
            Claim("groups of the second aggregate", "stated", f"{int(people):,}"),
            Claim("CPU seconds", "stated", f"{float(seconds):.1f}"),
            Claim("Parquet read", "stated", f"{size / 1e9:.2f} GB"),
        ]
    )


if __name__ == "__main__":
    main()
