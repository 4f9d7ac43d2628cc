"""Claim: the literal online construction keeps its promise, which is a loose one.

The calculators' figures are 3 alpha for a survey of 48,842 people, 1e6 cells and 1e4 questions.
Beside them the construction itself, on tables so large that its theorem says something: an analyst
asks what the stand-in gets most wrong, and the largest error of all runs is printed beside 3 alpha.
"""

import math
from functools import partial

import numpy as np

from benchmarks.claims import Claim, show
from casemate.grid import Floats, MeasuredProduct, Origin, Product
from casemate.papers.accuracy import (
    PromiseTerms,
    Statement,
    accuracy,
    corrected_concentrated,
    corrected_pure,
    theorem_5_14,
    theorem_5_15,
)
from casemate.papers.database_updates import MedianMechanism, corrected_updates, literal_updates
from casemate.papers.online import (
    DatabaseUpdate,
    LiteralConstruction,
    OnlineRecords,
    OnlineSetting,
    with_numbers,
)
from casemate.privacy.noise import discrete_laplace, seeded_bits
from casemate.surrogate import Surrogate

SURVEY, CELLS, QUESTIONS = 48_842, 10**6, 10**4
PURE, APPROXIMATE = PromiseTerms(QUESTIONS), PromiseTerms(QUESTIONS, delta=1e-6)
RUNS, ASKED = 5, 400


def promised() -> list[Claim]:
    """What is promised for the survey, whatever is asked."""

    def shown(
        name: str, asked: str, statement: Statement, terms: PromiseTerms, literal: bool
    ) -> Claim:
        updates = partial(literal_updates if literal else corrected_updates, CELLS)
        found = accuracy(statement, terms, updates, SURVEY)
        return Claim(f"3 alpha by {name}", asked, f"{found.error:.3f}")

    return [
        shown("Theorem 5.14", "1.747", theorem_5_14, PURE, literal=True),
        shown("Theorem 5.15", "1.555", theorem_5_15, APPROXIMATE, literal=True),
        shown("Theorem 5.15 with its numbers", "stated", with_numbers, APPROXIMATE, literal=True),
        shown("the pure correction", ".485", corrected_pure, PURE, literal=False),
        shown(
            "the concentrated correction",
            ".390",
            corrected_concentrated,
            APPROXIMATE,
            literal=False,
        ),
    ]


def largest_error(setting: OnlineSetting, seed: int) -> tuple[float, int]:
    """The largest error of a run as a fraction of the people, and its number of updates."""
    draw = np.random.default_rng(seed)
    (cells,) = setting.update.shape
    counts = draw.multinomial(setting.people, draw.dirichlet(np.full(cells, 0.2)))
    pool = draw.random((setting.terms.questions, cells)).round(2)
    noise = partial(discrete_laplace, bits=seeded_bits(seed))
    records = OnlineRecords.in_memory(setting.terms)
    construction = LiteralConstruction(setting, counts.astype(np.int64), records, noise=noise)
    copy, left, worst = (
        setting.update.start(setting.alpha, setting.people),
        set(range(len(pool))),
        0.0,
    )
    truth, off = pool @ counts, np.zeros(0)
    while left:
        off = off if off.size else np.abs(truth - believed(copy, pool))
        line = max(left, key=lambda each: float(off[each]))
        left.remove(line)
        product = Product((cells,), {}, {0: pool[line]})
        answer = construction.ask(product)
        worst = max(worst, abs(answer.value - float(truth[line])))
        if answer.origin is Origin.MEASURED:
            copy.update(MeasuredProduct(product, answer.value, 0.0))
            off = np.zeros(0)
    return worst / setting.people, construction.updates


def believed(stand_in: Surrogate, pool: Floats) -> Floats:
    """What a stand-in says of every question."""
    if isinstance(stand_in, MedianMechanism):
        return stand_in.answers([Product((pool.shape[1],), {}, {0: line}) for line in pool])
    return np.asarray(pool @ stand_in.marginal((0,)))


def measured() -> list[Claim]:
    """The construction on tables that are large enough."""
    terms, few = PromiseTerms(ASKED), PromiseTerms(20)
    settings = [
        OnlineSetting.least(DatabaseUpdate.by_weights(64), terms, 10**8),
        OnlineSetting.least(DatabaseUpdate.by_perceptron(64), terms, 10**8),
        OnlineSetting.least(DatabaseUpdate.by_median(3, questions=20), few, 20_000),
    ]
    claims = []
    for setting in settings:
        found = [largest_error(setting, seed) for seed in range(RUNS)]
        name = f"{setting.update.name}, {math.prod(setting.update.shape)} cells"
        error, updates = max(e for e, _ in found), max(u for _, u in found)
        claims += [
            Claim(f"{name}: largest error", f"<= {setting.error:.3f}", f"{error:.3f}"),
            Claim(f"{name}: updates", f"<= {setting.updates:,}", f"{updates}"),
        ]
    return claims


def main() -> None:
    show([*promised(), *measured()])


if __name__ == "__main__":
    main()
