"""Languages of small tables, and every box of one."""

from itertools import product
from random import Random

import numpy as np
from attack.every_plan import small_columns

from casemate.attack.plan.language import Axis, Box, Language
from casemate.table import Column


def small_language(rng: Random) -> Language:
    """A language of small columns, as the planner reads them."""
    axes = []
    for number, (ordered, values) in enumerate(small_columns(rng)):
        there = sorted({value for value in values if value is not None})
        places = [-1 if value is None else there.index(value) for value in values]
        axes.append(Axis(Column(f"c{number}"), tuple(there), np.array(places), ordered))
    return Language(tuple(axes), np.arange(len(axes[0].places)))


def every_box(language: Language) -> list[Box]:
    choices = []
    for axis in language.axes:
        spans = [(i, j) for i in range(axis.last + 1) for j in range(i, axis.last + 1)]
        choices.append([None, *(span for span in spans if axis.ordered or span[0] == span[1])])
    return [
        {number: span for number, span in enumerate(chosen) if span is not None}
        for chosen in product(*choices)
    ]
