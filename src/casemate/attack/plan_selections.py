"""Every set of records that the language can select, where they are few; else a choice of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_language import Axis, Bits, Box, Language, Span, unpacked

MOST = 2_000
"""The most selections that are enumerated."""

COARSE = 5
"""Places at which coarse ranges begin and end."""

Choices = Mapping[int, Sequence[Span]]
"""The conditions to choose from on each axis."""


@dataclass(frozen=True, eq=False, repr=False)
class Selections:
    """Different sets of records, and a query for each; `complete` if there are no others."""

    boxes: tuple[Box, ...]
    sets: tuple[Bits, ...]
    complete: bool

    def matrix(self, count: int) -> NDArray[np.bool_]:
        """A row for each selection, a column for each record."""
        rows = [unpacked(each, count) for each in self.sets]
        return np.array(rows, np.bool_).reshape(len(rows), count)


def every_selection(language: Language, least: int, most: int = MOST) -> Selections | None:
    """All selections of at least so many records; None if there are more than can be kept."""
    choices: dict[int, Sequence[Span]] = {}
    for number, axis in enumerate(language.axes):
        if _large_spans(axis, least) > most:  # each of them is a selection of its own
            return None
        choices[number] = _spans(axis, least)
    found = selections(language, choices, least, most)
    return found if found.complete else None


def selections(language: Language, choices: Choices, least: int, most: int = MOST) -> Selections:
    """The selections of at least so many records by the given conditions, the first so many."""
    found: dict[Bits, Box] = {language.everybody: {}}
    if language.count < least:
        return Selections((), (), True)
    for number, spans in choices.items():
        sets = [(span, language.between(number, span)) for span in spans]
        for others, box in list(found.items()):
            for span, inside in sets:
                both = others & inside
                if both not in found and both.bit_count() >= least:
                    found[both] = {**box, number: span}
            if len(found) > most:
                return Selections(tuple(found.values())[:most], tuple(found)[:most], False)
    return Selections(tuple(found.values()), tuple(found), True)


def _large_spans(axis: Axis, least: int) -> int:
    """How many conditions on an axis select at least so many records."""
    before = axis.before
    if not axis.ordered:
        return int((np.diff(before) >= least).sum())
    ends = np.searchsorted(before, before[:-1] + max(1, least), side="left")
    return int((axis.last + 2 - ends).clip(0).sum())


def _spans(axis: Axis, least: int) -> list[Span]:
    """The conditions on an axis that select at least so many records."""
    before = axis.before
    if not axis.ordered:
        return [(i, i) for i in np.flatnonzero(np.diff(before) >= least).tolist()]
    ends = np.searchsorted(before, before[:-1] + max(1, least), side="left").tolist()
    return [(low, high - 1) for low, end in enumerate(ends) for high in range(end, axis.last + 2)]


def choices_around(language: Language, boxes: Iterable[Box], target: int) -> Choices:
    """The conditions of some queries, and what is left and right of them and of one record."""
    found: dict[int, set[Span]] = {}
    for number, axis in enumerate(language.axes):
        spans = {box[number] for box in boxes if number in box}
        own = int(axis.places[target])
        if spans and own >= 0:
            spans.add((own, own))
        if axis.ordered and spans:
            starts = {0, *(low for low, _ in spans), *(high + 1 for _, high in spans)}
            ends = {axis.last, *(high for _, high in spans), *(low - 1 for low, _ in spans)}
            spans |= {(a, b) for a in starts for b in ends if 0 <= a <= b <= axis.last}
        found[number] = spans
    return {number: sorted(spans) for number, spans in found.items() if spans}


def coarse_choices(language: Language, target: int) -> Choices:
    """Ranges that begin or end beside one record or at a few other places, and its own values."""
    found: dict[int, Sequence[Span]] = {}
    for number, axis in enumerate(language.axes):
        own = int(axis.places[target])
        if not axis.ordered:
            found[number] = [(place, place) for place in range(axis.last + 1)][:COARSE]
            continue
        steps = np.linspace(0, axis.last + 1, COARSE).astype(int).tolist()
        cuts = sorted({*steps, *(place for place in (own, own + 1) if place >= 0)})
        found[number] = [(a, b - 1) for a in cuts for b in cuts if a < b]
    return found
