"""`casemate attack`: take back from published answers what was private, and see how much it is."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from casemate.cli.attack_end import end_of_attack
from casemate.cli.options import (
    Bounds,
    Dialect,
    Integer,
    Known,
    Reveal,
    TablePlace,
    Whole,
    check_seed,
)
from casemate.cli.output import Output
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    import numpy as np

    from casemate.attack.attack import Attacked, Options
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


@Parameter(name="*")
@dataclass(frozen=True)
class Solving:
    """The options from `--solver` to `--seed`: how answers are solved for the values."""

    solver: Annotated[
        SolverName | None, Parameter(help="The solver; by itself the one that fits is chosen.")
    ] = None
    tolerance: Annotated[
        float | None,
        Parameter(help="How far off a number may be and still count as recovered."),
    ] = None
    confidence: Annotated[
        float, Parameter(help="The probability with which an interval holds the true value.")
    ] = 0.9
    seed: Annotated[Whole | None, Parameter(help="Makes noise and random solvers repeatable.")] = (
        None
    )

    def check(self) -> None:
        """Refuse numbers that mean nothing before any work is done."""
        far = self.tolerance
        if far is not None and not (math.isfinite(far) and far >= 0):
            raise Misconfigured(f"--tolerance {far:g} is no distance; give 0 or a number above")
        if not 0 < self.confidence < 1:
            raise Misconfigured(
                f"--confidence {self.confidence:g} must lie between 0 and 1; give for example 0.9"
            )
        check_seed(self.seed)

    def options(self, noise: str | None) -> "Options":
        """The same for the attack, with the law of the noise in the answers."""
        from casemate.attack.attack import Options
        from casemate.attack.noise_law import NoiseLaw
        from casemate.attack.reconstruction import Solver

        return Options(
            solver=None if self.solver is None else Solver(self.solver),
            noise=None if noise is None else NoiseLaw.read(noise),
            confidence=self.confidence,
            tolerance=self.tolerance,
        )


@app.command
def reconstruct(
    queries: Annotated[Path, Parameter(help="A .sql file, or a CSV with sql and answer.")],
    /,
    *,
    table: TablePlace,
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
    bounds: Bounds = None,
    integer: Integer = False,
    known: Known = None,
    solving: Solving | None = None,
    dialect: Dialect = "postgres",
    reveal: Reveal = False,
    output: Output | None = None,
) -> int:
    """Reconstruct a private column from published answers, exact or noisy."""
    solving, output = solving or Solving(), output or Output()
    solving.check()
    import numpy as np

    from casemate.attack.attack import Attack
    from casemate.published.knowledge_file import read_knowledge

    options, random = solving.options(noise), np.random.default_rng(solving.seed)
    knowledge = read_knowledge(known, bounds, integer)
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
    _emit(found, curve, reveal, output)
    return end_of_attack(found.finished and whole, output)


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


def _emit(found: "Attacked", curve: list["NoisePoint"], reveal: bool, output: Output) -> None:
    from casemate.report.attack import as_json, as_text
    from casemate.report.attack_html import as_html

    html = as_html(found, curve, reveal=reveal) if output.format == "html" else None
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal), html)
