"""How much noise would be enough: the fraction recovered under more and less of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from casemate.attack.attack import Attacked, round_number
from casemate.attack.evidence import Evidence, with_noise
from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.attack.reconstruct.run import reconstructed
from casemate.attack.score.rule import Rule
from casemate.attack.score.scoring import kinds_and_records
from casemate.exact import Floats


@dataclass(frozen=True)
class NoisePoint:
    """A law of noise, and the fraction that is recovered under it."""

    law: NoiseLaw
    recovered: float


FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def noise_curve(
    attacked: Attacked,
    *,
    random: np.random.Generator,
    factors: Sequence[float] = FACTORS,
) -> list[NoisePoint]:
    """The fraction recovered under more and less noise, for a table that knows the truth.

    Around the law that the attack was made with, or Gaussian noise about as large as what one
    record adds to an answer. There are fewer points than factors where somebody interrupted it.
    """
    evidence, options = attacked.evidence, attacked.options
    if not attacked.scores or evidence.truth is None or not evidence.own:
        return []
    exact = evidence.problem.with_answers(_true_answers(evidence, evidence.truth))
    law = options.noise or NoiseLaw("gaussian", _size(attacked.reconstruction.values))
    points: list[NoisePoint] = []
    for factor in factors:
        scaled = NoiseLaw(law.kind, law.scale * factor)
        problem = with_noise(exact, scaled, random)
        found = reconstructed(problem, solver=options.solver, confidence=None, random=random)
        if not found.finished:
            break
        points.append(NoisePoint(scaled, recovered(attacked, evidence.truth, found.values)))
    return points


def _size(values: Floats) -> float:
    """About how much noise hides one record: a round number, read off what was found."""
    return round_number(float(np.abs(values).mean()) * len(values) ** 0.5 / 4) or 1.0


def _true_answers(evidence: Evidence, truth: Floats) -> Floats:
    equations = evidence.problem.equations
    return equations.lengths * equations.times(truth)


def recovered(attacked: Attacked, truth: Floats, values: Floats) -> float:
    """The fraction of secrets of which these values would be right, by the rule of the scores."""
    problem = attacked.evidence.problem
    verdicts = []
    for name, judged in attacked.scores.items():
        subjects = attacked.evidence.subjects(name)
        whole, open_ = kinds_and_records(problem, subjects)
        guesses, true = subjects.by_record(values), subjects.by_record(truth)
        verdicts.append(Rule(whole, judged.tolerance).right(guesses, true)[open_])
    return float(np.concatenate(verdicts).mean())
