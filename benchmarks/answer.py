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
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from benchmarks.claims import Claim, real_table, show
from benchmarks.survey import (
    DELTA,
    EPSILON,
    FILE,
    Forgetful,
    Survey,
    adult,
    construction,
    parity,
    ranges,
)
from casemate.grid import Floats, Origin, Outcome
from casemate.papers.accuracy import PromiseTerms
from casemate.papers.online import DatabaseUpdate, LiteralConstruction, OnlineRecords, OnlineSetting
from casemate.table import Answering, Strategy

MANY = int(float(os.environ.get("CASEMATE_QUESTIONS", "1e6")))
MU = 0.2367  # of exact Gaussian accounting at epsilon 1, delta 1e-6
CHUNK = 2_000
SEED = 11
UNCHECKED = Origin.UNVERIFIED


def shown(errors: Floats) -> str:
    return f"mean {errors.mean():.4f}, max {errors.max():.4f}"


@dataclass
class Stream:
    """What came of a stream of questions."""

    errors: list[Floats] = field(default_factory=list)
    given: Counter[Origin] = field(default_factory=Counter)
    missed: Counter[Origin] = field(default_factory=Counter)  # outside proven bounds
    surprises: int = 0

    def add(self, outcomes: list[Outcome], truths: list[int], people: int) -> None:
        cells = [outcome.parts[0][0] for outcome in outcomes]
        self.errors.append(np.abs(np.array([each.value for each in cells]) - truths) / people)
        for outcome, cell, truth in zip(outcomes, cells, truths, strict=True):
            self.given[outcome.origin] += 1
            if cell.lo is not None and cell.hi is not None:
                self.missed[outcome.origin] += not cell.lo <= truth <= cell.hi


def online(survey: Survey, answering: Answering, questions: int) -> Stream:
    room = construction(survey, answering, SEED, store=Forgetful())
    cells, stream = survey.cells, ranges(survey.shape, np.random.default_rng(SEED))
    found = Stream()
    for _ in range(0, questions, CHUNK):
        several = list(islice(stream, min(CHUNK, questions)))
        truths = cells.values([asked.parts[0].products[0] for asked in several])
        found.add([room.ask(asked) for asked in several], truths, len(survey.codes))
    found.surprises = room.stand_in.surprises.total()
    return found


def row(survey: Survey, name: str, answering: Answering, questions: int, asked: str) -> Claim:
    start = time.process_time()
    found = online(survey, answering, questions)
    taken = time.process_time() - start
    free = 100 * (1 - found.surprises / questions)
    kinds = ", ".join(
        f"{count} {origin}" + ("" if origin is UNCHECKED else f" ({found.missed[origin]} outside)")
        for origin, count in found.given.items()
    )
    return Claim(
        f"{survey.name}, {questions:.0e} questions, {name}",
        asked,
        f"{shown(np.concatenate(found.errors))}; {free:.6g} % free; {kinds} ({taken:.0f} CPU s)",
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


def to_the_letter(survey: Survey, questions: int) -> Claim:
    """The document's own algorithm with its own constants: its threshold is above the people."""
    terms = PromiseTerms(questions=10**5, epsilon=float(EPSILON), delta=float(DELTA))
    people = len(survey.codes)
    setting = OnlineSetting.least(DatabaseUpdate.by_weights(*survey.shape), terms, people)
    table = survey.table.astype(np.int64)
    room = LiteralConstruction(setting, table, OnlineRecords.in_memory(terms))
    asked = islice(ranges(survey.shape, np.random.default_rng(SEED)), questions)
    products = [each.parts[0].products[0] for each in asked]
    values = np.array([room.ask(each).value for each in products])
    errors = np.abs(values - survey.cells.values(products)) / people
    return Claim(
        f"{survey.name}, 1e+05 questions ({questions:.0e} of them asked), the document's",
        "stated",
        f"{shown(errors)}; promised {setting.error:.2f}; {room.updates} updates",
    )


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
            to_the_letter(survey, 1_000),
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
