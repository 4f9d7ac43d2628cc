"""Asking a classifier for labels: each point is counted, and a label becomes a bit.

A classifier is anything that takes an array of points, one a row, and gives a label for each, as
`predict` of scikit-learn does. Labels may be numbers or text; there are two of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from casemate.attack.extract_boundary import Bits, Boundary, Box, Floats
from casemate.errors import Misconfigured

Predict = Callable[[Floats], Any]
Label = int | float | str | bool


class OutOfQueries(Exception):
    """The classifier may not be asked as many points as that any more; never leaves an attack."""


@dataclass
class Asking:
    """A classifier with a count of the points it was asked, at most `limit` of them."""

    predict: Predict
    box: Box
    limit: int
    count: int = 0
    labels: list[Label] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    answers: list[Bits] = field(default_factory=list)

    @property
    def left(self) -> int:
        """How many more points may be asked."""
        return self.limit - self.count

    def ask(self, points: Floats) -> Bits:
        """Whether each point of the cube has another label than the first point ever asked."""
        if len(points) > self.left:
            raise OutOfQueries
        if not len(points):
            return np.zeros(0, np.bool_)
        self.count += len(points)  # before they are sent: an interrupted batch was asked as well
        found = read_labels(self.predict(self.box.real(points)), len(points))
        for label in found:
            self._known(label)
        bits = np.array([label != self.labels[0] for label in found], np.bool_)
        self.points.append(points)
        self.answers.append(bits)
        return bits

    def _known(self, label: Label) -> None:
        if label in self.labels:
            return
        self.labels.append(label)
        if len(self.labels) > 2:
            shown = ", ".join(_shown(each) for each in self.labels)
            raise Misconfigured(
                f"the classifier gave more than two labels ({shown}); give one that answers "
                f"with one of two labels for each point, and with nothing else"
            )

    def seen(self) -> tuple[Floats, Bits]:
        """Everything that was asked, with the answers."""
        return np.concatenate(self.points), np.concatenate(self.answers)

    def sides(self) -> tuple[Label, Label]:
        """The label below a boundary and the one above it: the larger number, or the later word."""
        first, second = self.labels
        return (second, first) if self._backwards() else (first, second)

    def oriented(self, found: Boundary) -> Boundary:
        """A boundary whose bits are turned so that `sides` tells above from below."""
        return found.turned() if self._backwards() else found

    def _backwards(self) -> bool:
        first, second = self.labels
        if isinstance(first, str) or isinstance(second, str):
            return str(first) > str(second)
        return first > second


def read_labels(answer: Any, count: int) -> Sequence[Label]:
    """What a classifier gave, as plain labels; it must be one for each point."""
    given = np.asarray(answer, dtype=object)  # numbers and text may stand side by side
    if given.shape not in ((count,), (count, 1)):
        shape = " x ".join(map(str, given.shape)) or "no list"
        raise Misconfigured(
            f"the classifier was asked for {count} labels and answered with {shape}; "
            f"it has to give one label for each point"
        )
    return [_label(each) for each in given.ravel().tolist()]


def _label(value: Any) -> Label:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, float) and not math.isfinite(value):
        raise Misconfigured("the classifier answered with a number that is not finite; no label")
    if not isinstance(value, int | float | str):
        raise Misconfigured(
            f"the classifier answered with a {type(value).__name__}; a label is a number or text"
        )
    return value


def _shown(label: Label) -> str:
    text = repr(label)
    return text if len(text) <= 40 else f"{text[:37]}..."
