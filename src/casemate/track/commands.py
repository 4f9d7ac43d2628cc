"""`casemate track`: one count over many sites with few messages, right against who adapts.

`simulate` and `plan` say what a protocol sends; `server`, `site` and `watch` are a count over many
machines, as processes.
"""

import json
import math
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from casemate.errors import Misconfigured, Refused
from casemate.report.terminal import (
    Alpha,
    Delta,
    Exit,
    Horizon,
    OutputOptions,
    Seed,
    TrackerChoice,
    Whole,
    check_seed,
)

if TYPE_CHECKING:
    from casemate.track.service.serving import Sight


ModeChoice = Literal[TrackerChoice, "huang-yi-zhang", "block"]
Sites = Annotated[Whole, Parameter(help="How many sites count.")]
MAX_SITES, MAX_ITEMS = 10**6, 10**15
"""What a simulation or a plan has memory for, and what its counts are exact for."""

app = App(
    name="track",
    help="One count over many sites with few messages.",
    help_format="plaintext",
)


@app.command
def simulate(
    *,
    sites: Sites,
    alpha: Alpha,
    items: Annotated[Whole, Parameter(help="How many items come, over all sites.")],
    delta: Delta = 0.01,
    mode: Annotated[
        ModeChoice, Parameter(help="The protocol; the last two can be broken by who adapts.")
    ] = "auto",
    adversary: Annotated[
        str,
        Parameter(
            help="Who decides which site receives the next item: uniform, zipf, zipf:EXPONENT, "
            "single-site, stop-on-change or group-hold-or-flush."
        ),
    ] = "uniform",
    runs: Annotated[Whole, Parameter(help="How many independent runs.")] = 1,
    seed: Seed = None,
    output: OutputOptions | None = None,
) -> int:
    """Count the words a protocol sends and its largest error, against an adversary."""
    output = output or OutputOptions()
    _check("--items", sites, items)
    check_seed(seed)
    from casemate.track.modes import plan as predicted
    from casemate.track.report import simulation_report
    from casemate.track.setting import Setting
    from casemate.track.simulate.runs import simulate as run

    setting = Setting(sites, alpha, delta, items)
    try:
        with output.progress("simulating", runs) as progress:
            found = run(setting, mode, adversary, runs=runs, seed=seed, advance=progress.advance)
    except KeyboardInterrupt:
        output.note("interrupted: no run was done yet, so there is nothing to show")
        return Exit.INTERRUPTED
    with output.progress("planning"):
        compared = output.format == "html"
        forecasts = predicted(sites, alpha, delta, items) if compared else []
    output.emit(simulation_report(found, forecasts))
    if found.finished:
        return Exit.DONE
    output.note(f"interrupted: these are the {len(found.runs)} of {runs} runs that were done")
    return Exit.INTERRUPTED


@app.command
def plan(
    *,
    sites: Sites,
    alpha: Alpha,
    delta: Delta = 0.01,
    horizon: Horizon = 10**8,
    output: OutputOptions | None = None,
) -> None:
    """Predict the words of every protocol under an even load, the cheapest first."""
    output = output or OutputOptions()
    _check("--horizon", sites, horizon)
    from casemate.track.modes import plan as predicted
    from casemate.track.report import curves, plan_report

    with output.progress("planning"):
        forecasts = predicted(sites, alpha, delta, horizon)
        drawn = output.format == "html"
        growth = curves(forecasts[0].setting) if drawn else []
    output.emit(plan_report(forecasts, growth))


def _check(name: str, sites: int, items: int) -> None:
    """Refuse what would take all memory, or more than a whole number holds, before any work."""
    if sites > MAX_SITES:
        raise Misconfigured(f"--sites {sites:,} is more than {MAX_SITES:,}, the most there may be")
    if items > MAX_ITEMS:
        raise Misconfigured(f"{name} {items:,} is more than {MAX_ITEMS:,}, the most there may be")


# Processes ---------------------------------------------------------------------------------------


SCHEMA = "casemate.track-count/1"
_ADDRESS = "nats://HOST:PORT/SUBJECT or redis://HOST:PORT/0?prefix=NAME."
Address = Annotated[str, Parameter(help=_ADDRESS)]
NoNotes = Annotated[bool, Parameter(negative="", help="No notes on stderr.")]
MAX_ITEMS_PER_SECOND = 1e12
"""Items a second that `--rate` may ask for."""

_AT_START = "the count begins with what the sites answer, since a server keeps nothing"


@app.command
def server(
    address: Address,
    sites: Annotated[
        tuple[str, ...],
        Parameter(help="Names of the sites; @FILE for one on each line, but for # comments."),
    ],
    /,
    *,
    alpha: Alpha,
    delta: Delta = 0.01,
    mode: Annotated[TrackerChoice, Parameter(help="The protocol.")] = "auto",
    horizon: Horizon = 10**12,
    interval: Annotated[float, Parameter(help="Seconds between two counts that are shown.")] = 1.0,
    patience: Annotated[
        float, Parameter(help="Seconds after which a silent site is called stale.")
    ] = 10.0,
    repeat: Annotated[
        float, Parameter(help="Seconds after which a call without an answer is repeated.")
    ] = 0.25,
    quiet: NoNotes = False,
) -> int:
    """Count what the sites report, and show it to whoever watches, until it is stopped."""
    names = _names(sites)
    from casemate.track.modes import tracker_engine
    from casemate.track.service.attendant import Timing
    from casemate.track.service.serving import Serving, ensure_alone
    from casemate.track.setting import Setting
    from casemate.track.transport.address import open_transport, without_secrets
    from casemate.track.transport.network import Notes, silent

    notes = silent() if quiet else Notes()
    timing = Timing(repeat=repeat, patience=patience, interval=interval)
    engine = tracker_engine(mode, Setting(len(names), alpha, delta, horizon))
    place = without_secrets(address)
    who = "1 site" if len(names) == 1 else f"{len(names):,} sites"
    with until_stopped() as stop, closing(open_transport(address, notes)) as network:
        ensure_alone(network, stop.over, place)
        serving = Serving(network, names, engine, timing, notes)
        serving.run(stop.over, lambda: _note(f"serving {who} at {place}; {_AT_START}", quiet))
    return stop.code


@app.command
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
    quiet: NoNotes = False,
) -> int:
    """Count the items that stdin names, a number on each line, until it ends or is stopped."""
    if rate is not None and (lines or not 0 < rate <= MAX_ITEMS_PER_SECOND):
        raise Misconfigured(
            f"--rate is a number of items a second above 0 and at most "
            f"{MAX_ITEMS_PER_SECOND:,.0f}, and goes without --lines"
        )
    from casemate.track.service.membership import (
        Numbers,
        at_rate,
        each_line,
        is_answered,
        join,
        not_taken,
        read_pipe,
    )
    from casemate.track.transport.address import without_secrets
    from casemate.track.transport.network import Notes, silent

    notes = silent() if quiet else Notes()
    numbers, fed = Numbers(notes), 0
    with until_stopped() as stop, join(address, name, journal, heartbeat, notes) as member:
        _note_journal(name, journal, quiet)
        counted = each_line if lines else numbers
        feed = read_pipe(0, counted, stop.over) if rate is None else at_rate(rate, stop.over)
        for items in feed:
            member.add(items)
            fed += items
        taken = is_answered(member)
        _note(f"site {name!r} has counted {member.count:,}", quiet)
        if member.count and not taken:
            raise Refused(not_taken(member, without_secrets(address), journal))
    return stop.code or _end_of_feed(fed, numbers.left_out, quiet)


def _note_journal(name: str, journal: Path | None, quiet: bool) -> None:
    if journal is None:
        _note(
            f"site {name!r} has no --journal: its count is lost when it has ended and the server "
            f"is started again",
            quiet,
        )


def _end_of_feed(fed: int, left_out: int, quiet: bool) -> Exit:
    """Whether all was well; a run that counted nothing of what it was given was not."""
    if fed or not left_out:
        return Exit.DONE
    _note(
        f"nothing was counted: {left_out:,} lines of the input are no numbers of items; use "
        f"--lines to count every line as one",
        quiet,
    )
    return Exit.FOUND


@app.command
def watch(
    address: Address,
    /,
    *,
    once: Annotated[bool, Parameter(negative="", help="Show one count and end.")] = False,
    wait: Annotated[
        float, Parameter(help="Seconds after which a server that shows nothing is given up.")
    ] = 15.0,
    format: Annotated[
        Literal["text", "json"], Parameter(help="A line to read, or one object on each line.")
    ] = "text",
) -> int:
    """Show the count as it changes: its interval, the words it cost, its lag, who is stale."""
    if not 0 < wait < math.inf:
        raise Misconfigured(f"--wait is a number of seconds above 0, got {wait:g}")
    from casemate.track.service.serving import watch as sights
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
    if count.stale_sites:
        sure += " but for the stale"
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
        except OSError as reason:
            raise Misconfigured(
                f"the list of sites {each[1:]} cannot be read ({_reason(reason)}); give a file "
                f"with one name a line"
            ) from None
        lines = [line.strip() for line in text.splitlines()]
        names += [line for line in lines if line and not line.startswith("#")]
    return _check_names(names)


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown").lower()


def _check_names(names: list[str]) -> list[str]:
    """The same names, once each of them can travel and stands for one site."""
    from casemate.track.server import check_names
    from casemate.track.transport.network import token

    check_names(names)
    for name in names:
        token(name)
    return names


def _note(sentence: str, quiet: bool) -> None:
    if not quiet:
        print(sentence, file=sys.stderr, flush=True)


class StopSignal:
    """Whether the process was asked to end, and how."""

    def __init__(self) -> None:
        from casemate.track.service.attendant import Flag  # with numpy, which help does not need

        self.over = Flag()
        self.code = Exit.DONE

    def ask(self, number: int, frame: object) -> None:  # noqa: ARG002 - what a signal handler gets
        """End soon; what has been counted is sent first."""
        self.code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.DONE
        self.over.set()


@contextmanager
def until_stopped() -> Iterator[StopSignal]:
    """Inside, an interrupt or a request to terminate ends the work in order, not in the middle."""
    stop, numbers = StopSignal(), (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop.ask) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
