"""`casemate attack`: take back from published answers what was private, and see how much it is."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from casemate.cli.exits import Exit
from casemate.cli.output import Output
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    import numpy as np

    from casemate.attack.attack import Attacked
    from casemate.attack.noise_curve import NoisePoint

SolverName = Literal["least-squares", "box", "convex", "robust", "lp", "integer", "kaczmarz", "sgd"]

app = App(name="attack", help="Take back from published answers what was private.")
app.command(
    "casemate.cli.attack_plan:plan",
    name="plan",
    help="Choose the fewest queries that give away a record.",
)
app.command(
    "casemate.cli.attack_one_bit:one_bit",
    name="one-bit",
    help="Learn totals of a private column from noisy yes/no answers.",
)
app.command(
    "casemate.cli.attack_extract:extract",
    name="extract",
    help="Copy a linear classifier by asking it for labels.",
)


@app.command
def reconstruct(
    queries: Annotated[Path, Parameter(help="A .sql file, or a CSV with sql and answer.")],
    /,
    *,
    table: Annotated[str, Parameter(help="A policy, a source, or a shipped table.")],
    private: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="A column to reconstruct, where there is no policy."),
    ] = (),
    answers: Annotated[
        Path | None, Parameter(help="A CSV query,cell,answer of published numbers.")
    ] = None,
    noise: Annotated[
        str | None, Parameter(help="LAW:SCALE of the noise: laplace, gaussian, uniform or round.")
    ] = None,
    bounds: Annotated[
        str | None, Parameter(help="LO:HI, between which every private number lies.")
    ] = None,
    integer: Annotated[
        bool, Parameter(negative="", help="Private numbers are known to be whole.")
    ] = False,
    known: Annotated[
        Path | None, Parameter(help="A CSV of what is known: record,value or record,lo,hi.")
    ] = None,
    solver: Annotated[
        SolverName | None, Parameter(help="The solver; by itself the one that fits is chosen.")
    ] = None,
    tolerance: Annotated[
        float | None,
        Parameter(help="How far off a number may be and still count as recovered."),
    ] = None,
    confidence: Annotated[
        float, Parameter(help="The probability with which an interval holds the true value.")
    ] = 0.9,
    seed: Annotated[
        int | None, Parameter(help="Makes noise and random solvers repeatable.")
    ] = None,
    dialect: Annotated[str, Parameter(help="The SQL dialect of the queries.")] = "postgres",
    reveal: Annotated[
        bool, Parameter(negative="", help="Write the values themselves into the report.")
    ] = False,
    output: Output | None = None,
) -> int:
    """Reconstruct a private column from published answers, exact or noisy."""
    output = output or Output()
    _check(tolerance, confidence, seed)
    import numpy as np

    from casemate.attack.attack import Attack, Options
    from casemate.attack.noise_law import NoiseLaw
    from casemate.attack.reconstruction import Solver
    from casemate.published.knowledge_file import read_knowledge
    from casemate.report.attack import as_json, as_text
    from casemate.report.attack_html import as_html

    options = Options(
        solver=None if solver is None else Solver(solver),
        noise=None if noise is None else NoiseLaw.read(noise),
        confidence=confidence,
        tolerance=tolerance,
    )
    knowledge, random = read_knowledge(known, bounds, integer), np.random.default_rng(seed)
    with output.progress("attacking"):
        found = Attack.of(
            queries,
            table,
            answers=answers,
            knowledge=knowledge,
            private=private,
            options=options,
            random=random,
            dialect=dialect,
        )
        curve, whole = _curve(found, random) if output.format == "html" else ([], True)
    html = as_html(found, curve, reveal=reveal) if output.format == "html" else None
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal), html)
    return _end(found.finished and whole, output)


def _check(tolerance: float | None, confidence: float, seed: int | None) -> None:
    """Refuse numbers that mean nothing before any work is done."""
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
        raise Misconfigured(f"--tolerance {tolerance:g} is no distance; give 0 or a number above")
    if not 0 < confidence < 1:
        raise Misconfigured(
            f"--confidence {confidence:g} must lie between 0 and 1; give for example 0.9"
        )
    if seed is not None and seed < 0:
        raise Misconfigured(f"--seed {seed} is negative; give 0 or a number above")


def _curve(found: "Attacked", random: "np.random.Generator") -> tuple[list["NoisePoint"], bool]:
    """The fraction recovered under other noise, and whether nobody interrupted it."""
    from casemate.attack.noise_curve import FACTORS, noise_curve

    if not (found.finished and found.scores and found.evidence.own):
        return [], found.finished
    try:
        points = noise_curve(found, random=random)
    except KeyboardInterrupt:  # between two solves
        return [], False
    return points, len(points) == len(FACTORS)


def _end(finished: bool, output: Output) -> Exit:
    """Done, or interrupted with the best so far written."""
    if finished:
        return Exit.DONE
    output.note("interrupted: this is the best so far")
    return Exit.INTERRUPTED
