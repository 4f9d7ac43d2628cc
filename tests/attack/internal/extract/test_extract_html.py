"""The page of an extraction: well-formed, with the angle drawn against the queries."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
from attack.small_classifiers import Asked

from casemate.attack.extract import extract
from casemate.attack.extract.extraction import Extracted
from casemate.attack.extract.report import as_html


def found() -> Extracted:
    target = Asked.drawn(3, 1)
    return extract(
        lambda points: np.where(target(points), "<b>yes</b>", "<b>no</b>"),
        3,
        truth=target.truth.turned(),
        random=np.random.default_rng(1),
    )


def sections(page: str) -> list[str]:
    return [each.attrib["id"] for each in ET.fromstring(page).iter("section")]


def test_the_page_draws_the_angle_against_the_queries() -> None:
    root = ET.fromstring(as_html(found()))
    (drawing,) = root.findall(".//section[@id='progress']//svg")
    (line,) = drawing.iter("polyline")
    places = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert len(places) > 10 and places[0][1] < places[-1][1], "the angle falls to the right"
    names = [each.text for each in drawing.iter("text")]
    assert "queries" in names and "angle, in radians" in names


def test_every_part_has_its_section_and_labels_are_escaped() -> None:
    page = as_html(found())
    assert sections(page) == ["progress", "weights", "defences"]
    assert "<b>" not in page and "&lt;b&gt;yes&lt;/b&gt;" in page


def test_true_weights_stand_beside_those_found_with_the_same_sign() -> None:
    rows = ET.fromstring(as_html(found())).findall(".//section[@id='weights']//tbody/tr")
    for row in rows:
        ours, true = (float(cell.text or "") for cell in row.findall("td"))
        assert abs(ours - true) < 1e-4


def test_without_a_truth_the_end_is_what_the_angle_is_to() -> None:
    page = as_html(replace(found(), truth=None))
    assert "what was found at the end" in page and "true weight" not in page


def test_one_guess_alone_is_not_drawn() -> None:
    here = found()
    assert sections(as_html(replace(here, history=here.history[:1]))) == ["weights", "defences"]
