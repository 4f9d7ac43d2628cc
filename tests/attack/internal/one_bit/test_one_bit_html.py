"""The page of an attack through yes/no answers: well-formed, escaped, and nothing revealed."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from attack.one_bits import HOSTILE, found

from casemate.attack.one_bit.report import as_html


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)


def words(page: str) -> str:
    return " ".join("".join(parsed(page).itertext()).split())


def sections(page: str) -> list[str]:
    return [each.attrib["id"] for each in parsed(page).iter("section")]


def test_every_finding_has_its_section() -> None:
    assert sections(as_html(found())) == ["error", "defence", "assumptions"]
    assert sections(as_html(found(), reveal=True)) == ["error", "defence", "values", "assumptions"]


def test_error_limit_and_one_half_are_drawn_on_logarithmic_axes() -> None:
    page = as_html(found())
    curves = [each.attrib["class"] for each in parsed(page).iter("polyline")]
    assert curves == ["curve soft", "curve other", "curve plain"]
    labels = [each.text for each in parsed(page).iter("text")]
    assert {"1", "10", "100", "1,000", "queries"} <= set(labels)
    errors, limits = (
        each.attrib["points"].split()
        for each in parsed(page).iter("polyline")
        if each.attrib["class"] != "curve soft"
    )
    assert len(errors) == len(limits) == len(found().curve)


def test_the_defence_is_on_the_page() -> None:
    told = words(as_html(found("uniform:200")))
    assert "Bounded noise is a gift to the attacker" in told
    assert "A bit is as good as an answer" in told


def test_without_reveal_no_value_is_written() -> None:
    hidden, shown = words(as_html(found())), words(as_html(found(), reveal=True))
    assert "No values are written" in hidden and "id = 3" not in hidden
    values = [f"{each.value:.6g}" for each in found().values]
    assert all(each in shown and each not in hidden for each in values)


def test_a_hostile_column_is_escaped() -> None:
    page = as_html(found(column=HOSTILE), reveal=True)
    assert "<script>" not in page and HOSTILE in "".join(parsed(page).itertext())


def test_one_query_or_an_interrupt_is_a_page_too() -> None:
    assert sections(as_html(found(queries=1))) == ["defence", "assumptions"]
    assert "The work was interrupted" in words(as_html(replace(found(), finished=False)))
