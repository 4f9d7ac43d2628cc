"""Learning w . q from one bit a query when the noise has an edge: thresholds at the edge.

Source     Source document 000, section 2 (the protocol). Its 1/sqrt(T) is a worst case over noise.
Method     Noise that stops suddenly tells much more at its edge than at its median: a bit there is
           nearly always the same, and the rare other one says that w . q is on one side for
           certain. The belief is normal, in square-root form; each bit is read by Bayes' rule under
           the known law, in closed form for uniform noise and from a table for any other.
           docs/derivations/one_bit_edge.md derives the rate: error of the order (log T) / T.
Guarantee  None that is proved for a right law. Against a wrong one there is a guard: hits at the
           edge are held against their predicted number by a test that cries wolf with probability
           at most `alarm` over the whole stream. After the alarm the belief goes back to what it
           was before the law began to fail, and thresholds go to the median.
Cost       O(d²) a query, O(d² log T) memory for the beliefs to go back to.
"""

import math

import numpy as np

from casemate.solve.one_bit.edge_guard import MOST_BETS, Guard
from casemate.solve.one_bit.edge_reading import SEARCH_RHO
from casemate.solve.one_bit.edge_rule import rule_for
from casemate.solve.one_bit.kalman_bank import ScaleBank
from casemate.solve.one_bit.laws import Law, effective_scale
from casemate.solve.one_bit.protocol import Floats, Trail

WIDER = 64.0
"""The widest scale to begin with after an alarm, as a multiple of that of the law."""


class EdgeKalman:
    """A one-bit filter for noise of a known law, with a guard against a wrong one."""

    def __init__(
        self,
        dimension: int,
        law: Law,
        basis: Floats | None = None,
        *,
        alarm: float = 1e-3,
        random: np.random.Generator | None = None,
    ) -> None:
        self.basis = np.eye(dimension) if basis is None else np.ascontiguousarray(basis, float)
        if self.basis.ndim != 2 or self.basis.shape[1] != dimension:
            raise ValueError(
                f"need a basis of vectors of length {dimension}, got shape {self.basis.shape}"
            )
        self.law, self.rule = law, rule_for(law)
        self.mean, self.root = prior(self.basis)
        self.fallback: ScaleBank | None = None
        self.guard = Guard(alarm)
        self._random = np.random.default_rng() if random is None else random
        self._later = np.random.default_rng(self._random.integers(2**63))
        self._middle = float(law.quantile(0.5))
        self._marks = _marks(self.mean, self.root)

    @property
    def alarmed(self) -> bool:
        """Whether the guard has found the law to be wrong."""
        return self.fallback is not None

    @property
    def at_edge(self) -> bool:
        """Whether the law is still believed."""
        return self.fallback is None

    def answer(self, q: Floats) -> float:
        """The mean of the belief about w . q."""
        x = self.basis @ q
        return float(self.mean @ x) if self.fallback is None else self.fallback.answer(x)

    def threshold(self, q: Floats) -> float:
        """At an edge of the noise, on a side chosen by chance; after an alarm at its median."""
        x = self.basis @ q
        if self.fallback is not None:
            return self.fallback.threshold(x) + self._middle
        deviation = float(np.linalg.norm(self.root.T @ x))
        if deviation == 0:
            return float(self.mean @ x)
        upper = self._random.random() < self.rule.lean(deviation)
        return float(self.mean @ x) + self.rule.offset(deviation, upper)

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Read the bit by the law, after the guard has looked at it."""
        x = self.basis @ q
        if self.fallback is not None:
            self.fallback.learn(x, threshold - self._middle, above)
            return
        pulled = self.root.T @ x
        variance = float(pulled @ pulled)
        if not variance > 0:
            return
        deviation = math.sqrt(variance)
        reading, part, counted = self.rule.read(deviation, threshold - float(self.mean @ x))
        if counted and self._count(reading.chance, above):
            self._fall_back()
            return
        step, shrink = reading.after(above)
        correct((self.mean, self.root), pulled, step, part * shrink)

    def _count(self, chance: float, above: bool) -> bool:
        """Tell the guard; whether it raises the alarm."""
        guard, means, roots = self.guard, *self._marks
        if guard.opens():
            means[guard.bets + 1], roots[guard.bets + 1] = self.mean, self.root
        rare_above = chance < 0.5
        return guard.count(chance if rare_above else 1 - chance, above == rare_above)

    def _fall_back(self) -> None:
        """Go back to the last belief from before the law began to fail, and ask at the median.

        A law with a wrong bound may be wrong in all else, so its scale is not believed either.
        """
        means, roots = self._marks
        place = self.guard.begun()  # one mark earlier than where that bet was opened
        self.fallback = ScaleBank(
            means[place],
            roots[place],
            WIDER * effective_scale(self.law),
            SEARCH_RHO,
            first=0,
            random=self._later,
        )

    def follow(self, coordinates: Floats, noisy: Floats) -> Trail:
        """Answer a whole stream, compiled: queries in the basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        count = len(coordinates)
        trail = Trail(np.empty(count), np.empty(count), np.empty(count, np.bool_))
        held = np.ascontiguousarray(coordinates, float)
        done = 0 if self.fallback is not None else self._advance(held, noisy, trail)
        if self.fallback is not None:
            rest = self.fallback.follow(held[done:], noisy[done:] - self._middle)
            trail.answers[done:], trail.above[done:] = rest.answers, rest.above
            trail.thresholds[done:] = rest.thresholds + self._middle
        return trail

    def _advance(self, coordinates: Floats, noisy: Floats, trail: Trail) -> int:
        """Go on until the alarm; how many queries were answered."""
        from casemate.solve.one_bit.edge_kernel import NO_ALARM, run

        guard = self.guard
        counts = np.array([guard.bets, guard.counted])
        room = np.empty_like(self.mean), np.empty_like(self.mean)
        stream = coordinates, noisy, self._random.random(len(coordinates))
        reached = run(
            ((self.mean, self.root), room),
            self.rule.compiled,
            ((guard.money, counts, guard.alarm), self._marks),
            stream,
            (trail.answers, trail.thresholds, trail.above),
        )
        guard.bets, guard.counted = counts.tolist()
        if reached == NO_ALARM:
            return len(coordinates)
        self._fall_back()
        return int(reached)


def correct(belief: tuple[Floats, Floats], pulled: Floats, step: float, lost: float) -> None:
    """Move the mean and shrink the root along a query, `pulled` being root' x: Potter's form."""
    mean, root = belief
    variance, gain = float(pulled @ pulled), root @ pulled
    mean += step / math.sqrt(variance) * gain
    root -= lost / ((1 + math.sqrt(1 - lost)) * variance) * np.outer(gain, pulled)


def prior(basis: Floats) -> tuple[Floats, Floats]:
    """Before any bit: each coordinate of w even on [0, 1], and a common level of all of them."""
    level = basis.sum(axis=1)
    spread = np.abs(basis).sum(axis=1)
    covariance = (np.diag(spread**2) + np.outer(level, level)) / 12
    return 0.5 * level, np.asarray(np.linalg.cholesky(covariance), np.float64)


def _marks(mean: Floats, root: Floats) -> tuple[Floats, Floats]:
    """Room for the prior and for the belief at each opening of bets."""
    means, roots = np.empty((MOST_BETS + 1, *mean.shape)), np.empty((MOST_BETS + 1, *root.shape))
    means[0], roots[0] = mean, root
    return means, roots
