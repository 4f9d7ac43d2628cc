"""`casemate track`: one count over many sites with few messages, right against who adapts."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from casemate.cli.exits import Exit
from casemate.cli.options import Alpha, Delta, Horizon, TrackerChoice, Whole, check_seed
from casemate.cli.output import Output
from casemate.errors import Misconfigured

ModeChoice = Literal[TrackerChoice, "huang-yi-zhang", "block"]
Sites = Annotated[Whole, Parameter(help="How many sites count.")]
MOST_SITES, MOST_ITEMS = 10**6, 10**15
"""What a simulation or a plan has memory for, and what its counts are exact for."""

app = App(
    name="track",
    help="One count over many sites with few messages.",
    help_format="plaintext",
)
app.command(
    "casemate.cli.track_service:server",
    name="server",
    help="Count what the sites report, and show it to whoever watches, until it is stopped.",
)
app.command(
    "casemate.cli.track_service:site",
    name="site",
    help="Count the items that stdin names, a number on each line, until it ends or is stopped.",
)
app.command(
    "casemate.cli.track_service:watch",
    name="watch",
    help="Show the count as it changes: its interval, the words it cost, its lag, who is stale.",
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
    seed: Annotated[Whole | None, Parameter(help="Makes the runs repeatable.")] = None,
    output: Output | None = None,
) -> int:
    """Count the words a protocol sends and its largest error, against an adversary."""
    output = output or Output()
    _check("--items", sites, items)
    check_seed(seed)
    from casemate.report.track import simulation_json, simulation_text
    from casemate.report.track_html import simulation_html
    from casemate.track.plan import plan as predicted
    from casemate.track.setting import Setting
    from casemate.track.simulation.simulate import simulate as run

    setting = Setting(sites, alpha, delta, items)
    try:
        with output.progress("simulating", runs) as progress:
            found = run(setting, mode, adversary, runs=runs, seed=seed, advance=progress.advance)
    except KeyboardInterrupt:
        output.note("interrupted: no run was done yet, so there is nothing to show")
        return Exit.INTERRUPTED
    html = None
    if output.format == "html":
        with output.progress("planning"):
            html = simulation_html(found, predicted(sites, alpha, delta, items))
    output.emit(simulation_text(found), simulation_json(found), html)
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
    output: Output | None = None,
) -> None:
    """Predict the words of every protocol under an even load, the cheapest first."""
    output = output or Output()
    _check("--horizon", sites, horizon)
    from casemate.report.track import plan_json, plan_text
    from casemate.report.track_curves import curves
    from casemate.report.track_html import plan_html
    from casemate.track.plan import plan as predicted

    with output.progress("planning"):
        forecasts = predicted(sites, alpha, delta, horizon)
        drawn = output.format == "html"
        html = plan_html(forecasts, curves(forecasts[0].setting)) if drawn else None
    output.emit(plan_text(forecasts), plan_json(forecasts), html)


def _check(name: str, sites: int, items: int) -> None:
    """Refuse what would take all memory, or more than a whole number holds, before any work."""
    if sites > MOST_SITES:
        raise Misconfigured(f"--sites {sites:,} is more than {MOST_SITES:,}, the most there may be")
    if items > MOST_ITEMS:
        raise Misconfigured(f"{name} {items:,} is more than {MOST_ITEMS:,}, the most there may be")
