"""The attack on a table: its queries and answers, what they give away, and under how much noise.

Source     Source document 002: an adversary who solves the equations behind published aggregates.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from casemate.attack.features import Features
from casemate.attack.problem_from_queries import Evidence, read_entries, with_noise
from casemate.attack.reconstruct.answers_file import Given, given_answers
from casemate.attack.reconstruct.problem import NoiseLaw, Problem
from casemate.attack.reconstruct.reconstruction import (
    ReconstructedSecret,
    Reconstruction,
    Solver,
    secrets,
)
from casemate.attack.reconstruct.run import reconstruct_problem
from casemate.attack.score.leave_one_out import Solve, solve_squares
from casemate.attack.score.predictor import Rule
from casemate.attack.score.scoring import TOLERANCE_SHARE, Score, kinds_and_records, score
from casemate.attack.solvers.iteration import Progress
from casemate.attack.subjects import Subjects
from casemate.exact import Floats
from casemate.published import Knowledge
from casemate.query.parse import DIALECT, Queries, compared_with_text
from casemate.table import Policy, Table, opened_table

FEWEST_TARGETS = 20
"""On how many people an attack is judged at least; `AttackOptions.targets` is the most."""

MOST_SCORING_WORK, MOST_INTERRUPTED_WORK = 20_000_000, 2_000_000
"""Coefficients times people up to which an attack is judged; or one that was interrupted."""


@dataclass(frozen=True)
class AttackOptions:
    """How an attack is made, and how it is judged.

    `solver` is chosen by what is known unless it is named. `confidence` is that of intervals;
    `tolerance` how far a number that is not whole may be off and count as recovered (if None, a
    hundredth of its range, or of the size of what was found where it has none). The comparison
    without the person is made for `targets` people, or fewer where there are many equations.
    """

    solver: Solver | None = None
    noise: NoiseLaw | None = None
    confidence: float = 0.9
    tolerance: float | None = None
    targets: int = 200


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """What an attack found, and how much of it is right where the truth is known.

    `scores` has one for each private column, and is empty where the truth is not known. `finished`
    is False where somebody interrupted the work, and this is what there was by then.
    """

    evidence: Evidence
    reconstruction: Reconstruction
    options: AttackOptions
    scores: Mapping[str, Score] = field(default_factory=dict)
    seconds: float = 0.0
    finished: bool = True

    def __repr__(self) -> str:
        """How large it was; never what was found."""
        return f"<Attacked: {self.records} records, {self.queries} queries>"

    @property
    def records(self) -> int:
        """How many records the table has."""
        return len(self.evidence.equations.records)

    @property
    def queries(self) -> int:
        """How many statements there were."""
        return self.evidence.publication.queries

    @property
    def secrets(self) -> Iterator[ReconstructedSecret]:
        """What was found about each record."""
        return secrets(self.evidence.equations, self.evidence.policy, self.reconstruction)


class Attack:
    """Attacks on published aggregates.

    >>> queries = [
    ...     'SELECT SUM("Blood sugar") FROM t',
    ...     'SELECT SUM("Blood sugar") FROM t WHERE ZIP <> 43813',
    ... ]
    >>> found = Attack.of(queries, "hospital", random=np.random.default_rng(0))
    >>> [round(each.value, 3) for each in found.secrets if each.low and each.high - each.low < 1e-6]
    [5.2]
    """

    @staticmethod
    def of(
        queries: Queries,
        table: Table | Policy | str | Path,
        *,
        answers: str | Path | Sequence[Given] | None = None,
        knowledge: Knowledge | None = None,
        private: str | Sequence[str] = (),
        options: AttackOptions | None = None,
        random: np.random.Generator | None = None,
        dialect: str = DIALECT,
        progress: Progress | None = None,
    ) -> Attacked:
        """Reconstruct the private values of a table from queries and their answers.

        Without `answers` (or answers in the log) they are the table's own, with noise laid over
        them if a law is given; with them the law only says what noise they carry, and the table
        need not have the private columns at all.
        """
        start = time.process_time()
        wanted, drawn = options or AttackOptions(), random or np.random.default_rng()
        given = given_answers(answers)
        entries = read_entries(queries, dialect)
        names = [private] if isinstance(private, str) else private
        texts = compared_with_text((each.sql for each in entries), names, dialect)
        with opened_table(table, names, outsider=True, texts=texts) as opened:
            evidence = Evidence.of(
                entries,
                opened,
                answers=given,
                noise=wanted.noise,
                knowledge=knowledge,
                random=drawn,
                dialect=dialect,
            )
            found = reconstruct_problem(
                evidence.problem,
                solver=wanted.solver,
                confidence=wanted.confidence,
                random=drawn,
                progress=progress,
            )
            scores, finished = _score_within_limits(evidence, found, wanted, drawn)
            spent = time.process_time() - start
            return Attacked(evidence, found, wanted, scores, spent, finished)


def _score_within_limits(
    evidence: Evidence, found: Reconstruction, options: AttackOptions, random: np.random.Generator
) -> tuple[dict[str, Score], bool]:
    """The scores, and whether nobody interrupted the work; then only what is cheap is scored."""
    entries = max(1, len(evidence.equations.system.row))
    most = (MOST_SCORING_WORK if found.finished else MOST_INTERRUPTED_WORK) // entries
    if not found.finished and most < FEWEST_TARGETS:
        return {}, False
    most = min(options.targets, max(most, FEWEST_TARGETS))
    try:
        scores = _scores(evidence, found, replace(options, targets=most), random)
    except KeyboardInterrupt:
        return {}, False
    return scores, found.finished


def _scores(
    evidence: Evidence, found: Reconstruction, options: AttackOptions, random: np.random.Generator
) -> dict[str, Score]:
    """How much of each private column is right, where the table has it and it was not known."""
    truth = evidence.truth
    if truth is None:
        return {}
    features = Features.of(evidence.policy, evidence.source)
    scores = {}
    for name, subjects in _unknown_columns(evidence, features):
        scores[name] = score(
            found,
            truth,
            problem=evidence.problem,
            random=random,
            subjects=subjects,
            tolerance=_tolerance(evidence.problem, found, subjects, options),
            confidence=options.confidence,
            targets=options.targets,
            solve=_others(found.solver, random),
        )
    return scores


def _others(solver: Solver, random: np.random.Generator) -> Solve:
    """How others are reconstructed from the release without somebody: as in the attack.

    Values are not counted one by one there: what is learned from is their least squares.
    """
    if solver not in (Solver.ROBUST, Solver.LP, Solver.CONVEX):
        return solve_squares
    return lambda problem: (
        reconstruct_problem(problem, solver=solver, confidence=None, random=random).values
    )


def _unknown_columns(evidence: Evidence, features: Features) -> Iterator[tuple[str, Subjects]]:
    """The private columns of which something was published that was not known beforehand."""
    equations, problem = evidence.equations, evidence.problem
    names = np.array([each.column for each in equations.unknowns], object)[equations.unknown]
    for name in sorted(set(names[evidence.told & (problem.low < problem.high)].tolist())):
        yield name, evidence.subjects(name, features)


def _tolerance(
    problem: Problem, found: Reconstruction, subjects: Subjects, options: AttackOptions
) -> float | None:
    """The tolerance that was asked for; without one and without a known range, a round number.

    It is read off what was found, which anybody can compute, and so coarse that it tells nothing.
    """
    free = subjects.scored & (problem.low < problem.high)
    ranges = problem.high[free] - problem.low[free]
    if options.tolerance is not None or problem.whole[free].all() or np.isfinite(np.median(ranges)):
        return options.tolerance
    return round_number(TOLERANCE_SHARE * float(np.abs(found.values[free]).mean()))


def round_number(value: float, up: bool = False) -> float:
    """The largest of 1, 2, 5, 10, ... times a power of ten that is not above, or the next one up.

    0 stays 0.

    >>> round_number(0.0574), round_number(431.0), round_number(0.0), round_number(1.97, up=True)
    (0.05, 200.0, 0.0, 2.0)
    """
    if value == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = [step * power for step in (1, 2, 5, 10)]
    if up:
        return float(f"{min(step for step in steps if step >= value * (1 - 1e-9)):.1g}")
    return float(f"{max(step for step in steps if step <= value * (1 + 1e-9)):.1g}")


# How much noise would be enough -----------------------------------------------------------------


@dataclass(frozen=True)
class NoisePoint:
    """A law of noise, and the fraction that is recovered under it."""

    law: NoiseLaw
    recovered: float


NOISE_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def noise_curve(
    attacked: Attacked,
    *,
    random: np.random.Generator,
    factors: Sequence[float] = NOISE_FACTORS,
) -> list[NoisePoint]:
    """The fraction recovered under more and less noise, for a table that knows the truth.

    Around the law that the attack was made with, or Gaussian noise about as large as what one
    record adds to an answer. There are fewer points than factors where somebody interrupted it.
    """
    evidence, options = attacked.evidence, attacked.options
    if not attacked.scores or evidence.truth is None or not evidence.own:
        return []
    equations, found = evidence.problem.equations, attacked.reconstruction.values
    answers = equations.lengths * equations.times(evidence.truth)
    exact = evidence.problem.with_answers(answers)
    hidden = round_number(float(np.abs(found).mean()) * len(found) ** 0.5 / 4)  # by such noise
    law = options.noise or NoiseLaw("gaussian", hidden or 1.0)
    points: list[NoisePoint] = []
    for factor in factors:
        scaled = NoiseLaw(law.kind, law.scale * factor)
        problem = with_noise(exact, scaled, random)
        made = reconstruct_problem(problem, solver=options.solver, confidence=None, random=random)
        if not made.finished:
            break
        points.append(NoisePoint(scaled, recovered_fraction(attacked, evidence.truth, made.values)))
    return points


def recovered_fraction(attacked: Attacked, truth: Floats, values: Floats) -> float:
    """The fraction of secrets of which these values would be right, by the rule of the scores."""
    problem = attacked.evidence.problem
    verdicts = []
    for name, judged in attacked.scores.items():
        subjects = attacked.evidence.subjects(name)
        whole, open_ = kinds_and_records(problem, subjects)
        guesses, true = subjects.by_record(values), subjects.by_record(truth)
        verdicts.append(Rule(whole, judged.tolerance).right(guesses, true)[open_])
    return float(np.concatenate(verdicts).mean())
