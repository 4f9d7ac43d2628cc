"""The page of an attack through yes/no answers: well-formed, escaped, and nothing revealed."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from attack.one_bits import found
from rendered import forms, sections, words

from casemate.attack.one_bit.report import one_bit_report

_text, _fields, as_html = forms(one_bit_report)


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)


def test_every_finding_has_its_section() -> None:
    assert sections(as_html(found())) == [
        "error",
        "certainty",
        "defence",
        "assumptions",
    ]


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


def test_one_query_or_an_interrupt_is_a_page_too() -> None:
    assert sections(as_html(found(queries=1))) == [
        "error",
        "certainty",
        "defence",
        "assumptions",
    ]
    assert "Interrupted: this is the best so far." in words(
        as_html(replace(found(), finished=False))
    )
