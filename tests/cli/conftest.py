"""Every command runs in a folder of its own, with small tables and logs in it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.running import write_files


@pytest.fixture(autouse=True)
def folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("commands")
    monkeypatch.chdir(path)
    write_files(path)
    yield path
    sys.modules.pop("stolen", None)
