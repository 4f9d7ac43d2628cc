"""Run every benchmark, or those that are named: `python -m benchmarks [NAME ...]`.

Each runs alone in a process of its own, one after the other, so that none disturbs another.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOT_BENCHMARKS = {"__init__", "__main__", "claims"}


def benchmarks() -> list[str]:
    """The name of every file here that measures something."""
    return sorted({path.stem for path in HERE.glob("*.py")} - NOT_BENCHMARKS)


def succeeds(name: str) -> bool:
    """Run one benchmark and say whether it came to its end."""
    print(f"\n== {name}", flush=True)
    script = f"from benchmarks.{name} import main; main()"
    return (
        subprocess.run([sys.executable, "-c", script], cwd=HERE.parent, check=False).returncode == 0
    )


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
