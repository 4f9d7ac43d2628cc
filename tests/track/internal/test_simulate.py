"""Simulations: compiled runs are the plain ones, with progress and interrupts."""

import signal
import threading
from types import FrameType

import numpy as np
import pytest
from oracles.scripted_adversaries import as_adversary

from casemate.errors import Misconfigured
from casemate.track.modes import MODES, make_engine
from casemate.track.setting import MOST_ITEMS, Run, Setting
from casemate.track.simulate import runs as simulation
from casemate.track.simulate.adversary import CompiledAdversary, named_adversary
from casemate.track.simulate.compiled_run import UNWATCHED, HeldInterrupts, Pace, run_compiled
from casemate.track.simulate.runs import run_plain, simulate

SMALL = Setting(8, 0.1, 0.1, 5_000)
pytestmark = pytest.mark.usefixtures("interruptible")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are short here, and so are their pieces."""
    monkeypatch.setattr(simulation, "PAUSE_ITEMS", 301)
    monkeypatch.setattr(simulation, "_PLAIN_PAUSE_ITEMS", 301)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("mode", MODES)
def test_the_parts_of_a_run_add_up_to_one(mode: str) -> None:
    parts: list[float] = []
    simulate(SMALL, mode, runs=2, seed=1, advance=parts.append)
    assert len(parts) >= 34 and all(0 <= part <= 301 / 5_000 for part in parts)
    assert sum(parts) == pytest.approx(2)


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


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def go(*steps: str, passed: list[str]) -> None:
    """A compiled run in which these things happen, one after the other."""
    with HeldInterrupts() as interrupts:
        for step in steps:
            match step:
                case "interrupt":
                    interrupt()
                case "pause":
                    interrupts.release()
                case _:
                    raise ValueError(step)
            passed.append(step)


@pytest.mark.parametrize(
    ("steps", "until"),
    [
        (("pause", "interrupt", "pause"), ["pause", "interrupt"]),
        (("interrupt",), ["interrupt"]),
        (("interrupt", "interrupt"), ["interrupt"]),
    ],
    ids=["at the next pause and not before", "or at the end", "or when a second one comes"],
)
def test_an_interrupt_is_raised(steps: tuple[str, ...], until: list[str]) -> None:
    passed: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        go(*steps, passed=passed)
    assert passed == until


def test_an_error_goes_first_and_afterwards_interrupts_are_what_they_were() -> None:
    with pytest.raises(ValueError, match="something else"):
        go("interrupt", "something else", passed=[])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_whoever_takes_interrupts_already_goes_on_taking_them() -> None:
    came: list[int] = []

    def take(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, take)
    try:
        with HeldInterrupts():
            interrupt()
            assert came == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is take
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_there_is_nothing_to_hold() -> None:
    done: list[bool] = []

    def work() -> None:
        with HeldInterrupts() as interrupts:
            interrupts.release()
            done.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


ADVERSARIES = ("uniform", "zipf:1.5", "single-site", "stop-on-change", "group-hold-or-flush")
SHORT = (Setting(5, 0.1, 0.1, 700), Setting(1, 0.3, 0.1, 200), Setting(16, 0.4, 0.05, 2_500))


def plain(mode: str, setting: Setting, adversary: str, seed: int) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    engine = make_engine(mode, setting, three.random)
    chosen = as_adversary(named_adversary(adversary, setting.sites), one)
    return run_plain(setting, engine, chosen, two.random)


def fast(
    mode: str, setting: Setting, against: str | CompiledAdversary, seed: int, pace: Pace = UNWATCHED
) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    engine = make_engine(mode, setting, three.random)
    if isinstance(against, str):
        against = named_adversary(against, setting.sites)
    return run_compiled(setting, engine, against, (one, two), pace)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_compiled_run_is_the_plain_one_and_so_is_one_that_pauses(
    mode: str, adversary: str, seed: int
) -> None:
    for setting, every in zip(SHORT, (7, 1, 301), strict=True):
        told: list[int] = []
        run = fast(mode, setting, adversary, seed, Pace(told.append, every))
        assert run == fast(mode, setting, adversary, seed) == plain(mode, setting, adversary, seed)
        pauses = [*range(every, setting.items, every), setting.items]
        assert told == sorted(told) and sorted(set(told)) == pauses


@pytest.mark.parametrize(("sites", "adversary"), [(512, "uniform"), (600, "zipf")])
def test_a_run_in_which_all_sites_or_the_light_ones_are_sampled_is_the_plain_one(
    sites: int, adversary: str, seed: int
) -> None:
    setting = Setting(sites, 0.05 if adversary == "uniform" else 0.1, 0.2, 30_000)
    run = fast("auto", setting, adversary, seed)
    assert run == plain("auto", setting, adversary, seed)
    if adversary == "uniform":
        assert run.rounds > 1
    else:
        assert run.rounds == 0 and run.words_by_kind["answer"] > sites  # called again and again


@pytest.mark.parametrize("mode", ["auto", "deterministic", "allocated"])
def test_more_items_than_the_windows_of_a_simulation_can_count_are_refused(mode: str) -> None:
    with pytest.raises(Misconfigured, match="goes up to 4,294,967,296 items"):
        fast(mode, Setting(2, 0.1, items=MOST_ITEMS + 1), "single-site", 0)
