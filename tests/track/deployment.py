"""A tracker's server and its sites over any transport, to be started and ended one by one."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import pytest
from oracles.bad_network import Faults, Faulty

from casemate.track import CountTracker
from casemate.track.modes import make_engine
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Timing
from casemate.track.service.membership import attach, join
from casemate.track.setting import Count, Setting
from casemate.track.site import Site
from casemate.track.transport.network import InProcess

ALPHA, DELTA, HORIZON = 0.1, 1e-9, 10**9  # as other tests have, so that designs are shared
SILENT = 600.0  # a heartbeat that does not come: whatever is right is so without it


class ServedHere:
    """A server with its attendant, whose time goes on whenever somebody looks."""

    def __init__(self, transport: InProcess | Faulty, mode: str, sites: Sequence[str]) -> None:
        self.now = 0.0
        engine = make_engine(mode, Setting(len(sites), ALPHA, DELTA, HORIZON))
        server = Server(sites, engine, transport.order)
        self._attendant = Attendant(server, sites, Timing(repeat=0.5), lambda: self.now)
        transport.serve(self._attendant.receive)
        self._attendant.open()

    def read(self) -> Count:
        self.now += 1.0
        self._attendant.tick()
        return self._attendant.read()

    def poll(self) -> Count:
        self.read()
        server = self._attendant.server
        server.poll()
        count, exact = self._attendant.read(), float(server.heard)
        assert not server.awaited
        return Count(exact, exact, exact, 1.0, count.lag, count.epoch, (), count.words)

    def close(self) -> None:
        pass


class Here:
    """Everything in one process."""

    def __init__(self, transport: InProcess | Faulty) -> None:
        self._transport = transport

    def serve(self, mode: str, sites: Sequence[str]) -> ServedHere:
        return ServedHere(self._transport, mode, sites)

    def member(self, name: str, journal: Path | None = None) -> AbstractContextManager[Site]:
        return attach(self._transport, name, journal, SILENT)


class Broker:
    """A real broker; every site has a connection of its own."""

    def __init__(self, address: str) -> None:
        self._address = address

    def serve(self, mode: str, sites: Sequence[str]) -> CountTracker:
        return CountTracker(sites, ALPHA, DELTA, mode, transport=self._address, horizon=HORIZON)

    def member(self, name: str, journal: Path | None = None) -> AbstractContextManager[Site]:
        return join(self._address, name, journal, SILENT)


Served = ServedHere | CountTracker
Deployment = Here | Broker
"""Somewhere to run a server, and sites that do not end with it."""

TRANSPORTS = (
    "in-process",
    "faulty",
    pytest.param("nats", marks=pytest.mark.nats),
    pytest.param("redis", marks=pytest.mark.redis),
)


def deployed(transport: str, request: pytest.FixtureRequest) -> Deployment:
    match transport:
        case "in-process":
            return Here(InProcess())
        case "faulty":
            return Here(Faulty(Faults(), Random(0)))
    return Broker(request.getfixturevalue(f"{transport}_server").address())
