"""A watch remembers how a solve went, in bounded space."""

import numpy as np

from casemate.attack.reconstruct.reconstruction import MOST, Watch


def test_a_long_history_is_thinned_and_keeps_its_first_step() -> None:
    watch = Watch()
    for step in range(10 * MOST):
        watch(step, 1 / (1 + step), np.zeros(1))
    assert len(watch.history) <= MOST
    assert watch.history[0] == (0, 1.0)
    assert watch.steps == 10 * MOST - 1
    gaps = np.diff([step for step, _ in watch.history])
    assert len(set(gaps.tolist())) == 1


def test_what_is_noted_is_passed_on() -> None:
    told: list[int] = []
    watch = Watch(lambda steps, *_: told.append(steps))
    watch(3, 0.5, np.zeros(2))
    assert told == [3]
