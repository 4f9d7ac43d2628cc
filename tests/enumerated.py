"""Theorems of source document 001 compared with the exact probabilities of a conversation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from casemate.papers.interaction import (
    Interaction,
    Leak,
    Query,
    Transcript,
    epsilon_of,
    leaked_at_most,
    neighbours,
    ratio_needed,
    sensitivity,
)
from casemate.privacy import GeneralisationSetting
from casemate.privacy.generalisation import (
    Bound,
    lemma_9,
    lemma_11,
    posterior_tilt,
    proposition_1,
    proposition_2,
    theorem_3,
    theorem_4,
    theorem_5,
    theorem_6,
    theorem_7,
)

ZERO = Fraction(0)
GRID = [0.01, 0.1, 0.3, 1.0]


def queries_of(talk: Interaction) -> set[Query]:
    return {turn.query for transcript in talk.transcripts for turn in transcript}


def touched_by(talk: Interaction, query: Query) -> int:
    return len({i for i, here, there in neighbours(talk) if query(here) != query(there)})


def sample_failure(talk: Interaction, alpha: Fraction) -> Fraction:
    return talk.probability_that(lambda s, t: talk.sample_error(s, t) >= alpha)


def settings_of(
    talk: Interaction, leak: Leak, deltas: list[Fraction], linear: bool = True
) -> Iterator[GeneralisationSetting]:
    """The exact parameters of the conversation: every useful alpha, and the smallest epsilon."""
    errors = {talk.sample_error(s, t) for s, row in talk.law.items() for t, p in row.items() if p}
    touched = max(1, *(touched_by(talk, q) for q in queries_of(talk)))
    step = max(sensitivity(talk, q) for q in queries_of(talk))
    epsilons = {delta: epsilon_of(ratio_needed(talk, leak, delta)) for delta in deltas}
    for delta, error in product(deltas, errors | {ZERO}):
        alpha = error + Fraction(1, 1024)
        beta = sample_failure(talk, alpha)
        yield GeneralisationSetting(
            samples=talk.size,
            epsilon=epsilons[delta],
            alpha=float(alpha),
            beta=min(1.0, float(beta) * (1 + 2**-50)),
            delta=float(delta) * (1 + 2**-50),
            leaked=leaked_at_most(talk, leak),
            touched=touched,
            sensitivity=None if linear else float(step) * (1 + 2**-50) or 1e-9,
        )


def population_bounds(setting: GeneralisationSetting) -> Iterator[Bound]:
    """Every statement about answers that applies."""
    for c, d in product(GRID, GRID):
        yield theorem_5(setting, c, d * setting.width)
        if setting.is_linear:
            yield theorem_3(setting, c, d)
            yield theorem_4(setting, c, d)
    if setting.is_linear and not setting.delta:
        one_constant = (theorem_6, theorem_7, proposition_1, proposition_2)
        yield from (statement(setting, x) for statement in one_constant for x in GRID)


@dataclass(frozen=True)
class Errors:
    """The law of the worst population error, worked out once for many bounds."""

    law: dict[Fraction, Fraction]

    @classmethod
    def of(cls, talk: Interaction, error: Callable[[Transcript], Fraction]) -> "Errors":
        law: dict[Fraction, Fraction] = {}
        for transcript, p in talk.marginal.items():
            size = error(transcript)
            law[size] = law.get(size, ZERO) + p
        return cls(law)

    def exceed(self, deviation: float) -> Fraction:
        return sum((p for size, p in self.law.items() if size > deviation), ZERO)


def assert_every_statement_holds(
    talk: Interaction, leak: Leak, deltas: list[Fraction], linear: bool = True
) -> list[Bound]:
    """Compare each bound with the exact probability; return those that say something."""
    answers = Errors.of(talk, talk.population_error)
    shifts = Errors.of(talk, talk.posterior_shift)
    telling: list[Bound] = []
    for setting in settings_of(talk, leak, deltas, linear):
        bounds = list(population_bounds(setting))
        for bound in bounds:
            assert answers.exceed(bound.deviation) <= bound.failure, (setting, bound)
        telling += [bound for bound in bounds if not bound.vacuous]
        for c in GRID:
            for lemma in (lemma_9, lemma_11) if linear else (lemma_11,):
                bound = lemma(setting, c)
                assert shifts.exceed(bound.deviation) <= bound.failure, (setting, bound)
        if linear and not setting.delta:
            assert max(shifts.law) <= posterior_tilt(setting)
    return telling
