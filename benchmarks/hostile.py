"""Claim: an analyst who tries to close the gate is stopped by a ration, and others go on.

Epsilon 1, delta 1e-6, add-remove, 25 surprises. Two analysts: one knows every record and asks, each
time, for the set of cells on which the stand-in is furthest off, found by changing one attribute's
codes at a time; the other knows nothing and asks for random halves of the codes of some attributes.
Printed: how many questions until the gate closes, and the error of ordinary questions (ranges over
three attributes) before, and after, when the stand-in goes on alone. With a ration of 5 surprises
the hostile principal is refused, and others still have 20.
"""

from itertools import islice

import numpy as np
from numpy.random import Generator

from benchmarks.claims import Claim, real_table, show
from benchmarks.survey import FILE, Survey, adult, construction, parity, ranges
from casemate.answer.construction import AnsweringOptions, OnlineConstruction
from casemate.errors import RationSpent, Refused
from casemate.grid import Floats, GridQuestion, LinearCells, Origin, Product
from casemate.table import Answering

MOST = 600
ORDINARY = 2_000
SEED = 3
CLIMBS, STEPS = 6, 3


def counting(shape: tuple[int, ...], masks: dict[int, np.ndarray]) -> GridQuestion:
    return GridQuestion((LinearCells(((Product(shape, masks),),)),))


def furthest(survey: Survey, room: OnlineConstruction, random: Generator) -> GridQuestion:
    """The product of masks on which the stand-in is furthest off, as far as climbing finds it.

    Given all masks but one, the best mask of that one keeps the codes that are off one way.
    """
    size = int(random.integers(4, len(survey.shape) + 1))
    scope = tuple(sorted(random.choice(len(survey.shape), size, replace=False).tolist()))
    off = survey.counts(scope) - room.stand_in.surrogate.marginal(scope)
    best, chosen = -1.0, [np.ones(survey.shape[a], bool) for a in scope]
    for _ in range(CLIMBS):
        masks = [random.random(survey.shape[a]) < 0.5 for a in scope]
        for axis in list(range(len(scope))) * STEPS:
            masks[axis] = better(off, masks, axis)
        value = abs(total(off, masks))
        if value > best:
            best, chosen = value, list(masks)
    return counting(survey.shape, dict(zip(scope, chosen, strict=True)))


def total(off: Floats, masks: list[np.ndarray]) -> float:
    return float(off[np.ix_(*masks)].sum())


def better(off: Floats, masks: list[np.ndarray], axis: int) -> np.ndarray:
    free = [*masks]
    free[axis] = np.ones(off.shape[axis], bool)
    along = off[np.ix_(*free)].sum(axis=tuple(i for i in range(off.ndim) if i != axis))
    up, down = along > 0, along < 0
    return np.asarray(up if along[up].sum() >= -along[down].sum() else down)


def blind(survey: Survey, _: OnlineConstruction, random: Generator) -> GridQuestion:
    scope = random.choice(len(survey.shape), 4, replace=False).tolist()
    return counting(survey.shape, {a: random.random(survey.shape[a]) < 0.5 for a in scope})


def ordinary(survey: Survey, room: OnlineConstruction) -> str:
    """The error of ordinary questions from the stand-in as it is."""
    several = list(islice(ranges(survey.shape, np.random.default_rng(1)), ORDINARY))
    products = [asked.parts[0].products[0] for asked in several]
    truth = np.array(survey.cells.values(products))
    off = np.abs(room.stand_in.surrogate.answers(products) - truth) / len(survey.codes)
    return f"mean {off.mean():.4f}, max {off.max():.4f}"


def siege(survey: Survey, analyst: str) -> list[Claim]:
    random = np.random.default_rng(SEED)
    options = AnsweringOptions(unverified=False)
    room = construction(survey, Answering(), SEED, options=options)
    room.start()
    before = ordinary(survey, room)
    asked, closed = 0, False
    for _ in range(MOST):
        question = (furthest if analyst == "knows all" else blind)(survey, room, random)
        try:
            asked += room.ask(question).origin is not Origin.CACHED
        except Refused:
            closed = True
            break
    end = f"closed after {asked} questions" if closed else f"open after {asked} questions"
    found = room.stand_in.surprises.total()
    name = f"{survey.name}, an analyst who {analyst}"
    return [
        Claim(f"{name}: until the gate closes", "stated", f"{end}, {found} surprises"),
        Claim(f"{name}: ordinary error before", "stated", before),
        Claim(f"{name}: ordinary error after", "stated", ordinary(survey, room)),
    ]


def rationed(survey: Survey) -> Claim:
    random = np.random.default_rng(SEED)
    room = construction(survey, Answering(), SEED, options=AnsweringOptions(ration=5))
    room.start()
    refused = 0
    for _ in range(100):
        try:
            room.ask(furthest(survey, room, random), "mallory")
        except RationSpent:
            refused += 1
    served = [room.ask(each, "alice") for each in islice(ranges(survey.shape, random), 100)]
    checked = sum(outcome.origin is not Origin.UNVERIFIED for outcome in served)
    return Claim(
        f"{survey.name}, 100 hostile questions with a ration of 5",
        "others go on",
        f"{refused} refused, {room.runs_left} runs left, {checked} of 100 of others checked",
    )


def main() -> None:
    path = real_table(FILE)
    surveys = [*([adult(path)] if path is not None else []), parity()]
    claims = []
    for survey in surveys:
        for analyst in ("knows all", "knows nothing"):
            claims += siege(survey, analyst)
        claims.append(rationed(survey))
    show(claims)


if __name__ == "__main__":
    main()
