import subprocess
import sys

import pytest

HEAVY = {"numpy", "scipy", "numba", "duckdb", "sqlglot", "ortools"}


def imported_by(*arguments: str) -> set[str]:
    """The top-level packages a fresh interpreter imports to run this."""
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    lines = [line for line in shown.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(flag: str) -> None:
    imported = imported_by("-m", "casemate", flag)
    assert "cyclopts" in imported
    assert not imported & HEAVY


def test_importing_casemate_imports_neither_the_heavy_packages_nor_the_command_line() -> None:
    assert not imported_by("-c", "import casemate") & {*HEAVY, "cyclopts", "rich"}


def test_the_detector_sees_a_heavy_import() -> None:
    assert imported_by("-c", "import numpy") & HEAVY == {"numpy"}
