"""The same small world as the query room's tests."""

from collections.abc import Iterator
from typing import Any

import pytest
from query import slow, world

from casemate.table.table import Table


@pytest.fixture(scope="session")
def records() -> list[dict[str, Any]]:
    return slow.records(world.people())


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with world.in_duckdb(tmp_path_factory.mktemp("world"), world.people()) as table:
        yield table
