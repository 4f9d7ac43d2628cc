"""`casemate attack one-bit`: totals of a private column, from yes/no answers with noise."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from casemate.cli.exits import Exit
from casemate.cli.output import Output
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.attack.one_bit_oracle import Bounds

LearnerChoice = Literal["auto", "bisection", "kalman", "edge", "automatic"]
ToldChoice = Literal["law", "scale", "nothing"]
WeightsChoice = Literal["even", "subsets", "single"]


def one_bit(
    *,
    table: Annotated[str, Parameter(help="A policy, a source, or a shipped table.")],
    noise: Annotated[str, Parameter(help="LAW:SCALE of the noise on a total, as laplace:50.")],
    queries: Annotated[int, Parameter(help="How many yes/no questions are asked.")],
    private: Annotated[
        str | None,
        Parameter(help="The column of numbers, where no policy says that a single one is private."),
    ] = None,
    dimensions: Annotated[
        int, Parameter(help="Into how many groups public columns part the records, at most.")
    ] = 16,
    learner: Annotated[
        LearnerChoice, Parameter(help="Who learns; auto takes what suits the noise.")
    ] = "auto",
    told: Annotated[ToldChoice, Parameter(help="What the attacker knows of the noise.")] = "law",
    weights: Annotated[
        WeightsChoice | None,
        Parameter(help="How the groups of a query are weighted; even by itself."),
    ] = None,
    bounds: Annotated[
        str | None, Parameter(help="LO:HI, between which every private number lies.")
    ] = None,
    confidence: Annotated[
        float, Parameter(help="The probability with which an interval holds the true mean.")
    ] = 0.9,
    seed: Annotated[int | None, Parameter(help="Makes queries and noise repeatable.")] = None,
    reveal: Annotated[
        bool, Parameter(negative="", help="Write the values themselves into the report.")
    ] = False,
    output: Output | None = None,
) -> int:
    """Learn totals of a private column from noisy yes/no answers, one bit a query."""
    output = output or Output()
    if seed is not None and seed < 0:
        raise Misconfigured(f"--seed {seed} is negative; give 0 or a number above")
    import numpy as np

    from casemate.attack.one_bit import OneBitAttack, OneBitOptions
    from casemate.attack.one_bit_learners import LearnerName, Told
    from casemate.attack.one_bit_stream import Weighting
    from casemate.report.one_bit import as_json, as_text
    from casemate.report.one_bit_html import as_html

    options = OneBitOptions(
        LearnerName(learner),
        Told(told),
        None if weights is None else Weighting(weights),
        confidence,
    )
    with output.progress("asking", queries) as progress:
        found = OneBitAttack.of(
            table,
            private=private,
            noise=noise,
            queries=queries,
            dimensions=dimensions,
            bounds=None if bounds is None else _ends(bounds),
            options=options,
            random=np.random.default_rng(seed),
            progress=progress.advance,
        )
    html = as_html(found, reveal=reveal) if output.format == "html" else None
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal), html)
    if found.finished:
        return Exit.DONE
    output.note("interrupted: this is the best so far")
    return Exit.INTERRUPTED


def _ends(text: str) -> "Bounds":
    """LO:HI with both ends, which is what numbers are scaled by."""
    from casemate.published.knowledge_file import read_bounds

    low, high = read_bounds(text)
    if low is None or high is None:
        raise Misconfigured(f"--bounds {text} has an open end; give both, as --bounds 0:100")
    return float(low), float(high)
