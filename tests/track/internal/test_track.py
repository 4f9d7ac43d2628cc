"""Simulated trackers and their predicted words, as text and as objects."""

import json

from track.trackings import forecasts, simulation

from casemate.track.modes import BREAKS, MODES
from casemate.track.report import plan_json, plan_text, simulation_json, simulation_text


def test_the_text_of_runs_says_words_errors_and_kinds() -> None:
    assert simulation_text(simulation(0.5, 1.25)) == (
        "sampled against stop-on-change: 1,628 words for 100,000 items at 64 sites "
        "(0.0163 words an item)\n"
        "largest error at any time: 1.250 alpha (alpha = 0.05)\n"
        "runs that ever were off by more: 1 of 2\n"
        "\n"
        "    report           1,500\n"
        "      call              64\n"
        "    answer              64\n"
        "      rule               0\n"
        "\n"
        "2 rounds, 1.2 s"
    )


def test_the_object_of_runs_has_means_the_largest_error_and_the_setting() -> None:
    fields = simulation_json(simulation(0.5, 1.25))
    assert fields == {
        "schema": "casemate.track-simulation/1",
        "mode": "sampled",
        "adversary": "stop-on-change",
        "sites": 64,
        "alpha": 0.05,
        "delta": 0.02,
        "items": 100_000,
        "runs": 2,
        "finished": True,
        "words": 1628.0,
        "words_by_kind": {"report": 1500.0, "call": 64.0, "answer": 64.0, "rule": 0.0},
        "max_error_over_alpha": 1.25,
        "violations": 1,
        "rounds": 1.5,
        "seconds": 1.25,
    }
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields


def test_a_run_that_reaches_alpha_and_does_not_pass_it_is_no_violation() -> None:
    assert simulation_json(simulation(1.0))["violations"] == 0


def test_the_text_of_a_plan_is_a_table_with_the_cheapest_first() -> None:
    lines = plan_text(forecasts()).splitlines()
    assert lines[0].split() == ["mode", "words", "of", "the", "cheapest", "within", "alpha"]
    assert [line.split()[0] for line in lines[1:]] == [each.mode for each in forecasts()]
    assert lines[2].split()[1:3] == ["2,000", "2.00x"]
    assert lines[2].endswith(f"  {BREAKS}")


def test_the_object_of_a_plan_has_every_mode_with_its_promise() -> None:
    fields = plan_json(forecasts())
    modes = fields.pop("modes")
    assert fields == {
        "schema": "casemate.track-plan/1",
        "sites": 64,
        "alpha": 0.05,
        "delta": 0.02,
        "horizon": 100_000,
    }
    assert {each["mode"]: each["promise"] for each in modes} == {
        name: mode.promise for name, mode in MODES.items()
    }
    assert [each["words"] for each in modes] == [1000.0 * (i + 1) for i in range(len(MODES))]
