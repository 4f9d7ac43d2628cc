"""The demonstration: what it claims is computed, and true."""

import json
from fractions import Fraction

import pytest

from casemate.cli import demo
from casemate.cli.main import ended


@pytest.fixture(scope="module")
def shown() -> demo.DemoFindings:
    """One walk, looked at from several sides."""
    return demo.run()


def test_three_sums_expose_record_2_exactly(shown: demo.DemoFindings) -> None:
    assert [each.answer for each in shown.sums] == [
        Fraction("32.1"),
        Fraction("15.5"),
        Fraction("11.4"),
    ]
    assert [each.records for each in shown.sums] == [6, 3, 2]
    assert (shown.record, shown.value) == (2, Fraction("5.2"))
    assert (shown.combination, shown.certificate) == ((1, -1, -1), "query 1 - query 2 - query 3")


def test_without_the_smallest_sum_nobody_is_exposed(shown: demo.DemoFindings) -> None:
    assert (shown.left_out, shown.repaired) == ((3,), "none-exposed")


def test_the_noisy_sums_are_charged_in_full(shown: demo.DemoFindings) -> None:
    assert shown.spent.startswith("spent epsilon 1 of 1 at delta 0")


def test_two_runs_differ_only_in_their_noise(shown: demo.DemoFindings) -> None:
    first, second = shown, demo.run()
    assert [each.answer for each in first.sums] == [each.answer for each in second.sums]
    assert first.half_width == second.half_width == 90


def test_the_same_sums_over_many_people_expose_one_man_and_privately_say_nothing_of_him(
    shown: demo.DemoFindings,
) -> None:
    cure = shown.cure
    assert (cure.record, cure.certificate) == ("4171", "query 1 - query 2 - query 3")
    low, high = cure.about_one
    assert low < -1000 and high > 1000  # he can have 0 to 40
    assert [each.source for each in cure.measured] == ["measured"] * 3
    assert {each.source for each in cure.free} == {"surrogate"}
    assert all(each.lo <= each.value <= each.hi for each in (*cure.measured, *cure.free))
    assert 0.7 < cure.left < cure.budget == 1


def test_it_prints_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "record 2: blood sugar 5.2 = query 1 - query 2 - query 3" in printed
    assert ended(["demo", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["schema"], shown["record"], shown["value"]) == ("casemate.demo/1", 2, 5.2)
