import math
from typing import Any

import numpy as np
import pytest

from casemate.errors import Misconfigured
from casemate.track.modes import make_engine
from casemate.track.protocols.windows import centred_rule, paper_rule
from casemate.track.setting import MOST_COUNTED, MOST_ITEMS, Setting
from casemate.track.simulate.adversary import named_adversary
from casemate.track.simulate.compiled_run import run_compiled


@pytest.mark.parametrize(
    "wrong",
    [
        *[(sites, 0.1, 0.1, 1) for sites in (0, -3, 2.5, "2", None, True, math.nan)],
        *[(1, alpha, 0.1, 1) for alpha in (1.0, 0.0, -0.1, "0.1", None, math.nan, math.inf)],
        *[(1, 0.1, delta, 1) for delta in (0.0, 1.0, "0.1", None, math.nan)],
        *[(1, 0.1, 0.1, items) for items in (0, "9", None, math.inf, math.nan, 1.5, 10**400)],
    ],
)
def test_a_setting_without_sense_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(Misconfigured):
        Setting(*wrong)


@pytest.mark.parametrize("items", [1, 1e8, np.int64(7), MOST_COUNTED])
def test_whole_numbers_of_every_kind_are_taken(items: Any) -> None:
    assert Setting(3, 0.1, 0.1, items).items == items


@pytest.mark.parametrize(
    "mode",
    ["auto", "deterministic", "deterministic-paper", "allocated", "robust-tuned"],
)
def test_more_items_than_the_windows_of_a_simulation_can_count_are_refused(mode: str) -> None:
    one, two = np.random.default_rng(0).spawn(2)
    setting = Setting(2, 0.1, items=MOST_ITEMS + 1)
    with pytest.raises(Misconfigured, match="goes up to 4,294,967,296 items"):
        run_compiled(
            setting, make_engine(mode, setting), named_adversary("single-site", 2), (one, two)
        )


@pytest.mark.parametrize("alpha", [1e-9, 0.01, 0.999999])
def test_no_window_of_the_most_items_at_one_site_overflows(alpha: float) -> None:
    for rule in (centred_rule(alpha), paper_rule(alpha)):
        assert MOST_ITEMS * rule.numerator < 1 << 63
