"""`casemate track server`, `site` and `watch`: a count over many machines, as processes."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from casemate.cli.exits import Exit
from casemate.errors import Misconfigured
from casemate.track.service.over import Flag

if TYPE_CHECKING:
    from casemate.track.service.watching import Sight

SCHEMA = "casemate.track-count/1"
_ADDRESS = "nats://HOST:PORT/SUBJECT or redis://HOST:PORT/0?prefix=NAME."
Address = Annotated[str, Parameter(help=_ADDRESS)]


def add_to(app: App) -> None:
    """Let an app have these commands."""
    for command in (server, site, watch):
        app.command(command)


def server(
    address: Address,
    sites: Annotated[
        tuple[str, ...], Parameter(help="Names of the sites; @FILE for one on each line.")
    ],
    /,
    *,
    alpha: Annotated[float, Parameter(help="The relative error that is promised at all times.")],
    delta: Annotated[
        float, Parameter(help="The probability with which the promise may ever be broken.")
    ] = 0.01,
    mode: Annotated[str, Parameter(help="The protocol.")] = "auto",
    horizon: Annotated[int, Parameter(help="How many items will come, over all sites.")] = 10**12,
    interval: Annotated[float, Parameter(help="Seconds between two counts that are shown.")] = 1.0,
    patience: Annotated[
        float, Parameter(help="Seconds after which a silent site is called stale.")
    ] = 10.0,
    repeat: Annotated[
        float, Parameter(help="Seconds after which a call without an answer is repeated.")
    ] = 0.25,
    quiet: Annotated[bool, Parameter(negative="", help="No notes on stderr.")] = False,
) -> int:
    """Count what the sites report, and show it to whoever watches, until it is stopped."""
    names = _names(sites)
    from casemate.track.modes import tracker_engine
    from casemate.track.service.attendant import Timing
    from casemate.track.service.serving import serve
    from casemate.track.setting import Setting
    from casemate.track.transport.address import open_transport, without_secrets

    timing = Timing(repeat=repeat, patience=patience, interval=interval)
    engine = tracker_engine(mode, Setting(len(names), alpha, delta, horizon))
    with until_stopped() as stop, closing(open_transport(address)) as network:
        _note(f"serving {len(names)} sites at {without_secrets(address)}", quiet)
        serve(network, names, engine, stop.over, timing=timing)
    return stop.code


def site(
    address: Address,
    name: Annotated[str, Parameter(help="The name of this site, as the server knows it.")],
    /,
    *,
    journal: Annotated[
        Path | None, Parameter(help="A file that keeps the count when the process is killed.")
    ] = None,
    lines: Annotated[
        bool, Parameter(negative="", help="Every line of stdin is one item, whatever it says.")
    ] = False,
    rate: Annotated[
        float | None, Parameter(help="Make so many items a second instead, to try it out.")
    ] = None,
    heartbeat: Annotated[
        float, Parameter(help="Seconds of silence after which the last report is repeated.")
    ] = 2.0,
    quiet: Annotated[bool, Parameter(negative="", help="No notes on stderr.")] = False,
) -> int:
    """Count the items that stdin names, a number on each line, until it ends or is stopped."""
    if rate is not None and (lines or not 0 < rate <= 1e12):
        raise Misconfigured(
            "--rate is a number of items a second above 0, and goes without --lines"
        )
    from casemate.track.service.feed import Numbers, at_rate, each_line, piped
    from casemate.track.service.membership import join
    from casemate.track.transport.notes import Notes

    with until_stopped() as stop, join(address, name, journal, heartbeat) as member:
        counted = each_line if lines else Numbers(Notes())
        feed = piped(0, counted, stop.over) if rate is None else at_rate(rate, stop.over)
        for items in feed:
            member.add(items)
        _note(f"site {name!r} has counted {member.count:,}", quiet)
    return stop.code


def watch(
    address: Address,
    /,
    *,
    once: Annotated[bool, Parameter(negative="", help="Show one count and end.")] = False,
    wait: Annotated[
        float, Parameter(help="Seconds after which a server that shows nothing is given up.")
    ] = 10.0,
    format: Annotated[
        Literal["text", "json"], Parameter(help="A line to read, or one object on each line.")
    ] = "text",
) -> int:
    """Show the count as it changes: its interval, the words it cost, its lag, who is stale."""
    from casemate.track.service.watching import watch as sights
    from casemate.track.transport.address import open_transport

    live = format == "text" and not once and sys.stdout.isatty()
    with until_stopped() as stop, closing(open_transport(address)) as network:
        for sight in sights(network, stop.over, wait):
            text = json.dumps(as_json(sight)) if format == "json" else as_line(sight)
            print(f"\r\x1b[2K{text}" if live else text, end="" if live else "\n", flush=True)
            if once:
                break
    if live:
        print()
    return stop.code


def as_json(sight: "Sight") -> dict[str, Any]:
    """A count that was shown as one object."""
    from dataclasses import asdict

    fields = asdict(sight.count) | {"stale_sites": list(sight.count.stale_sites)}
    return {"schema": SCHEMA, **fields, "words_per_second": sight.words_per_second}


def as_line(sight: "Sight") -> str:
    """A count that was shown as one line."""
    count, speed = sight.count, sight.words_per_second
    sure = "sure" if count.confidence >= 1 else f"{count.confidence:.6g} sure"
    parts = [
        f"{count.value:,.0f}",
        f"{count.lo:,.0f} .. {count.hi:,.0f} ({sure})",
        f"words {count.words:,}" + ("" if speed is None else f" ({speed:,.1f}/s)"),
        f"lag {count.lag:.2f} s",
    ]
    if count.stale_sites:
        parts.append(f"stale: {_few(count.stale_sites)}")
    return "  ".join(parts)


def _few(names: tuple[str, ...], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _names(given: tuple[str, ...]) -> list[str]:
    """The names of the sites, those of files included."""
    names: list[str] = []
    for each in given:
        if not each.startswith("@"):
            names.append(each)
            continue
        try:
            text = Path(each[1:]).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise Misconfigured(f"{each[1:]} is not UTF-8 text; give one name a line") from None
        names += [line.strip() for line in text.splitlines() if line.strip()]
    return names


def _note(sentence: str, quiet: bool) -> None:
    if not quiet:
        print(sentence, file=sys.stderr, flush=True)


class Stop:
    """Whether the process was asked to end, and how."""

    def __init__(self) -> None:
        self.over = Flag()
        self.code = Exit.DONE

    def ask(self, number: int, frame: object) -> None:  # noqa: ARG002 - what a signal handler gets
        """End soon; what has been counted is sent first."""
        self.code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.DONE
        self.over.set()


@contextmanager
def until_stopped() -> Iterator[Stop]:
    """Inside, an interrupt or a request to terminate ends the work in order, not in the middle."""
    stop, numbers = Stop(), (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop.ask) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
