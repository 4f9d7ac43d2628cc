"""Interrupts wait for a pause of compiled code."""

import signal
import threading
from types import FrameType

import pytest

from casemate.track.simulate.pace import HeldInterrupts

pytestmark = pytest.mark.usefixtures("interruptible")


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


def test_a_run_without_one_goes_through() -> None:
    passed: list[str] = []
    go("pause", "pause", passed=passed)
    assert passed == ["pause", "pause"]


def test_an_error_goes_first_and_afterwards_interrupts_are_what_they_were() -> None:
    with pytest.raises(ValueError, match="something else"):
        go("interrupt", "something else", passed=[])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_one_raised_at_a_pause_is_not_raised_again() -> None:
    with HeldInterrupts() as interrupts:
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            interrupts.release()
        interrupts.release()


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
