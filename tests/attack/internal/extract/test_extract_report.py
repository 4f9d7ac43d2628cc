"""An extraction as text and as JSON."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache

import numpy as np
from attack.small_classifiers import Asked, parabola
from rendered import forms, sections

from casemate.attack.extract import extract
from casemate.attack.extract.extraction import Extracted
from casemate.attack.extract.report import curve, extraction_report

as_text, as_json, as_html = forms(extraction_report)


@cache
def found(noise: float = 0.0, flips: float = 0.0, dimension: int = 3) -> Extracted:
    target = Asked.drawn(dimension, 1, noise, flips)
    return extract(target, dimension, truth=target.truth, random=np.random.default_rng(1))


def test_the_text_says_what_was_found_and_how() -> None:
    text = as_text(found())
    assert text.startswith("the boundary within an angle of ")
    assert "label True where weights . point + intercept > 0, label False elsewhere" in text
    assert "learner lowd-meek; labels without noise" in text
    assert "foretells the labels of 100.0 % of" in text
    assert "\nweights    " in text and "\nintercept  " in text


def test_noise_is_told_in_words() -> None:
    assert "noise of deviation 0." in as_text(found(0.3))
    assert "% of labels flipped anywhere" in as_text(found(0.0, 0.2))


def test_without_a_truth_no_angle_is_claimed() -> None:
    here = replace(found(), truth=None)
    assert as_text(here).startswith("a boundary in 3 dimensions from ")
    fields = as_json(here)
    assert fields["angle"] is None and fields["offset"] is None
    assert fields["history"][-1]["angle"] == 0  # to itself
    page = as_html(here)
    assert "what was found at the end" in page and "true weight" not in page


def test_a_classifier_that_is_not_linear_is_said_to_be_none() -> None:
    curved = extract(parabola, 2, random=np.random.default_rng(1))
    text = as_text(curved)
    assert text.startswith("no flat boundary explains ") and "is not linear" in text
    assert as_json(curved)["linear"] is False and "% of" in text


def test_an_interrupted_one_says_so() -> None:
    stopped = replace(found(), finished=False, checked=None)
    assert "interrupted: this is the best so far" in as_text(stopped)
    fields = as_json(stopped)
    assert not fields["finished"] and fields["fresh"] == 0
    assert fields["agreement"] is None and fields["linear"] is None


def test_the_object_is_json_with_every_field() -> None:
    fields = json.loads(json.dumps(as_json(found()), allow_nan=False))
    assert " ".join(fields) == (
        "schema dimension bounds learner queries angle offset weights intercept labels noise flips "
        "agreement fresh linear history finished seconds"
    )
    assert fields["schema"] == "casemate.extract/1" and len(fields["weights"]) == 3


def test_a_long_history_is_thinned_and_keeps_its_end() -> None:
    here = found()
    long = replace(here, history=here.history * 200)
    points = curve(long, most=50)
    assert len(points) <= 51 and points[-1] == curve(here)[-1]


@cache
def hostile() -> Extracted:
    target = Asked.drawn(3, 1)
    return extract(
        lambda points: np.where(target(points), "<b>yes</b>", "<b>no</b>"),
        3,
        truth=target.truth.opposite(),
        random=np.random.default_rng(1),
    )


def test_the_page_draws_the_angle_against_the_queries() -> None:
    root = ET.fromstring(as_html(hostile()))
    (drawing,) = root.findall(".//section[@id='progress']//svg")
    (line,) = drawing.iter("polyline")
    places = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert len(places) > 10 and places[0][1] < places[-1][1], "the angle falls to the right"
    names = [each.text for each in drawing.iter("text")]
    assert "queries" in names and "angle, in radians" in names


def test_labels_are_escaped_and_true_weights_stand_beside_those_found_with_the_same_sign() -> None:
    page = as_html(hostile())
    assert sections(page) == ["progress", "weights", "defences"]
    assert "<b>" not in page and "&lt;b&gt;yes&lt;/b&gt;" in page
    for row in ET.fromstring(page).findall(".//section[@id='weights']//tbody/tr"):
        ours, true = (float(cell.text or "") for cell in row.findall("td"))
        assert abs(ours - true) < 1e-4
