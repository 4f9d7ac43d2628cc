"""Which unknowns are linked by the questions about them, as questions come in.

Cost  A question costs the number of its unknowns, and of the components it joins; unknowns that
      nobody asked about cost nothing.
"""

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Mark = TypeVar("Mark")


class Components(Generic[Mark]):
    """Components of linked unknowns, each with the mark of the questions that link it.

    >>> parts: Components[str] = Components(4)
    >>> parts.join(np.array([0, 1]), "sums")
    >>> parts.join(np.array([2, 3]), "extremes")
    >>> parts.marks(np.array([1, 2])) == {"sums", "extremes"}
    True
    """

    def __init__(self, size: int) -> None:
        self._label = np.full(size, -1, np.int64)  # -1: nobody asked about it
        self._parent: list[int] = []
        self._mark: list[Mark] = []

    def marks(self, members: NDArray[np.int64]) -> set[Mark]:
        """The marks of the components that these unknowns belong to."""
        return {self._mark[root] for root in self._roots(members)}

    def join(self, members: NDArray[np.int64], mark: Mark) -> None:
        """Link these unknowns by a question with this mark."""
        root = len(self._parent)
        self._parent.append(root)
        self._mark.append(mark)
        for other in self._roots(members):
            self._parent[other] = root
        self._label[members] = root

    def component(self, member: int) -> int:
        """A number that all unknowns of a component share, for as long as nothing is joined."""
        return self._root(int(self._label[member]))

    def copy(self) -> "Components[Mark]":
        """Another one with the same components, which goes its own way from here."""
        twin: Components[Mark] = Components(0)
        twin._label = self._label.copy()
        twin._parent, twin._mark = list(self._parent), list(self._mark)
        return twin

    def _roots(self, members: NDArray[np.int64]) -> set[int]:
        labels = np.unique(self._label[members]).tolist()
        return {self._root(label) for label in labels if label >= 0}

    def _root(self, label: int) -> int:
        while self._parent[label] != label:
            self._parent[label] = self._parent[self._parent[label]]  # shorter next time
            label = self._parent[label]
        return label
