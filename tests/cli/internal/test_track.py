"""The commands `casemate track simulate` and `plan`: their options and objects."""

from typing import get_args

import pytest
from cli.running import Captured, shown, told

from casemate.track.commands import ModeChoice
from casemate.track.modes import MODES
from casemate.track.simulate.adversary import NAMES

SMALL = (
    *("track", "simulate", "--sites", "16", "--alpha", "0.1"),
    *("--items", "20000", "--seed", "1"),
)
PLAN = (
    *("track", "plan", "--sites", "16", "--alpha", "0.2"),
    *("--delta", "0.1", "--horizon", "10000"),
)


def test_runs_are_an_object_and_those_of_a_seed_are_the_same(capsys: Captured) -> None:
    options = (*SMALL, "--mode", "sampled", "--runs", "3")
    fields, again = shown(capsys, *options), shown(capsys, *options)
    assert fields["schema"] == "casemate.track-simulation/1"
    assert (fields["sites"], fields["items"], fields["runs"]) == (16, 20000, 3)
    assert (fields["mode"], fields["adversary"], fields["delta"]) == ("sampled", "uniform", 0.01)
    assert fields["words"] == pytest.approx(sum(fields["words_by_kind"].values()))
    assert 0 < fields["words"] < 20000 and fields["violations"] == 0
    assert 0 < fields["max_error_over_alpha"] <= 1
    assert fields | {"seconds": again["seconds"]} == again


def test_every_mode_can_be_asked_for(capsys: Captured) -> None:
    assert get_args(ModeChoice) == tuple(MODES)
    for mode in get_args(ModeChoice):
        fields = shown(capsys, *SMALL, "--mode", mode)
        assert fields["mode"] == mode and 0 < fields["words"] <= 25000
    assert shown(capsys, *SMALL, "--mode", "exact")["words"] == 20000


def test_every_adversary_can_be_asked_for_and_help_names_it(capsys: Captured) -> None:
    helped = told(capsys, "track", "simulate", "--help")
    assert all(name in helped for name in NAMES)
    for adversary in (*(name for name in NAMES if ":" not in name), "zipf:1.5"):
        fields = shown(capsys, *SMALL, "--mode", "deterministic", "--adversary", adversary)
        assert fields["adversary"] == adversary and fields["max_error_over_alpha"] <= 1


def test_a_plan_is_an_object_with_the_cheapest_first(capsys: Captured) -> None:
    fields = shown(capsys, *PLAN)
    assert fields["schema"] == "casemate.track-plan/1"
    assert (fields["sites"], fields["horizon"], fields["delta"]) == (16, 10000, 0.1)
    words = [each["words"] for each in fields["modes"]]
    assert words == sorted(words) and words[-1] == 10000
    assert {each["mode"] for each in fields["modes"]} == set(MODES)


def test_runs_and_plans_as_text(capsys: Captured) -> None:
    runs = told(capsys, *SMALL, "--mode", "deterministic")
    assert runs.startswith("deterministic against uniform: ")
    assert told(capsys, *PLAN).startswith("mode ")
