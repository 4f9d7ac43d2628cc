"""Progress and interrupts of simulations."""

import signal
from collections.abc import Iterator

import pytest
from numpy.random import Generator

from casemate.track.modes import MODES
from casemate.track.setting import Setting
from casemate.track.simulate import runs as simulation
from casemate.track.simulate.adversary import Seen
from casemate.track.simulate.runs import simulate

SMALL = Setting(8, 0.1, 0.1, 5_000)
pytestmark = pytest.mark.usefixtures("interruptible")


class Alternating:
    """Two sites in turn."""

    def __init__(self, _sites: int, _rng: Generator) -> None:
        self._sites = iter(_turns())

    def next_site(self, _seen: Seen) -> int:
        return next(self._sites)


def _turns() -> Iterator[int]:
    while True:
        yield from (0, 1)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are short here, and so are their pieces."""
    monkeypatch.setattr(simulation, "EVERY", 301)
    monkeypatch.setattr(simulation, "_EVERY_PLAIN", 301)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("mode", MODES)
def test_the_parts_of_a_run_add_up_to_one(mode: str) -> None:
    parts: list[float] = []
    simulate(SMALL, mode, runs=2, seed=1, advance=parts.append)
    assert len(parts) >= 34 and all(0 <= part <= 301 / 5_000 for part in parts)
    assert sum(parts) == pytest.approx(2)


@pytest.mark.usefixtures("often")
def test_so_do_those_of_a_run_against_an_adversary_of_yours() -> None:
    parts: list[float] = []
    simulate(SMALL, "deterministic", Alternating, seed=1, advance=parts.append)
    assert len(parts) == 17 and sum(parts) == pytest.approx(1)


def test_a_short_run_is_done_in_one_part() -> None:
    parts: list[float] = []
    simulate(SMALL, "sampled", runs=3, advance=parts.append)
    assert parts == [1.0, 1.0, 1.0]


class InterruptAt:
    """Somebody who interrupts when so many runs, and a part of one, are done."""

    def __init__(self, runs: float) -> None:
        self.runs, self.done = runs, 0.0

    def __call__(self, part: float) -> None:
        self.done += part
        if self.done >= self.runs:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_within_a_run_loses_that_run_only(mode: str) -> None:
    interrupt = InterruptAt(2.5)
    found = simulate(SMALL, mode, runs=1_000, seed=1, advance=interrupt)
    assert 2.5 <= interrupt.done < 2.6
    assert not found.finished
    assert found.runs == simulate(SMALL, mode, runs=2, seed=1).runs


@pytest.mark.usefixtures("often")
def test_an_interrupt_within_the_first_run_leaves_nothing() -> None:
    with pytest.raises(KeyboardInterrupt):
        simulate(SMALL, "auto", runs=2, advance=InterruptAt(0.5))
