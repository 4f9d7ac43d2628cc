"""Following a solve: how the residual fell, and the last point, should somebody interrupt it."""

from dataclasses import dataclass, field

from casemate.solve.least_squares import Progress
from casemate.solve.rows import Floats

MOST = 256
"""Points of a history that are kept; of a longer one every second is dropped."""


@dataclass
class Watch:
    """A progress callback that remembers.

    >>> import numpy as np
    >>> watch = Watch()
    >>> watch(1, 0.5, np.zeros(2))
    >>> watch.history, watch.steps
    ([(1, 0.5)], 1)
    """

    told: Progress | None = None
    history: list[tuple[int, float]] = field(default_factory=list)
    point: Floats | None = None
    steps: int = 0
    residual: float = 1.0
    _every: int = 1
    _count: int = 0

    def __call__(self, steps: int, residual: float, point: Floats) -> None:
        """Take note of one step, and pass it on."""
        self.steps, self.residual, self.point = steps, float(residual), point
        if self._count % self._every == 0:
            self.history.append((steps, float(residual)))
        self._count += 1
        if len(self.history) > MOST:
            self.history = self.history[::2]
            self._every *= 2
        if self.told is not None:
            self.told(steps, residual, point)
