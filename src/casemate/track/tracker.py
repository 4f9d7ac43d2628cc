"""A count over many sites, for use as a library.

>>> tracker = CountTracker(sites=4, alpha=0.05, mode="deterministic")
>>> for i in range(4):
...     tracker.site(i).add(1000)
>>> count = tracker.read()
>>> count.lo <= 4000 <= count.hi, count.words
(True, 4)
"""

import operator
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from casemate.errors import Misconfigured, UnknownSite
from casemate.track.journal import FileJournal, folder_of
from casemate.track.messages import site_names
from casemate.track.modes import tracker_engine
from casemate.track.reporting_rule import Rule
from casemate.track.server import Clock, Server
from casemate.track.service.membership import attach
from casemate.track.service.serving import InBackground
from casemate.track.setting import MOST_COUNTED, Count, Setting
from casemate.track.site import Site
from casemate.track.transport.address import open_transport
from casemate.track.transport.network import DirectCarrier, InProcess, Network, Transport, token

DEFAULT_HORIZON_ITEMS = 10**12
"""The count up to which almost all of delta is spent; the bound holds beyond it, too."""

TOO_MANY = "a site counts up to 2^53, and this would be more; nothing was counted"


class CountTracker:
    """The count of all sites within a factor of 1 +- alpha at all times, except with delta.

    Without a transport all sites are in this process. With one, or with the address of a broker,
    this is the server of sites anywhere; those that `site` gives are in this process, too.
    """

    def __init__(
        self,
        sites: int | Sequence[str],
        alpha: float,
        delta: float = 0.01,
        mode: str = "auto",
        *,
        transport: Transport | str | None = None,
        horizon: int = DEFAULT_HORIZON_ITEMS,
        journals: str | os.PathLike[str] | None = None,  # a folder: sites survive a kill
        clock: Clock = time.time,
    ) -> None:
        names = site_names(sites)
        engine = tracker_engine(mode, Setting(len(names), alpha, delta, horizon))
        self._names = {name: i for i, name in enumerate(names)}
        self._journals = folder_of(journals)
        self._held, self._held_sites = ExitStack(), ExitStack()
        self._sites: dict[str, Site] = {}
        self._transport = _open_transport(transport)
        self._held.callback(self._transport.close)
        if isinstance(self._transport, Network):
            self._served: InBackground | _Here = InBackground(self._transport, names, engine)
            self._held.callback(self._held_sites.close)
            self._held.callback(self._served.close)  # first: nobody is ordered about after it
            return
        self._served = _Here(Server(names, engine, self._transport.order, clock), self._transport)
        with ExitStack() as unless_all_are_made:
            unless_all_are_made.callback(self.close)
            for name, rule in zip(names, self._served.server.rules, strict=True):
                self._make(name, rule)
            unless_all_are_made.pop_all()
        if journals is not None:
            self._served.server.call_round()  # sites may have counted before

    def site(self, name: int | str) -> Site:
        """The site of this name or number, in this process."""
        site_name = self._name(name)
        return self._sites[site_name] if site_name in self._sites else self._join(site_name)

    def add_many(self, sites: ArrayLike, n: ArrayLike = 1) -> None:
        """Count things at many sites at once: a number of a site for each, and how many there.

        What arrives together is reported together, so this sends no more words than one `add` for
        each site. Wrong input changes no count.
        """
        totals = _totals(np.asarray(sites), np.asarray(n), len(self._names))
        adding = [(self.site(i), int(totals[i])) for i in np.flatnonzero(totals).tolist()]
        if any(site.count + more > MOST_COUNTED for site, more in adding):
            raise ValueError(TOO_MANY)
        for site, more in adding:
            site.add(more)

    def read(self) -> Count:
        """The count as it is known now, with its interval and what it cost."""
        return self._served.read()

    def poll(self) -> Count:
        """Ask every site: exact when all of them answer."""
        return self._served.poll()

    def close(self) -> None:
        """Let go of the sites of this process, of their journals and of the transport."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _name(self, name: int | str) -> str:
        if not isinstance(name, str):
            i, names = operator.index(name), list(self._names)
            name = names[i] if 0 <= i < len(names) else str(i)
        if name not in self._names:
            raise UnknownSite(name)
        return name

    def _make(self, name: str, rule: Rule) -> None:
        """A site whose messages are delivered at once."""
        journal = None
        if self._journals is not None:
            journal = FileJournal(self._journals / token(name), name)
            self._held.callback(journal.close)
        self._sites[name] = site = Site(name, self._transport.report, rule, journal)
        self._transport.join(name, site.obey)

    def _join(self, name: str) -> Site:
        """A site whose messages go through the broker."""
        journal = None if self._journals is None else self._journals / token(name)
        site = self._held_sites.enter_context(attach(self._transport, name, journal))
        return self._sites.setdefault(name, site)


class _Here:
    """A server whose messages are delivered at once."""

    def __init__(self, server: Server, transport: Transport) -> None:
        self.server = server
        self._turn: AbstractContextManager[object] = (
            transport.turn if isinstance(transport, DirectCarrier) else nullcontext()
        )
        transport.serve(server.receive)

    def read(self) -> Count:
        with self._turn:
            return self.server.read()

    def poll(self) -> Count:
        with self._turn:  # or another thread's reports would come in between
            self.server.poll()
            count, exact = self.server.read(), float(self.server.heard)
        if count.stale_sites:
            return count
        return replace(count, value=exact, lo=exact, hi=exact, confidence=1.0)


def _open_transport(transport: Transport | str | None) -> Transport:
    if transport is None:
        return InProcess()
    return open_transport(transport) if isinstance(transport, str) else transport


def _totals(sites: np.ndarray, n: np.ndarray, number_of_sites: int) -> np.ndarray:
    """How many things each site receives, after everything about them was checked."""
    if sites.size == 0:
        return np.zeros(number_of_sites, dtype=np.int64)
    if sites.ndim != 1 or sites.dtype.kind not in "iu":
        raise Misconfigured("give the numbers of the sites as one row of whole numbers")
    if sites.min() < 0 or sites.max() >= number_of_sites:
        raise UnknownSite(str(sites.min() if sites.min() < 0 else sites.max()))
    if n.ndim and n.shape != sites.shape:
        raise ValueError(f"n must be one number or one for each of the {len(sites)} things")
    if n.dtype.kind not in "iu" or n.min() < 0:
        raise ValueError("a site counts upwards by whole numbers: n must be at least 0")
    if int(n.max()) * len(sites) >= 1 << 63:  # or sums would begin again below 0
        raise ValueError(TOO_MANY)
    if n.ndim == 0:
        return np.bincount(sites, minlength=number_of_sites) * int(n)
    totals = np.zeros(number_of_sites, dtype=np.int64)
    np.add.at(totals, sites, n.astype(np.int64))
    return totals
