"""Claim: one budget answers a hundred thousand questions, and a million, within two thousandths.

Epsilon 1, delta 1e-6, add-remove, 48,842 people; random ranges over three attributes. Every row is
the product's own code over a table in memory with seeded noise, except the two baselines that put
noise on each answer: those are drawn, Gaussian with its exact accounting (mu = .2367 at these
terms), Laplace with epsilon divided by the questions. Errors are shares of the people. The free
share is that of the questions that cost nothing but the start and an open run. The parity table
shows what the gate is for. CASEMATE_QUESTIONS sets the large number of questions (1e6).
"""

import math
import os
import time
from itertools import islice

import numpy as np

from benchmarks.claims import Claim, real_table, show
from benchmarks.survey import EPSILON, FILE, Forgetful, Survey, adult, construction, parity, ranges
from casemate.answer.outcome import Origin
from casemate.surrogate.product import Floats
from casemate.table.schema import Answering, Strategy

MANY = int(float(os.environ.get("CASEMATE_QUESTIONS", "1e6")))
MU = 0.2367  # of exact Gaussian accounting at epsilon 1, delta 1e-6
CHUNK = 2_000
SEED = 11


def shown(errors: Floats) -> str:
    return f"mean {errors.mean():.4f}, max {errors.max():.4f}"


def online(survey: Survey, answering: Answering, questions: int) -> tuple[Floats, int, int]:
    """The errors of a stream, how many were surprises, and how many were not checked."""
    room = construction(survey, answering, SEED, store=Forgetful())
    people, cells = len(survey.codes), survey.cells
    stream = ranges(survey.shape, np.random.default_rng(SEED))
    errors, unchecked = [], 0
    for _ in range(0, questions, CHUNK):
        several = list(islice(stream, min(CHUNK, questions)))
        outcomes = room.ask_all(several)
        truths = cells.values([asked.parts[0].products[0] for asked in several])
        values = [outcome.parts[0][0].value for outcome in outcomes]
        unchecked += sum(outcome.origin is Origin.UNVERIFIED for outcome in outcomes)
        errors.append(np.abs(np.array(values) - truths) / people)
    return np.concatenate(errors), room.stand_in.surprises.total(), unchecked


def row(survey: Survey, name: str, answering: Answering, questions: int, asked: str) -> Claim:
    start = time.process_time()
    errors, surprises, unchecked = online(survey, answering, questions)
    taken = time.process_time() - start
    free = 100 * (1 - surprises / questions)
    checked = "" if not unchecked else f", {unchecked} not checked"
    return Claim(
        f"{survey.name}, {questions:.0e} questions, {name}",
        asked,
        f"{shown(errors)}; {surprises} surprises, {free:.4g} % free{checked} ({taken:.0f} CPU s)",
    )


def paid(people: int, questions: int) -> list[Claim]:
    """Noise on each answer."""
    random = np.random.default_rng(SEED)
    gaussian = random.normal(0, math.sqrt(questions) / MU, questions)
    laplace = random.laplace(0, questions / float(EPSILON), questions)
    name = f"{questions:.0e} questions, "
    return [
        Claim(f"{name}Gaussian per answer", "stated", f"{shown(abs(gaussian) / people)}; 0 % free"),
        Claim(f"{name}Laplace per answer", "stated", f"{shown(abs(laplace) / people)}; 0 % free"),
    ]


def main() -> None:
    path = real_table(FILE)
    claims: list[Claim] = []
    if path is not None:
        survey = adult(path)
        claims += paid(len(survey.codes), 10**5)
        claims += [
            row(survey, "warm", Answering(), 10**5, "<= .002, .02"),
            row(survey, "cold", Answering(Strategy.COLD, surprises=200), 10**5, "mean <= .01"),
            row(survey, "two-way tables", Answering(Strategy.TABLES), 10**5, "stated"),
        ]
        claims += paid(len(survey.codes), MANY)
        claims.append(row(survey, "warm", Answering(), MANY, "<= .002, .02"))
    survey = parity()
    claims += [
        row(survey, "warm", Answering(), 10**4, "max <= .012"),
        row(survey, "two-way tables", Answering(Strategy.TABLES), 10**4, "fails"),
    ]
    show(claims)


if __name__ == "__main__":
    main()
