"""The world of `world.py`, in PostgreSQL."""

from collections.abc import Iterator
from typing import Any

import pytest
from query import world
from servers import PostgresServer

from casemate.table import Table


@pytest.fixture(scope="session")
def people_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def people_in_postgres(
    people_url: str, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> Iterator[Table]:
    with world.in_postgres(tmp_path_factory.mktemp("world"), people_url, rows) as table:
        yield table
