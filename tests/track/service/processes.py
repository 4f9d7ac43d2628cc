"""A server and sites as processes of their own, over a wire that drops, repeats and delays.

Run as `python processes.py server ADDRESS ENGINE SITES` or `python processes.py site ADDRESS NAME
JOURNAL GO`. A site counts as fast as it can while the file GO exists. With CASEMATE_CHAOS=1 the
wire is a bad one.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from casemate.errors import Misconfigured
from casemate.track.engine import Engine
from casemate.track.modes import MODES, make_engine
from casemate.track.service.attendant import Flag, Timing
from casemate.track.service.membership import join
from casemate.track.service.serving import Serving
from casemate.track.setting import Setting
from casemate.track.transport.address import open_wire
from casemate.track.transport.network import Network, Parcel, Wire

ALPHA = 0.05
TIMING = Timing(repeat=0.1, patience=3.0, interval=0.1)


class Bad:
    """A wire that loses one message in ten, repeats one in five and delays one in five."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._random = wire, random.Random()
        self.subscribe, self.recall, self.close = wire.subscribe, wire.recall, wire.close

    def publish(self, parcel: Parcel) -> None:
        chance = self._random.random()
        if chance < 0.1:
            return
        copies = 2 if chance < 0.3 else 1
        for _ in range(copies):
            if self._random.random() < 0.2:
                late = threading.Timer(self._random.random() / 5, self._wire.publish, (parcel,))
                late.daemon = True
                late.start()
            else:
                self._wire.publish(parcel)


def opened(address: str) -> Network:
    wire = open_wire(address)
    return Network(Bad(wire) if os.environ.get("CASEMATE_CHAOS") else wire)


def engine(name: str, sites: int) -> Engine:
    mode = name if name in MODES else "deterministic"
    return make_engine(mode, Setting(sites, ALPHA, 1e-6, 10**9))


def run_server(address: str, name: str, sites: Sequence[str]) -> None:
    network = opened(address)
    Serving(network, sites, engine(name, len(sites)), TIMING).run(ended_by_signal())
    network.close()


def run_site(address: str, name: str, journal: str, go: Path) -> None:
    over = ended_by_signal()
    with join(opened(address), name, journal, heartbeat=0.3) as site:
        while not over.is_set():
            if not go.exists():
                time.sleep(0.02)
                continue
            for _ in range(100):
                site.add()
            time.sleep(0.001)


def ended_by_signal() -> Flag:
    over = Flag()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    return over


def started(*arguments: str, chaos: bool = False) -> "subprocess.Popen[bytes]":
    """Start this file as a process."""
    environment = {**os.environ, **({"CASEMATE_CHAOS": "1"} if chaos else {})}
    return subprocess.Popen([sys.executable, __file__, *arguments], env=environment)


def main(kind: str, address: str, *rest: str) -> None:
    if kind == "server":
        run_server(address, rest[0], rest[1:])
    else:
        run_site(address, rest[0], rest[1], Path(rest[2]))


if __name__ == "__main__":
    while True:  # as who looks after processes does: the broker may be away for a moment
        try:
            main(*sys.argv[1:])
            break
        except Misconfigured:
            time.sleep(0.1)
