"""`casemate attack extract`: copy a linear classifier by asking it for labels."""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from casemate.cli.attack_end import end_of_attack
from casemate.cli.options import Whole, check_seed
from casemate.cli.output import Output
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.attack.extract_asking import Predict

LearnerChoice = Literal["auto", "lowd-meek", "filter", "retraining"]
LineForm = Literal["json", "csv"]


@Parameter(name="*")
@dataclass(frozen=True)
class Classifier:
    """Which classifier is asked, named in one of two ways."""

    predict: Annotated[
        str | None, Parameter(help="module:function that labels the rows of an array.")
    ] = None
    command: Annotated[
        str | None, Parameter(help="A process that reads a point a line and writes a label a line.")
    ] = None
    lines: Annotated[LineForm, Parameter(help="How a point is written for the process.")] = "json"

    def opened(self) -> "AbstractContextManager[Predict]":
        """The classifier, for the length of a block."""
        if (self.predict is None) == (self.command is None):
            raise Misconfigured("give one of --predict module:function and --command 'a process'")
        if self.predict is not None:
            from casemate.attack.extract_predict import load_predict

            return nullcontext(load_predict(self.predict))
        from casemate.attack.extract_command import CommandClassifier

        return CommandClassifier(self.command or "", self.lines)


def extract(
    *,
    dimension: Annotated[Whole, Parameter(help="How many coordinates a point has.")],
    classifier: Classifier | None = None,
    truth: Annotated[
        Path | None, Parameter(help="True weights, and perhaps the intercept, to compare with.")
    ] = None,
    queries: Annotated[
        Whole | None, Parameter(help="The most points to ask, checks included.")
    ] = None,
    bounds: Annotated[str, Parameter(help="LO:HI, between which coordinates may lie.")] = "-1:1",
    learner: Annotated[
        LearnerChoice, Parameter(help="The learner; by itself the one that fits the labels' noise.")
    ] = "auto",
    seed: Annotated[Whole | None, Parameter(help="Makes the points asked repeatable.")] = None,
    output: Output | None = None,
) -> int:
    """Find the weights of a linear classifier that shows nothing but labels."""
    classifier, output = classifier or Classifier(), output or Output()
    _check(dimension, queries, seed)
    ends = _ends(bounds)
    import numpy as np

    from casemate.attack import extract as attack
    from casemate.attack.extract_truth import read_truth
    from casemate.report.extract import as_json, as_text
    from casemate.report.extract_html import as_html

    true = None if truth is None else read_truth(truth, dimension)
    with classifier.opened() as asked, output.progress("extracting"):
        found = attack.extract(
            asked,
            dimension,
            bounds=ends,
            queries=queries,
            truth=true,
            learner=None if learner == "auto" else attack.LearnerName(learner),
            random=np.random.default_rng(seed),
        )
    html = as_html(found) if output.format == "html" else None
    output.emit(as_text(found), as_json(found), html)
    return end_of_attack(found.finished, output)


def _check(dimension: int, queries: int | None, seed: int | None) -> None:
    """Refuse numbers that mean nothing before anything is asked."""
    if dimension < 1:
        raise Misconfigured(
            f"--dimension {dimension} is too small; a point has 1 coordinate or more"
        )
    if queries is not None and queries < 2:
        raise Misconfigured(f"--queries {queries} is too few; a boundary needs at least 2")
    check_seed(seed)


def _ends(bounds: str) -> tuple[float, float]:
    """Both ends of the box; a search needs them."""
    from casemate.published.knowledge_file import read_bounds

    low, high = read_bounds(bounds)
    if low is None or high is None or low == high:
        raise Misconfigured(f"--bounds {bounds} needs two different ends, for example -1:1")
    ends = _number(low), _number(high)
    if not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] < ends[1]):
        raise Misconfigured(f"--bounds {bounds} is too large, or too narrow, for floating point")
    return ends


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # a Fraction
    except OverflowError:
        return math.inf
