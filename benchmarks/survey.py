"""Tables and questions that several benchmarks of private answers share.

Adult is the encoded copy, a file adult_encoded.csv.gz in the folder that CASEMATE_DATA names,
binned to 10 x 16 x 7 x 6 x 5 x 2 x 8 x 2 cells. In the parity table x3 = x1 + x2 and x6 = x4 + x5
modulo 4, so that every table of two attributes is flat.
"""

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.answer.budget_plan import Means, plan_of
from casemate.answer.construction import AnsweringOptions, ErrorEstimate, OnlineConstruction
from casemate.doors import Doorway, Edition, MemorySecrets, Transcript, TranscriptEntry
from casemate.doors.transcript import FORM
from casemate.grid import Floats, GridQuestion, LinearCells, PrivateCells, Product, Relation, Scope
from casemate.grid.question import merge_codes
from casemate.privacy import Currency, rho_of
from casemate.privacy.book import MemoryBook
from casemate.privacy.ledger import open_ledger
from casemate.privacy.noise import Sources, discrete_gaussian, discrete_laplace, seeded_bits
from casemate.table import Answering

Codes = NDArray[np.int64]
FILE = "adult_encoded.csv.gz"
COLUMNS = {  # the codes there are, and the cells they are put into
    "age": (85, 10),
    "education-num": (16, 16),
    "marital-status": (7, 7),
    "relationship": (6, 6),
    "race": (5, 5),
    "sex": (2, 2),
    "hours-per-week": (99, 8),
    "income>50K": (2, 2),
}
PEOPLE = 48_842
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
BUDGET = Means(rho_of(EPSILON, DELTA), Currency.RHO, Relation())


@dataclass(frozen=True, eq=False)
class Survey:
    """A table of codes, one row a person."""

    name: str
    codes: Codes
    shape: tuple[int, ...]

    def counts(self, scope: Scope) -> Codes:
        """How many people have each combination."""
        table = np.zeros([self.shape[a] for a in scope], np.int64)
        if not scope:
            return np.asarray(len(self.codes))
        np.add.at(table, tuple(self.codes[:, a] for a in scope), 1)
        return table

    @property
    def table(self) -> Floats:
        """How many people fall into each cell of the whole grid."""
        return self.counts(tuple(range(len(self.shape)))).astype(np.float64)

    @property
    def cells(self) -> PrivateCells:
        """Its exact cells."""
        return PrivateCells(
            self.shape, lambda classes: merge_codes(self.counts(classes.scope), classes)
        )


def adult(path: Path) -> Survey:
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    codes = [
        np.array([int(row[name]) for row in rows]) * cells // there
        for name, (there, cells) in COLUMNS.items()
    ]
    return Survey("Adult", np.stack(codes, axis=1), tuple(cells for _, cells in COLUMNS.values()))


def parity(people: int = PEOPLE) -> Survey:
    codes = np.random.default_rng(0).integers(0, 4, (people, 8))
    codes[:, 2] = (codes[:, 0] + codes[:, 1]) % 4
    codes[:, 5] = (codes[:, 3] + codes[:, 4]) % 4
    return Survey("parity", codes, (4,) * 8)


def ranges(
    shape: tuple[int, ...], random: Generator, attributes: int = 3
) -> Iterator[GridQuestion]:
    """Counts over random ranges of some attributes, for ever."""
    while True:
        scope = random.choice(len(shape), attributes, replace=False)
        masks = {}
        for attribute in scope.tolist():
            low, high = np.sort(random.integers(0, shape[attribute], 2))
            masks[attribute] = (np.arange(shape[attribute]) >= low) & (
                np.arange(shape[attribute]) <= high
            )
        yield GridQuestion((LinearCells(((Product(shape, masks),),)),))


class Forgetful(MemoryBook[TranscriptEntry]):
    """A transcript that keeps what the stand-in is built from, and forgets the questions.

    A million answers would fill the memory of a small machine, and random questions do not repeat.
    """

    def __init__(self) -> None:
        super().__init__(FORM)
        self._last: TranscriptEntry | None = None

    def newest(self) -> TranscriptEntry | None:
        return self._last

    def append(self, entry: TranscriptEntry) -> None:
        self._last = entry
        if entry.kind in ("easy", "answered"):
            return
        super().append(entry)

    def of_kinds(self, kinds: Sequence[str], first: int) -> list[TranscriptEntry]:
        return [e for e in self._rows if e.number >= first and e.kind in kinds]

    def run(self, work: Callable[..., object]) -> object:  # type: ignore[override]  # nothing fails
        return work(self)


class NoErrors:
    """Leaves typical errors out, where they are not what is measured."""

    def __init__(self, *_: object) -> None: ...

    def errors(self, asked: GridQuestion) -> list[Floats]:
        return [np.zeros(len(part.cells)) for part in asked.parts]


def construction(
    survey: Survey,
    answering: Answering,
    seed: int,
    *,
    store: MemoryBook[TranscriptEntry] | None = None,
    options: AnsweringOptions = AnsweringOptions(unverified=True),  # noqa: B008 - frozen
    typical: Callable[..., ErrorEstimate] = NoErrors,
) -> OnlineConstruction:
    """The product's own construction over a table in memory, with seeded noise."""
    bits = seeded_bits(seed)
    laplace = partial(discrete_laplace, bits=bits)
    doors = Doorway(
        open_ledger(":memory:", dataset="d", policy="p", epsilon=EPSILON, delta=DELTA),
        Transcript(store or MemoryBook(FORM)),
        MemorySecrets(),
        Edition("p", "v"),
        Sources(partial(discrete_gaussian, bits=bits), laplace),
        laplace,
    )
    plan = plan_of(BUDGET, survey.shape, answering)
    names = [f"x{i}" for i in range(len(survey.shape))]
    return OnlineConstruction(plan, doors, survey.cells, names, options, typical=typical)
