import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "benchmarks"
GOOD = """
from benchmarks.claims import Claim, show

def main() -> None:
    show([Claim("speed of light", "299,792 km/s", "fast"), Claim("pi", "3.14", "3.14159")])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the runner, a benchmark that works and one that does not."""
    (tmp_path / "benchmarks").mkdir()
    for name in ("__main__.py", "claims.py"):
        shutil.copy(HERE / name, tmp_path / "benchmarks")
    (tmp_path / "benchmarks/good.py").write_text(GOOD)
    (tmp_path / "benchmarks/bad.py").write_text("def main() -> None:\n    raise SystemExit(5)\n")
    return tmp_path


def run(folder: Path, *names: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "benchmarks", *names]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return shown.returncode, shown.stdout


def test_every_benchmark_runs_and_the_failed_ones_are_named_at_the_end(folder: Path) -> None:
    code, shown = run(folder)
    assert code == 1
    assert [line for line in shown.splitlines() if line.startswith("==")] == ["== bad", "== good"]
    assert shown.endswith("\nfailed: bad\n")


def test_a_claim_stands_beside_what_was_asked_and_what_was_measured(folder: Path) -> None:
    assert run(folder, "good") == (
        0,
        "\n== good\n"
        "claim          | asked        | measured\n"
        "speed of light | 299,792 km/s | fast\n"
        "pi             | 3.14         | 3.14159\n",
    )


def test_an_unknown_name_is_answered_with_the_known_ones(folder: Path) -> None:
    assert run(folder, "godo") == (2, "no benchmark godo; there are: bad, good\n")


NO_BENCHMARKS = {HERE / f"{name}.py" for name in ("__main__", "claims", "survey")}


@pytest.mark.parametrize("path", sorted(set(HERE.glob("*.py")) - NO_BENCHMARKS))
def test_every_benchmark_has_a_main_and_says_what_it_claims(path: Path) -> None:
    module = ast.parse(path.read_text())
    mains = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    assert "main" in {node.name for node in mains}
    assert ast.get_docstring(module)
