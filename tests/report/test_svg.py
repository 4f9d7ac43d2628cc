"""Drawings are well-formed, readable aloud, and stay inside their area."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.report.plots import (
    Bands,
    Bar,
    LinearScale,
    Logarithmic,
    Mark,
    Markup,
    Matrix,
    Plot,
    Tone,
)

PLOT = Plot(LinearScale(0, 10), LinearScale(0, 100))
HOSTILE = "<script>alert(\"x\")</script> & 'y'"


def drawn(*marks: Markup, plot: Plot = PLOT) -> ET.Element:
    return ET.fromstring(plot.draw("p", "a title", "what it shows", *marks))


def circles(root: ET.Element) -> list[tuple[float, float]]:
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in root.iter("circle")]


def test_a_drawing_has_a_title_and_a_description_for_a_screen_reader() -> None:
    root = drawn()
    assert root.attrib["role"] == "img"
    labels = root.attrib["aria-labelledby"].split()
    told = {each.attrib["id"]: each.text for each in root if "id" in each.attrib}
    assert [told[label] for label in labels] == ["a title", "what it shows"]


def test_points_are_where_the_scales_say() -> None:
    left, right = circles(drawn(PLOT.points([(0, 0), (10, 100)])))
    assert left == (PLOT.margins.left, PLOT.height - PLOT.margins.bottom)
    assert right == (PLOT.width - PLOT.margins.right, PLOT.margins.top)


def test_a_curve_goes_through_its_points_in_order() -> None:
    plot = Plot(Logarithmic(1, 1000), Logarithmic(0.001, 1))
    (line,) = drawn(plot.curve([(1, 1), (10, 0.1), (1000, 0.001)]), plot=plot).iter("polyline")
    places = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(places)]
    assert steps[1] == pytest.approx((2 * steps[0][0], 2 * steps[0][1]), abs=0.5)
    assert "plain" in line.attrib["class"]


def test_bars_are_as_high_as_their_values_and_none_that_counts_is_invisible() -> None:
    plot = Plot(Bands(("a", "b", "c")), LinearScale(0, 1000))
    bars = [Bar(0, 1000, "1,000"), Bar(1, 1, "1", Tone.STRONG), Bar(2, 0, "0")]
    root = drawn(plot.bars(bars), plot=plot)
    heights = [float(each.attrib["height"]) for each in root.iter("rect")]
    assert heights == [plot.height - plot.margins.bottom - plot.margins.top, 1.5, 0]
    assert [each.attrib["class"] for each in root.iter("rect")] == ["plain", "strong", "plain"]
    assert {"1,000", "1", "0"} == {each.text for each in root.iter("text")}


def test_axes_name_both_scales() -> None:
    root = drawn(PLOT.axes("time", "share"))
    texts = [each.text for each in root.iter("text")]
    assert {"time", "share", "0", "100", "10"} <= set(texts)


def test_a_matrix_marks_where_rows_and_columns_meet() -> None:
    matrix = Matrix(("a", "b"), ("x", "y", "z"))
    marks = [Mark(0, 2, Tone.SOFT, "a meets z"), Mark(1, 0, Tone.STRONG, "b meets x")]
    root = ET.fromstring(matrix.draw("m", "t", "d", marks))
    (soft, strong) = root.iter("circle")
    assert float(soft.attrib["cx"]) - float(strong.attrib["cx"]) == pytest.approx(2 * matrix.cell)
    assert float(strong.attrib["cy"]) - float(soft.attrib["cy"]) == pytest.approx(matrix.cell)
    assert float(strong.attrib["r"]) > float(soft.attrib["r"])  # not by colour alone
    assert [each.findtext("title") for each in (soft, strong)] == ["a meets z", "b meets x"]


def test_long_names_of_rows_are_cut() -> None:
    root = ET.fromstring(Matrix(("n" * 100,), ("x",)).draw("m", "t", "d", []))
    assert "n" * 27 + "…" in {each.text for each in root.iter("text")}


def test_hostile_text_stays_text() -> None:
    matrix = Matrix((HOSTILE,), (HOSTILE,))
    text = matrix.draw("m", HOSTILE, HOSTILE, [Mark(0, 0, Tone.SOFT, HOSTILE)])
    assert "<script" not in text
    assert ET.fromstring(text).findtext("title") == HOSTILE


@given(st.integers(0, 30), st.integers(0, 30))
def test_marks_stay_inside_the_matrix(rows: int, columns: int) -> None:
    matrix = Matrix(tuple(map(str, range(rows))), tuple(map(str, range(columns))))
    marks = [Mark(r, c, Tone.STRONG, "") for r in range(rows) for c in range(columns)]
    root = ET.fromstring(matrix.draw("m", "t", "d", marks[:50]))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert all(6 <= x <= width - 6 and 6 <= y <= height - 6 for x, y in circles(root))
