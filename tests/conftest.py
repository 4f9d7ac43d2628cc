"""Seeds by argument, Hypothesis profiles, a small world, and servers for marked tests."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads wait for each other

import random
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from query import slow, world
from servers import NatsServer, PostgresServer, RedisServer, service_or_skip

from casemate.table import Table

settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=2_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        default="0",
        help="seed of every test of chance; `random` draws a new one and prints it on failure",
    )


def pytest_configure() -> None:
    settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Fixed by default so that a failure repeats; `--seed random` looks for new ones."""
    given = request.config.getoption("--seed")
    chosen = random.SystemRandom().getrandbits(63) if given == "random" else int(given)
    print(f"--seed {chosen}")
    return chosen


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT means KeyboardInterrupt, also where tests were started by who ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL for the whole run, in a folder of its own."""
    with service_or_skip("PostgreSQL", PostgresServer.start) as server:
        yield server


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database, dropped afterwards."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """A real NATS for the whole run, on loopback."""
    with service_or_skip("NATS", NatsServer.start) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A real Redis for the whole run, on loopback."""
    with service_or_skip("Redis", RedisServer.start) as server:
        yield server


# The world of `query/world.py`, opened once


@pytest.fixture(scope="session")
def rows() -> list[tuple[Any, ...]]:
    return world.people()


@pytest.fixture(scope="session")
def records(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return slow.records(rows)


@pytest.fixture(scope="session")
def people(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> Iterator[Table]:
    with world.in_duckdb(tmp_path_factory.mktemp("world"), rows) as table:
        yield table
