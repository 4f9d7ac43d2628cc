"""`casemate attack` at the terminal: reconstruct, plan, one-bit and extract.

An attack that is interrupted ends with the best so far written.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from casemate.errors import Misconfigured
from casemate.report.terminal import (
    Bounds,
    Dialect,
    Exit,
    Integer,
    Known,
    OutputOptions,
    Private,
    Reveal,
    Seed,
    SourceOptions,
    TablePlace,
    Whole,
    check_seconds,
    check_seed,
)

if TYPE_CHECKING:
    import numpy as np

    from casemate.attack.attack import Attacked, AttackOptions, NoisePoint
    from casemate.attack.extract.boundary import Predict
    from casemate.attack.one_bit.attack import OneBitOptions


def end_of_attack(finished: bool, output: OutputOptions) -> Exit:
    """The exit code of an attack; one that was interrupted says so."""
    if finished:
        return Exit.DONE
    from casemate.attack.words import BEST_SO_FAR

    output.note(BEST_SO_FAR)
    return Exit.INTERRUPTED


# Reconstruct: take back from published answers what was private ---------------------------------


SolverName = Literal["least-squares", "box", "convex", "robust", "lp", "integer", "kaczmarz", "sgd"]

app = App(name="attack", help="Take back from published answers what was private.")


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
    seed: Seed = None

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

    def options(self, noise: str | None) -> "AttackOptions":
        """The same for the attack, with the law of the noise in the answers."""
        from casemate.attack.attack import AttackOptions
        from casemate.attack.reconstruct.problem import NoiseLaw
        from casemate.attack.reconstruct.reconstruction import Solver

        return AttackOptions(
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
    cells: SourceOptions | None = None,
    private: Private = (),
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
    output: OutputOptions | None = None,
) -> int:
    """Reconstruct a private column from published answers, exact or noisy."""
    solving, output = solving or Solving(), output or OutputOptions()
    solving.check()
    import numpy as np

    from casemate.attack.attack import Attack
    from casemate.attack.report import attack_report
    from casemate.published import read_knowledge
    from casemate.table import plain_source

    place = plain_source(table, **(cells or SourceOptions()).keywords())
    options, random = solving.options(noise), np.random.default_rng(solving.seed)
    knowledge = read_knowledge(known, bounds, integer)
    with output.progress("attacking"):
        found = Attack.of(
            queries,
            place,
            answers=answers,
            knowledge=knowledge,
            private=private,
            options=options,
            random=random,
            dialect=dialect,
        )
        curve, uncut = _curve(found, random) if output.format == "html" else ([], True)
    output.emit(attack_report(found, curve, reveal=reveal))
    return end_of_attack(found.finished and uncut, output)


def _curve(found: "Attacked", random: "np.random.Generator") -> tuple[list["NoisePoint"], bool]:
    """The fraction recovered under other noise, and whether nobody interrupted it."""
    from casemate.attack.attack import NOISE_FACTORS, noise_curve

    if not (found.finished and found.scores and found.evidence.own):
        return [], found.finished
    try:
        points = noise_curve(found, random=random)
    except KeyboardInterrupt:  # between two solves
        return [], False
    return points, len(points) == len(NOISE_FACTORS)


# Plan: the fewest queries that would give a record, or all of them, away ------------------------


@app.command(help="Choose the fewest queries that give away a record.")
def plan(
    *,
    table: TablePlace,
    target: Annotated[str, Parameter(help="The record to find out, by key or row number, or all.")],
    cells: SourceOptions | None = None,
    private: Annotated[
        str | None,
        Parameter(
            help="The column to find out, where no policy says that a single one is private."
        ),
    ] = None,
    min_count: Annotated[
        Whole, Parameter(help="Every query has to select at least so many records.")
    ] = 1,
    max_queries: Annotated[
        Whole | None, Parameter(help="The most queries that a plan may have.")
    ] = None,
    seconds: Annotated[
        float | None, Parameter(help="About the most seconds to search; 0 for no limit.")
    ] = None,
    dialect: Annotated[
        str, Parameter(help="The SQL dialect to write the queries in.")
    ] = "postgres",
    output: OutputOptions | None = None,
) -> None:
    """Choose the fewest queries on public columns whose answers give a record's value away."""
    output = output or OutputOptions()
    check_seconds(seconds)
    from casemate.attack.plan.plan import Plan
    from casemate.attack.plan.report import plan_report
    from casemate.table import plain_source

    place = plain_source(table, **(cells or SourceOptions()).keywords())
    with output.progress("planning"):
        found = Plan.of(
            place,
            target,
            private=() if private is None else private,
            min_count=min_count,
            max_queries=max_queries,
            seconds=inf if seconds == 0 else seconds,
            dialect=dialect,
        )
    output.emit(plan_report(found))


# One-bit: totals of a private column, from yes/no answers with noise ----------------------------


LearnerChoice = Literal["auto", "bisection", "kalman", "edge", "automatic"]
ToldChoice = Literal["law", "scale", "nothing"]
WeightsChoice = Literal["even", "subsets", "single"]


@Parameter(name="*")
@dataclass(frozen=True)
class LearningOptions:
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
        from casemate.attack.one_bit.attack import OneBitOptions
        from casemate.attack.one_bit.choice import KnownNoise, OneBitLearnerName
        from casemate.attack.one_bit.streams import Weighting

        weights = None if self.weights is None else Weighting(self.weights)
        learner, told = OneBitLearnerName(self.learner), KnownNoise(self.told)
        return OneBitOptions(learner, told, weights, confidence)


@app.command(help="Learn totals of a private column from noisy yes/no answers.")
def one_bit(
    *,
    table: TablePlace,
    noise: Annotated[str, Parameter(help="LAW:SCALE of the noise on a total, as laplace:50.")],
    queries: Annotated[Whole, Parameter(help="How many yes/no questions are asked.")],
    cells: SourceOptions | None = None,
    private: Annotated[
        str | None,
        Parameter(help="The column of numbers, where no policy says that a single one is private."),
    ] = None,
    dimensions: Annotated[
        Whole, Parameter(help="Into how many groups public columns part the records, at most.")
    ] = 16,
    learning: LearningOptions | None = None,
    bounds: Bounds = None,
    confidence: Annotated[
        float, Parameter(help="The probability with which an interval holds the true mean.")
    ] = 0.9,
    seed: Seed = None,
    reveal: Reveal = False,
    output: OutputOptions | None = None,
) -> int:
    """Learn totals of a private column from noisy yes/no answers, one bit a query."""
    learning, output = learning or LearningOptions(), output or OutputOptions()
    check_seed(seed)
    import numpy as np

    from casemate.attack.one_bit.attack import OneBitAttack
    from casemate.attack.one_bit.report import one_bit_report
    from casemate.table import plain_source

    place = plain_source(table, **(cells or SourceOptions()).keywords())
    options = learning.options(confidence)
    with output.progress("asking", queries) as progress:
        found = OneBitAttack.of(
            place,
            private=private,
            noise=noise,
            queries=queries,
            dimensions=dimensions,
            bounds=None if bounds is None else _ends(bounds, "0:100"),
            options=options,
            random=np.random.default_rng(seed),
            progress=progress.advance,
        )
    output.emit(one_bit_report(found, reveal=reveal))
    return end_of_attack(found.finished, output)


# Extract: copy a linear classifier by asking it for labels --------------------------------------


ExtractLearner = Literal["auto", "lowd-meek", "filter", "retraining"]
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

    def open(self) -> "AbstractContextManager[Predict]":
        """The classifier, for the length of a block."""
        if (self.predict is None) == (self.command is None):
            raise Misconfigured("give one of --predict module:function and --command 'a process'")
        if self.predict is not None:
            from casemate.attack.extract.classifier import load_predict

            return nullcontext(load_predict(self.predict))
        from casemate.attack.extract.classifier import CommandClassifier

        return CommandClassifier(self.command or "", self.lines)


@app.command(help="Copy a linear classifier by asking it for labels.")
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
        ExtractLearner,
        Parameter(help="The learner; by itself the one that fits the labels' noise."),
    ] = "auto",
    seed: Seed = None,
    output: OutputOptions | None = None,
) -> int:
    """Find the weights of a linear classifier that shows nothing but labels."""
    classifier, output = classifier or Classifier(), output or OutputOptions()
    _check(dimension, queries, seed)
    ends = _ends(bounds, "-1:1")
    import numpy as np

    from casemate.attack.extract import extraction as attack
    from casemate.attack.extract.extraction import read_truth
    from casemate.attack.extract.report import extraction_report

    true = None if truth is None else read_truth(truth, dimension)
    with classifier.open() as asked, output.progress("extracting"):
        found = attack.extract(
            asked,
            dimension,
            bounds=ends,
            queries=queries,
            truth=true,
            learner=None if learner == "auto" else attack.ExtractLearnerName(learner),
            random=np.random.default_rng(seed),
        )
    output.emit(extraction_report(found))
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


def _ends(bounds: str, example: str) -> tuple[float, float]:
    """LO:HI with both ends, which is what a search and a scale need."""
    from casemate.published import read_bounds

    low, high = read_bounds(bounds)
    if low is None or high is None or low == high:
        lacks = "has an open end and needs" if low is None or high is None else "needs"
        raise Misconfigured(f"--bounds {bounds} {lacks} two different ends, for example {example}")
    try:
        ends = float(low), float(high)
    except OverflowError:
        ends = math.inf, math.inf
    if not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] < ends[1]):
        raise Misconfigured(f"--bounds {bounds} is too large, or too narrow, for floating point")
    return ends
