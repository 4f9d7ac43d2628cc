"""Every transport, through the same list of checks; brokers are real servers on loopback."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.bad_network import Faults, Faulty
from track.transport.eventually import eventually

from casemate.track.instruction import Every, Growth, Sample
from casemate.track.messages import Order, Report
from casemate.track.protocols.windows import Windows, centred_rule
from casemate.track.protocols.windows import centred as centred_windows
from casemate.track.server import Server
from casemate.track.site import Site
from casemate.track.transport.address import open_transport
from casemate.track.transport.in_process import InProcess, Transport


@dataclass
class Ends:
    """A transport as the server has it, and as the sites have it."""

    server: Transport
    sites: Transport


@pytest.fixture(
    params=[
        "in-process",
        "faulty",
        pytest.param("nats", marks=pytest.mark.nats),
        pytest.param("redis", marks=pytest.mark.redis),
    ]
)
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


def report(count: int, site: str = "a") -> Report:
    return Report(site, 7, 0, 0, 0, count)


def test_a_report_reaches_the_server_as_it_was(ends: Ends) -> None:
    received: list[Report] = []
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


def test_an_order_to_all_reaches_all_once(ends: Ends) -> None:
    obeyed: dict[str, list[Order]] = {str(i): [] for i in range(20)}
    for name, orders in obeyed.items():
        ends.sites.join(name, orders.append)
    order = Order(5, Growth(3, 2), False)
    ends.server.order_all(order)
    eventually(lambda: all(obeyed.values()))
    assert all(orders == [order] for orders in obeyed.values())


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


def test_what_nobody_waits_for_is_lost_and_harms_nobody(ends: Ends) -> None:
    ends.sites.report(report(1))
    ends.server.order("nobody", Order(1, None, True))
    ends.server.order_all(Order(1, None, True))


def test_closing_sends_what_was_given_before(ends: Ends) -> None:
    received: list[Report] = []
    ends.server.serve(received.append)
    ends.sites.report(report(3))
    ends.sites.close()
    eventually(lambda: received == [report(3)])


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(adds=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50)), max_size=30))
def test_a_round_makes_the_count_exact(ends: Ends, adds: list[tuple[int, int]]) -> None:
    names = ["a", "b", "c"]
    server = Server(names, Windows(3, Every()), ends.server.order)
    ends.server.serve(server.receive)
    sites = [Site(name, ends.sites.report) for name in names]
    for site in sites:
        ends.sites.join(site.name, site.obey)
    for which, n in adds:
        sites[which].add(n)
    server.poll()
    eventually(lambda: server.rounds == 1 and server.read().value == sum(n for _, n in adds))


def test_the_centred_tracker_keeps_its_word_once_messages_have_arrived(ends: Ends) -> None:
    alpha, names = 0.1, ["a", "b"]
    server = Server(names, centred_windows(2, alpha), ends.server.order)
    ends.server.serve(server.receive)
    sites = [Site(name, ends.sites.report, centred_rule(alpha)) for name in names]
    for total in range(1, 501):
        sites[total % 2].add()
        if total % 50 == 0:
            eventually(lambda n=total: abs(server.read().value - n) <= alpha * n)  # type: ignore[misc]  # bound now
