"""`casemate attack one-bit`: totals of a private column, from yes/no answers with noise."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from casemate.cli.attack_end import end_of_attack
from casemate.cli.options import Bounds, Reveal, TablePlace, Whole, check_seed
from casemate.cli.output import Output
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.attack.one_bit import OneBitOptions
    from casemate.attack.one_bit_result import OneBitFound

LearnerChoice = Literal["auto", "bisection", "kalman", "edge", "automatic"]
ToldChoice = Literal["law", "scale", "nothing"]
WeightsChoice = Literal["even", "subsets", "single"]


@Parameter(name="*")
@dataclass(frozen=True)
class Learning:
    """Who learns, what it is told, and how queries are drawn for it."""

    learner: Annotated[
        LearnerChoice, Parameter(help="Who learns; auto takes what suits the noise.")
    ] = "auto"
    told: Annotated[ToldChoice, Parameter(help="What the attacker knows of the noise.")] = "law"
    weights: Annotated[
        WeightsChoice | None,
        Parameter(help="How the groups of a query are weighted; even by itself."),
    ] = None

    def options(self, confidence: float) -> "OneBitOptions":
        """The same for the attack."""
        from casemate.attack.one_bit import OneBitOptions
        from casemate.attack.one_bit_learners import LearnerName, Told
        from casemate.attack.one_bit_stream import Weighting

        weights = None if self.weights is None else Weighting(self.weights)
        return OneBitOptions(LearnerName(self.learner), Told(self.told), weights, confidence)


def one_bit(
    *,
    table: TablePlace,
    noise: Annotated[str, Parameter(help="LAW:SCALE of the noise on a total, as laplace:50.")],
    queries: Annotated[Whole, Parameter(help="How many yes/no questions are asked.")],
    private: Annotated[
        str | None,
        Parameter(help="The column of numbers, where no policy says that a single one is private."),
    ] = None,
    dimensions: Annotated[
        Whole, Parameter(help="Into how many groups public columns part the records, at most.")
    ] = 16,
    learning: Learning | None = None,
    bounds: Bounds = None,
    confidence: Annotated[
        float, Parameter(help="The probability with which an interval holds the true mean.")
    ] = 0.9,
    seed: Annotated[Whole | None, Parameter(help="Makes queries and noise repeatable.")] = None,
    reveal: Reveal = False,
    output: Output | None = None,
) -> int:
    """Learn totals of a private column from noisy yes/no answers, one bit a query."""
    learning, output = learning or Learning(), output or Output()
    check_seed(seed)
    import numpy as np

    from casemate.attack.one_bit import OneBitAttack

    options = learning.options(confidence)
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
    _emit(found, reveal, output)
    return end_of_attack(found.finished, output)


def _ends(text: str) -> tuple[float, float]:
    """LO:HI with both ends, which is what numbers are scaled by."""
    from casemate.published.knowledge_file import read_bounds

    low, high = read_bounds(text)
    if low is None or high is None:
        raise Misconfigured(f"--bounds {text} has an open end; give both, as --bounds 0:100")
    return float(low), float(high)


def _emit(found: "OneBitFound", reveal: bool, output: Output) -> None:
    from casemate.report.one_bit import as_json, as_text
    from casemate.report.one_bit_html import as_html

    html = as_html(found, reveal=reveal) if output.format == "html" else None
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal), html)
