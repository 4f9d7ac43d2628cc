"""Measured tables as the transcript names them, and what a stand-in and a reader make of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np

from casemate.doors import Measured
from casemate.doors import Measurement as Door
from casemate.grid.private_cells import PrivateCells
from casemate.grid.product import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    contract,
)
from casemate.grid.question import CellClasses, all_codes
from casemate.privacy.noise import Law, law_of, variance

MAX_LEARNT_PRODUCTS = 2**10
"""Products that a stand-in learns from one table of classes."""


@dataclass(frozen=True)
class TableQuestion:
    """A table by its classes; `about` names the surprise that it was measured for.

    `start` marks the tables that are measured before the first question and learnt together.
    """

    classes: CellClasses
    start: bool = False
    about: str = ""

    def text(self, names: Sequence[str]) -> str:
        """As it stands in the transcript."""
        written = {
            "table": [names[attribute] for attribute in self.classes.scope],
            "classes": [
                None if max(each) + 1 == len(each) else list(each) for each in self.classes.labels
            ],
            "start": self.start,
            "about": self.about,
        }
        return json.dumps(written, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str, names: Sequence[str], shape: tuple[int, ...]) -> Self | None:
        """The table that a text names; None for another kind of measurement."""
        plain: dict[str, Any] = json.loads(text)
        if "table" not in plain:
            return None
        whole = all_codes(tuple(names.index(name) for name in plain["table"]), shape)
        labels = [
            tuple(given) if given is not None else usual
            for given, usual in zip(plain["classes"], whole.labels, strict=True)
        ]
        return cls(CellClasses(whole.scope, tuple(labels)), plain["start"], plain["about"])


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Noised counts, one for each cell of the classes; without a law they are exact."""

    question: TableQuestion
    values: Floats
    law: Law | None

    @classmethod
    def of(cls, question: TableQuestion, content: Measured) -> Self:
        """What an entry says of a table."""
        values = np.array(content.values, np.float64).reshape(question.classes.sizes)
        return cls(question, values, law_of(content.law, content.scale))

    def learnt(self, shape: tuple[int, ...]) -> list[Measurement]:
        """What a stand-in learns from: the marginal, or a product for each cell.

        Of classes that are many the attribute with the most of them is added up, until they are
        few: what is learnt decides how long every later answer takes.
        """
        classes, values, noise = self.question.classes, self.values, variance(self.law)
        if classes.whole:
            return [MeasuredMarginal(Marginal(classes.scope), values, noise)]
        while classes.cells > MAX_LEARNT_PRODUCTS:
            axis = int(np.argmax(classes.sizes))
            noise *= classes.sizes[axis]
            classes, values = classes.without(axis), values.sum(axis=axis)
        return [
            MeasuredProduct(product, float(value), noise)
            for product, value in zip(classes.products(shape), values.ravel(), strict=True)
        ]

    def read(self, products: Sequence[Product]) -> tuple[float, Floats]:
        """The sum of products apart from each other, and the weights of the noise in it."""
        found, weights = 0.0, [np.zeros(0)]
        for factors in map(self.question.classes.factors, products):
            found += float(contract(self.values, factors))
            inside = (each[each.nonzero()] for each in factors)
            weights.append(reduce(np.multiply.outer, inside, np.ones(())).ravel())
        return found, np.concatenate(weights)


def measure_table(
    door: Door,
    question: TableQuestion,
    cells: PrivateCells,
    names: Sequence[str],
    *,
    law: Law,
    principal: str = "",
) -> Measured:
    """The noised counts of a table, through the door of its dataset."""
    return door.measure(
        question.text(names),
        lambda: cells.class_counts(question.classes),
        cells=question.classes.cells,
        law=law,
        principal=principal,
    )
