"""The filter for noise of an unknown scale: one for each scale it may have, then the fitted one.

Method     Eighteen filters, each assuming half the deviation of the one before, weigh themselves
           by how likely they found each bit. The answer is that of the members with a say. Once
           noise is all that is left to overcome, some thresholds move a little to either side: how
           the noise's cdf rises between them is its slope at 0, and that is all a filter needs to
           know of the noise. When the slope is measured well enough, the member that measured it
           takes the fitted scale and goes on alone, fitting again at each such query, ever more
           rarely. A scale beyond the last of the eighteen is reached by moving them along.
Guarantee  None that is proved; docs/derivations/one_bit_kalman.md has the reasons and the figures.
Cost       O(18 n^2) a query and as much memory until the scale is fitted, O(n^2) a query then.
"""

import numpy as np

from casemate.solve.one_bit.kalman_scale import empty_trail, widened
from casemate.solve.one_bit.protocol import Floats, Trail

MEMBERS = 18


class ScaleBank:
    """Beliefs under several scales, and their weights."""

    def __init__(
        self,
        mean: Floats,
        root: Floats,
        widest: float,
        rho: float,
        *,
        first: int,
        random: np.random.Generator,
    ) -> None:
        self._means, self._roots = np.tile(mean, (MEMBERS, 1)), np.tile(root, (MEMBERS, 1, 1))
        self._scales: Floats = widest * np.exp2(-np.arange(MEMBERS, dtype=np.float64))
        self._logs: Floats = np.zeros(MEMBERS)
        self._fit = np.zeros(MEMBERS), np.zeros(MEMBERS), np.zeros(MEMBERS)
        self._clock = np.array([0, -1])
        self._rho, self._first, self._random = rho, first, random
        self._make_room()

    def _make_room(self) -> None:
        rooms = np.empty_like(self._means), np.empty_like(self._means)
        self._desk = rooms, (np.empty(MEMBERS), np.empty(MEMBERS), np.empty(MEMBERS))

    @property
    def _state(self) -> tuple[object, object, object]:
        return (self._means, self._roots, self._scales, self._logs), self._fit, self._clock

    @property
    def _best(self) -> int:
        return int(np.argmax(self._logs)) if self._clock[1] < 0 else int(self._clock[1])

    @property
    def settled(self) -> bool:
        """Whether the scale has been fitted."""
        return bool(self._clock[1] >= 0)

    @property
    def scale(self) -> float:
        """The deviation of the noise, as far as it is known."""
        return float(self._scales[self._best])

    @property
    def mean(self) -> Floats:
        """The best member's mean."""
        mean: Floats = self._means[self._best]
        return mean

    @property
    def root(self) -> Floats:
        """The best member's root of the covariance."""
        root: Floats = self._roots[self._best]
        return root

    def answer(self, x: Floats) -> float:
        """What the members with a say predict on average, without the noise's own shift."""
        centre, aside = self._blend(x)
        return centre - aside

    def threshold(self, x: Floats) -> float:
        """The prediction, moved a little once in a while."""
        from casemate.solve.one_bit.kalman_bank_kernel import offset

        centre, _ = self._blend(x)
        chance = self._random.random()
        return centre + float(offset(self._state, self._desk, chance))

    def deviation(self, x: Floats) -> float:
        """How sure the best member is of w . q."""
        return float(np.linalg.norm(self.root[self._first :].T @ x[self._first :]))

    def learn(self, x: Floats, threshold: float, above: bool) -> None:
        """Let every member learn, and weigh them."""
        from casemate.solve.one_bit.kalman_bank_kernel import take

        centre, _ = self._blend(x)
        take(self._state, self._desk, self._rho, (threshold, threshold - centre), above)

    def _blend(self, x: Floats) -> tuple[float, float]:
        from casemate.solve.one_bit.kalman_bank_kernel import blend, look

        look(self._state, self._desk, x, self._first)
        centre, aside = blend(self._state, self._desk)
        return float(centre), float(aside)

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        self._means, self._roots = widened(self._means, self._roots, mean, root)
        self._make_room()

    def chances(self, count: int) -> Floats:
        """Even numbers, one for each query: they move thresholds."""
        return self._random.random(count)

    @property
    def slope(self) -> tuple[float, float]:
        """What the best member has measured of the noise's cdf at 0: rise and run."""
        return float(self._fit[0][self._best]), float(self._fit[1][self._best])

    def follow(self, columns: Floats, noisy: Floats) -> Trail:
        """A whole stream, compiled."""
        trail = empty_trail(len(columns))
        self.run((columns, noisy, self.chances(len(columns))), trail, halt=False)
        return trail

    def run(self, stream: tuple[Floats, Floats, Floats], trail: Trail, *, halt: bool) -> int:
        """Answer a stream, or its head until the scale is fitted; how many were answered."""
        from casemate.solve.one_bit.kalman_bank_kernel import run_bank

        said = trail.answers, trail.thresholds, trail.above
        model = self._rho, self._first, halt
        return int(run_bank(self._state, self._desk, model, stream, said))
