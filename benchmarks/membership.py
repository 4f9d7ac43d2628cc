"""Claims: membership of 1,000 mixed predicates over 1,000,000 records, and the cost of parsing.

Half of the atoms are shared between predicates. The peer is the same question as one SELECT of
1,000 `count(*) FILTER`, in the same process and on the same connection. CPU seconds throughout;
kernels are compiled and the columns are loaded before the clock starts.
"""

import gc
import random
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.claims import Claim, show
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.table import Table

RECORDS = 1_000_000
QUERIES = 1_000
EDUCATION = ["none", "primary", "secondary", "college", "bachelor", "master", "doctor"]


def write_table(path: Path, rng: np.random.Generator) -> None:
    """Eight columns of the kinds such tables have, as CSV."""
    columns = {
        "age": rng.integers(0, 100, RECORDS),
        "hours": rng.integers(0, 80, RECORDS),
        "area": rng.integers(10_000, 12_000, RECORDS),
        "rooms": rng.integers(1, 9, RECORDS),
        "rent": rng.integers(0, 40_000, RECORDS),
        "sex": rng.choice(["f", "m"], RECORDS),
        "education": rng.choice(EDUCATION, RECORDS),
        "region": rng.choice([f"region {i}" for i in range(20)], RECORDS),
        "income": rng.integers(0, 200_000, RECORDS),
    }
    with path.open("w") as file:
        file.write(",".join(columns) + "\n")
        texts = [values.astype(str) for values in columns.values()]
        file.writelines(",".join(row) + "\n" for row in zip(*texts, strict=True))


def predicates(chance: random.Random) -> list[str]:
    """Ranges on 2 to 4 attributes, categorical equalities, some unions and some arithmetic."""
    widths = {"age": 100, "hours": 80, "rooms": 9, "rent": 40_000}
    shared = [range_atom(chance, widths) for _ in range(200)]

    def atom() -> str:
        kind = chance.random()
        if kind < 0.45:
            return chance.choice(shared)
        if kind < 0.75:
            return range_atom(chance, widths)
        if kind < 0.85:
            return f"sex = '{chance.choice('fm')}'"
        if kind < 0.95:
            return f"education IN ('{chance.choice(EDUCATION)}', '{chance.choice(EDUCATION)}')"
        return f"region = 'region {chance.randrange(20)}'"

    def predicate() -> str:
        parts = [atom() for _ in range(chance.randint(2, 4))]
        if chance.random() < 0.1:
            return f"({parts[0]}) OR ({' AND '.join(parts[1:])})"
        return " AND ".join(parts)

    return [predicate() for _ in range(QUERIES)]


def range_atom(chance: random.Random, widths: dict[str, int]) -> str:
    column = chance.choice(list(widths))
    low = chance.randrange(widths[column])
    return f"{column} BETWEEN {low} AND {low + chance.randrange(1, widths[column])}"


def main() -> None:
    chance, rng = random.Random(0), np.random.default_rng(0)
    texts = predicates(chance)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        write_table(path, rng)
        with Table.open(path, private=["income"]) as table:
            measure(table, texts)


def measure(table: Table, texts: list[str]) -> None:
    statements = [f"SELECT COUNT(*) FROM people WHERE {each}" for each in texts]
    parse(statements[0], table.policy)
    start = time.process_time()
    aggregates = [parse(each, table.policy)[0] for each in statements]
    parsing = time.process_time() - start
    membership(aggregates[:3], table.source)  # compiles the kernels
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    found = membership(aggregates, table.source)
    ours = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    filters = ", ".join(f"count(*) FILTER ({each}) AS n{i}" for i, each in enumerate(texts))
    start = time.process_time()
    counted = table.source.read(f"SELECT {filters} FROM {table.source.relation()}")
    theirs = time.process_time() - start
    expected = [int(counted[f"n{i}"].values[0]) for i in range(QUERIES)]
    if found.sizes().tolist() != expected:
        raise RuntimeError("membership and count(*) FILTER disagree")
    show(
        [
            Claim("CPU seconds, 1,000 predicates x 1,000,000 records", "<= 6", f"{ours:.2f}"),
            Claim(
                "peak memory of the process, MB (before the call)",
                "<= 1500",
                f"{peak / 1024:.0f} ({before / 1024:.0f})",
            ),
            Claim("times faster than count(*) FILTER x 1,000", ">= 10", f"{theirs / ours:.0f}"),
            Claim("parsing, ms a statement", "<= 3", f"{1000 * parsing / QUERIES:.2f}"),
        ]
    )


if __name__ == "__main__":
    main()
