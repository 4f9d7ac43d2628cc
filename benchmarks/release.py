"""Claim: what a real release gives away, decided exactly.

The release is SUM(income) of every table of up to three of nine public attributes, cells of fewer
than 10 people withheld. The records are those of the American Community Survey, Massachusetts 2019,
as excerpted by NIST: a file acs_massachusetts_2019.csv.gz in the folder that CASEMATE_DATA names.
"""

import csv
import gzip
import time
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.claims import Claim, real_table, show
from casemate.audit.case import exact_rows
from casemate.audit.region.collapse import collapse
from casemate.exact import certify, determine
from casemate.published import equations, publication
from casemate.query.parse import Logged
from casemate.table import Table

FILE = "acs_massachusetts_2019.csv.gz"
PUBLIC = ("PUMA", "SEX", "MSP", "RAC1P", "EDU", "HOUSING_TYPE", "OWN_RENT", "INDP_CAT")
ASKED = {2: (1_500, 1_149, 14), 3: (9_187, 4_587, 1_331)}
"""Published numbers, their rank, and the people exposed, for tables of up to so many attributes."""


def prepare(source: Path, target: Path) -> None:
    """The nine public columns, age in steps of five years, and income; N means none."""
    with gzip.open(source, "rt") as read, target.open("w", newline="") as write:
        out = csv.writer(write)
        out.writerow([*PUBLIC, "AGE5", "PINCP"])
        for row in csv.DictReader(read):
            income = 0 if row["PINCP"] == "N" else int(float(row["PINCP"]))
            out.writerow([*(row[name] for name in PUBLIC), int(row["AGEP"]) // 5, income])


def statements(ways: int) -> list[str]:
    """Every table of up to so many attributes."""
    found = []
    for size in range(ways + 1):
        for chosen in combinations((*PUBLIC, "AGE5"), size):
            keys = ", ".join(f'"{name}"' for name in chosen)
            shown, by = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
            found.append(f"SELECT {shown}SUM(PINCP) FROM t{by} HAVING COUNT(*) >= 10")
    return found


def measure(table: Table, ways: int) -> list[Claim]:
    found = publication([Logged(sql, 1) for sql in statements(ways)], table.policy)
    start = time.process_time()
    system = equations(found.columns, table.policy, table.source)
    reading = time.process_time() - start
    start = time.process_time()
    collapsed = collapse(exact_rows(system).system)
    decided = determine(collapsed.system)
    alone = np.flatnonzero(decided.determined & (collapsed.sizes == 1)).tolist()
    deciding = time.process_time() - start
    start = time.process_time()
    proved = len(list(certify(collapsed.system, decided.block, alone)))
    proving = time.process_time() - start
    shown = (system.system.rows, decided.rank, len(alone))
    return [
        Claim(
            f"{ways} ways: published numbers, rank, people exposed", str(ASKED[ways]), str(shown)
        ),
        Claim(f"{ways} ways: certificates checked in integers", str(ASKED[ways][2]), str(proved)),
        Claim(
            f"{ways} ways: CPU s to read, decide, certify",
            "decide <= 12" if ways == 3 else "-",
            f"{reading:.1f}, {deciding:.1f}, {proving:.1f}",
        ),
    ]


def main() -> None:
    real = real_table(FILE)
    if real is None:
        return
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "massachusetts.csv"
        prepare(real, path)
        with Table.open(path, private=["PINCP"]) as table:
            show([claim for ways in (2, 3) for claim in measure(table, ways)])


if __name__ == "__main__":
    main()
