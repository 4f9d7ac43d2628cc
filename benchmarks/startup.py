"""Claim: `casemate --help` costs at most 1.3 times the CPU of an empty app of the same framework.

The two are run alternately in one go, and the medians of user plus system time are compared.
"""

import os
import statistics
import subprocess
import sys

from benchmarks.claims import Claim, show

ROUNDS = 31
EMPTY = "import cyclopts; cyclopts.App(name='empty', help_format='plaintext')(['--help'])"
CASEMATE = "from casemate.cli.main import run; run(['--help'])"
HEAVY = ("numpy", "scipy", "numba", "duckdb", "sqlglot", "ortools")


def cpu_seconds(script: str) -> float:
    """User and system time of an interpreter that runs the script."""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"exit code {child.returncode} from: {script}")
    return used.ru_utime + used.ru_stime


def imported() -> list[str]:
    """The heavy packages `casemate --help` imports."""
    command = [sys.executable, "-X", "importtime", "-c", CASEMATE]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    names = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    return [name for name in HEAVY if name in names]


def main() -> None:
    for script in (EMPTY, CASEMATE):
        cpu_seconds(script)  # once for the files to be in memory and compiled
    pairs = [(cpu_seconds(EMPTY), cpu_seconds(CASEMATE)) for _ in range(ROUNDS)]
    empty, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    show(
        [
            Claim(
                "CPU of casemate --help over that of an empty cyclopts app",
                "<= 1.3",
                f"{ours / empty:.2f} ({1000 * ours:.0f} ms over {1000 * empty:.0f} ms)",
            ),
            Claim("heavy packages it imports", "none", ", ".join(imported()) or "none"),
        ]
    )
