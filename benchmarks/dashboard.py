"""Claims: a real dashboard with extremes, medians and missing values is decided in seconds.

The records are those of the American Community Survey, Massachusetts 2019, as excerpted by NIST: a
file acs_massachusetts_2019.csv.gz in the folder that CASEMATE_DATA names; 1,120 of 7,634 incomes
are missing. Groups of fewer than 10 people are withheld. Seconds are CPU seconds of an audit.
"""

import gzip
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.claims import Claim, real_table, show
from casemate.audit import Audit
from casemate.audit.result import Audited

FILE = "acs_massachusetts_2019.csv.gz"
POLICY = """
[table]
source = "people.csv"
missing_markers = ["N"]
[columns.PINCP]
role = "private"
type = "decimal"
unbounded = true
missing = "{missing}"
"""
KEYS = ["PUMA", "SEX", "MSP", "HISP", "RAC1P", "OWN_RENT", "INDP_CAT", "EDU"]
TABLES = (
    "EDU",
    "SEX, MSP",
    "PUMA",
    "RAC1P",
    "EDU, SEX",
    "PUMA, SEX",
    "PUMA, EDU",
    "RAC1P, SEX",
    "OWN_RENT, EDU",
    "INDP_CAT",
    "HISP, SEX",
    "MSP, PUMA",
)
EXTREMES = "AVG(PINCP), COUNT(*), MIN(PINCP), MAX(PINCP)"


def statement(keys: str, shown: str) -> str:
    """One table of a dashboard."""
    return f"SELECT {keys}, {shown} FROM t GROUP BY {keys} HAVING COUNT(*) >= 10"


SMALL = [
    statement("EDU", "MAX(PINCP), MIN(PINCP), AVG(PINCP), COUNT(*)"),
    statement("SEX, MSP", "AVG(PINCP)"),
]
MORE = [statement(keys, "AVG(PINCP), COUNT(*)") for keys in ("SEX", "MSP", "EDU, SEX, MSP")]
LOGS = {
    "37 numbers": (SMALL, 5),
    "and three more tables": (SMALL + MORE, 15),
    "twelve tables with extremes": ([statement(keys, EXTREMES) for keys in TABLES], 30),
    "twelve tables with medians": (
        [statement(keys, f"{EXTREMES}, MEDIAN(PINCP)") for keys in TABLES],
        60,
    ),
}


def summary(found: Audited, seconds: float) -> str:
    """What was decided, and how long it took."""
    return (
        f"{len(found.exposed)} exposed, {len(found.missing):,} missing, "
        f"{len(found.undecided)} open, {seconds:.1f} s"
    )


def measure(log: list[str], table: Path, private: tuple[str, ...] = ()) -> tuple[Audited, float]:
    start = time.process_time()
    found = Audit.of(log, table, private=private)
    return found, time.process_time() - start


def write_policy(folder: Path, source: Path, missing: str) -> Path:
    """The real table, and a policy that says whether missingness is public or secret."""
    with gzip.open(source) as read, (folder / "people.csv").open("wb") as write:
        shutil.copyfileobj(read, write)
    policy = folder / f"{missing}.toml"
    public = "".join(f'[columns.{name}]\nrole = "public"\n' for name in KEYS)
    policy.write_text(POLICY.format(missing=missing) + public)
    return policy


def real(folder: Path, source: Path) -> list[Claim]:
    """The dashboards of the real table, missingness public and secret."""
    claims = []
    for missing in ("public", "secret"):
        policy = write_policy(folder, source, missing)
        for name, (log, most) in LOGS.items():
            found, seconds = measure(log, policy)
            claims.append(Claim(f"{name}, {missing}", f"{most} s", summary(found, seconds)))
    return claims


def generated(folder: Path) -> list[Claim]:
    """One statement with extremes over many generated people in 200 groups."""
    claims, rng = [], np.random.default_rng(1)
    for count, most in ((100_000, 5), (1_000_000, 30)):
        path = folder / f"{count}.csv"
        rows = np.c_[rng.integers(0, 200, count), rng.lognormal(10, 1, count).astype(int)]
        np.savetxt(path, rows, fmt="%d", delimiter=",", header="g,x", comments="")
        log = ["SELECT g, MIN(x), MAX(x), AVG(x), COUNT(*) FROM t GROUP BY g"]
        found, seconds = measure(log, path, ("x",))
        claims.append(Claim(f"{count:,} generated people", f"{most} s", summary(found, seconds)))
    return claims


def main() -> None:
    with TemporaryDirectory() as name:
        folder, source = Path(name), real_table(FILE)
        show([*(real(folder, source) if source else []), *generated(folder)])
