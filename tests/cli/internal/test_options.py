"""What is refused of options that several commands have."""

from typing import Any

import pytest
from cyclopts import App, CoercionError

from casemate.errors import Misconfigured
from casemate.report.terminal import Whole, check_seconds, check_seed
from casemate.report.terminal.options import Portion


def test_a_seed_is_0_or_above_and_seconds_are_a_length_of_time_if_there_are_any() -> None:
    for seed in (None, 0, 1, 2**64):
        check_seed(seed)
    for seconds in (None, 0.0, 0.5, float("inf")):
        check_seconds(seconds)
    with pytest.raises(Misconfigured, match="--seed -1 is negative; give 0 or a number above"):
        check_seed(-1)
    for wrong in (-0.5, float("-inf"), float("nan")):
        with pytest.raises(Misconfigured, match=r"--seconds .+ is not a time; give 0 for no limit"):
            check_seconds(wrong)


def called(command: str) -> tuple[int, int | None, float]:
    """What a command with these options is called with."""
    app = App(result_action="return_value")

    @app.default
    def command_itself(*, sites: Whole, seed: Whole | None = None, alpha: Portion = 0.5) -> Any:
        return sites, seed, alpha

    found: tuple[int, int | None, float] = app(command, exit_on_error=False, print_error=False)
    return found


def test_numbers_may_be_written_as_people_write_them_and_portions_as_percentages() -> None:
    for written in ("5e4", "50000", "50_000", "5.0e4", "+50000"):
        assert called(f"--sites {written} --seed {written}") == (50_000, 50_000, 0.5)
    for written in ("2%", "0.02", "2e-2"):
        assert called(f"--sites 1 --alpha {written}") == (1, None, 0.02)


@pytest.mark.parametrize("written", ["1.5", "many", "nan", "inf", "1e-3", "1e999999999"])
@pytest.mark.parametrize("option", ["--sites", "--sites 1 --seed"])
def test_what_is_no_whole_number_is_not_rounded_to_one(option: str, written: str) -> None:
    with pytest.raises(CoercionError, match=f'"{written}" is no whole number; write one as 50'):
        called(f"{option} {written}")


@pytest.mark.parametrize("written", ["%", "2%%", "nan", "little"])
def test_what_is_no_number_is_no_portion(written: str) -> None:
    with pytest.raises(CoercionError, match=f'"{written}" is no number; write one as 0.02 or 2%'):
        called(f"--sites 1 --alpha {written}")
