"""Run every benchmark, or those that are named: `python -m benchmarks [NAME ...]`.

Each runs alone in a process of its own, one after the other, so that none disturbs another, and
with one thread, because threads that wait for each other count as CPU time too.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
NOT_BENCHMARKS = {"__init__", "__main__", "claims", "survey"}


def benchmarks() -> list[str]:
    """The name of every file here that measures something."""
    return sorted({path.stem for path in HERE.glob("*.py")} - NOT_BENCHMARKS)


def succeeds(name: str) -> bool:
    """Run one benchmark and say whether it came to its end."""
    print(f"\n== {name}", flush=True)
    script = f"from benchmarks.{name} import main; main()"
    command, environment = [sys.executable, "-c", script], os.environ | ONE_THREAD
    return subprocess.run(command, cwd=HERE.parent, env=environment, check=False).returncode == 0


def main(asked: list[str]) -> int:
    unknown = sorted(set(asked) - set(benchmarks()))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(benchmarks())}")
        return 2
    failed = [name for name in asked or benchmarks() if not succeeds(name)]
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
