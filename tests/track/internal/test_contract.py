"""Every transport, through the same list of checks; brokers are real servers on loopback."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest
from oracles.bad_network import Faults, Faulty
from track.deployment import TRANSPORTS
from track.transport.eventually import eventually

from casemate.track.messages import Order, SiteReport
from casemate.track.reporting_rule import Sample
from casemate.track.transport.address import open_transport
from casemate.track.transport.network import InProcess, Transport


@dataclass
class Ends:
    """A transport as the server has it, and as the sites have it."""

    server: Transport
    sites: Transport


@pytest.fixture(params=TRANSPORTS)
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    if request.param in ("nats", "redis"):
        address = request.getfixturevalue(f"{request.param}_server").address()
        found = Ends(open_transport(address), open_transport(address))
    else:
        one = InProcess() if request.param == "in-process" else Faulty(Faults(), Random(0))
        found = Ends(one, one)
    yield found
    found.sites.close()
    found.server.close()


def report(count: int, site: str = "a") -> SiteReport:
    return SiteReport(site, 7, 0, 0, 0, count)


def test_a_report_reaches_the_server_as_it_was(ends: Ends) -> None:
    received: list[SiteReport] = []
    ends.server.serve(received.append)
    ends.sites.report(report(10**15, "Zürich, 2. Stock *"))
    eventually(lambda: len(received) > 0)
    assert received == [report(10**15, "Zürich, 2. Stock *")]


def test_an_order_reaches_its_site_and_no_other(ends: Ends) -> None:
    obeyed: dict[str, list[Order]] = {name: [] for name in ("a", "b", "a.b", "all", "*")}
    for name, orders in obeyed.items():
        ends.sites.join(name, orders.append)
    sent = {name: Order(i, Sample(0.5), True) for i, name in enumerate(obeyed)}
    for name, order in sent.items():
        ends.server.order(name, order)
    eventually(lambda: all(obeyed.values()))
    assert {name: orders[0] for name, orders in obeyed.items()} == sent
    assert all(len(orders) == 1 for orders in obeyed.values())


def test_the_newest_report_of_every_site_arrives(ends: Ends) -> None:
    """Those before it may be left out: the newest says everything."""
    newest: dict[str, int] = {}
    ends.server.serve(
        lambda got: newest.update({got.site: max(got.count, newest.get(got.site, 0))})
    )
    for count in range(1, 1001):
        ends.sites.report(report(count, str(count % 7)))
    expected = {str(n % 7): n for n in range(994, 1001)}
    eventually(lambda: newest == expected)


def test_closing_sends_what_was_given_before(ends: Ends) -> None:
    received: list[SiteReport] = []
    ends.server.serve(received.append)
    ends.sites.report(report(3))
    ends.sites.close()
    eventually(lambda: received == [report(3)])
