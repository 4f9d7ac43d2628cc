"""The demonstration: what it claims is computed, and true."""

import pytest
from cli.running import Captured, shown, told

from casemate.cli import demo


@pytest.fixture(scope="module")
def found() -> demo.Fields:
    """One walk, looked at from several sides."""
    return demo.run()


def test_three_sums_expose_record_2_and_without_the_smallest_nobody_is_exposed(
    found: demo.Fields,
) -> None:
    assert [each["answer"] for each in found["queries"]] == [32.1, 15.5, 11.4]
    assert [each["records"] for each in found["queries"]] == [6, 3, 2]
    assert (found["record"], found["value"], found["combination"]) == (2, 5.2, [1, -1, -1])
    assert found["certificate"] == "query 1 - query 2 - query 3"
    assert (found["left_out"], found["repaired"]) == ([3], "none-exposed")
    assert found["spent"].startswith("spent epsilon 1 of 1 at delta 0")


def test_the_same_sums_over_many_people_expose_one_man_and_privately_say_nothing_of_him(
    found: demo.Fields,
) -> None:
    cure = found["cure"]
    assert (cure["record"], cure["certificate"]) == ("4171", "query 1 - query 2 - query 3")
    low, high = demo.about_one(cure)
    assert low < -1000 and high > 1000  # he can have 0 to 40
    assert [each["source"] for each in cure["measured"]] == ["measured"] * 3
    assert {each["source"] for each in cure["free"]} == {"surrogate"}
    numbers = [*cure["measured"], *cure["free"]]
    assert all(each["lo"] <= each["value"] <= each["hi"] for each in numbers)
    assert 0.3 < cure["left"] < cure["budget"] == 1


def test_the_text_and_the_object_are_of_the_same_findings_but_for_the_noise(
    found: demo.Fields, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = shown(capsys, "demo")
    for name in ("schema", "combination", "record", "value", "half_width"):
        assert again[name] == found[name]
    assert (again["schema"], again["half_width"]) == ("casemate.demo/1", 90)
    monkeypatch.setattr(demo, "run", lambda: found)
    printed = told(capsys, "demo")
    assert "record 2: blood sugar 5.2 = query 1 - query 2 - query 3" in printed
    assert "The repair: leave out query 3." in printed
