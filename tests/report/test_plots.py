"""Plots: scales with round names, drawings that stay inside their area, text only ever escaped."""

import math
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
    Scale,
    Tone,
    escape,
    join,
    tag,
)
from casemate.report.plots.plot import NOT_IN_XML

PLOT = Plot(LinearScale(0, 10), LinearScale(0, 100))
HOSTILE = "<script>alert(\"x\")</script> & 'y'"
ANYTHING = st.text(st.characters())
FINITE = st.floats(1e-6, 1e9)


# Markup -----------------------------------------------------------------------------------------


def test_text_is_escaped_once_and_attributes_are_named_as_in_html() -> None:
    assert escape("<script>") == escape(escape("<script>")) == "&lt;script&gt;"
    assert escape("a\x00b\x1bc\ud800d\uffff") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert join(["<", Markup("<b/>")], " & ") == "&lt; &amp; <b/>"
    assert tag("p", "a & b", tag("b", "<c>")) == "<p>a &amp; b<b>&lt;c&gt;</b></p>"
    shown = tag("text", "t", class_="x", text_anchor="end", viewBox="0 0", id=None)
    assert shown == '<text class="x" text-anchor="end" viewBox="0 0">t</text>'
    assert tag("meta", name="a", charset="utf-8") == '<meta name="a" charset="utf-8"/>'
    assert tag("ul") == "<ul></ul>"


def test_coordinates_have_two_decimals_and_numbers_in_the_text_have_all() -> None:
    assert tag("line", x1=1 / 3, x2=-1e-9, y1=1234.5, y2=2) == (
        '<line x1="0.33" x2="0" y1="1234.5" y2="2"></line>'
    )
    assert tag("td", 0.1234567) == "<td>0.1234567</td>"


@given(ANYTHING, ANYTHING)
def test_any_text_survives_a_parser_unchanged(content: str, value: str) -> None:
    element = ET.fromstring(tag("p", content, title=value))
    assert element.text == (_as_xml_reads(content) or None)
    assert len(element) == 0 and list(element.attrib) == ["title"]


def _as_xml_reads(text: str) -> str:
    """A parser turns every end of a line into one kind; what XML cannot hold is replaced."""
    kept = NOT_IN_XML.sub("\ufffd", text)
    return kept.replace("\r\n", "\n").replace("\r", "\n")


# Scales -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "named"),
    [
        (LinearScale(0, 20), "0 5 10 15 20"),
        (LinearScale(0, 1), "0 0.2 0.4 0.6 0.8 1"),
        (LinearScale(-1, 1), "-1 -0.5 0 0.5 1"),
        (LinearScale(0, 20_000), "0 5,000 10,000 15,000 20,000"),
        (Logarithmic(1, 10_000), "1 10 100 1,000 10,000"),
        (Logarithmic(0.01, 10), "0.01 0.1 1 10"),
        (Logarithmic(1e-9, 1e9), "10⁻⁹ 10⁻⁶ 0.001 1 1,000 10⁶ 10⁹"),
        (Logarithmic(1, 10), "1 2 5 10"),  # a short one names more
        (Logarithmic(3, 40), "5 10 20"),
        (Bands(("a", "b", "c", "d")), "a b c d"),
    ],
)
def test_a_scale_names_round_values(scale: Scale, named: str) -> None:
    assert " ".join(tick.label for tick in scale.ticks()) == named


def test_a_value_has_its_share_of_an_axis() -> None:
    bands = Bands(("a", "b", "c", "d"))
    assert [bands.share(tick.value) for tick in bands.ticks()] == [0.125, 0.375, 0.625, 0.875]
    assert LinearScale(10, 20).share(15) == 0.5
    assert Logarithmic(1, 100).share(10) == pytest.approx(0.5)
    assert [LinearScale.over(each).high for each in ([], [0], [7, 93])] == [1, 1, 100]


@given(FINITE, FINITE)
def test_named_values_lie_on_the_axis_and_are_few(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if high <= low * (1 + 1e-6):
        return
    for scale in (LinearScale(low, high), Logarithmic(low, high), LinearScale.over([high])):
        shares = [scale.share(tick.value) for tick in scale.ticks()]
        assert shares == sorted(shares) and len(shares) <= 9
        assert all(-1e-6 <= share <= 1 + 1e-6 for share in shares)


@given(st.lists(FINITE, min_size=1))
def test_a_scale_over_values_holds_them(values: list[float]) -> None:
    scale = LinearScale.over(values)
    assert scale.share(max(values)) <= 1 + 1e-9
    assert scale.share(max(values)) >= 0.5 or math.isclose(scale.high, 1)


def test_a_scale_without_room_is_refused() -> None:
    for low, high in ((1, 1), (2, 1), (math.nan, 1)):
        with pytest.raises(ValueError, match="low < high"):
            LinearScale(low, high)
    for low, high in ((0, 1), (-1, 1), (2, 1)):
        with pytest.raises(ValueError, match="0 < low < high"):
            Logarithmic(low, high)


# Drawings ---------------------------------------------------------------------------------------


def drawn(*marks: Markup, plot: Plot = PLOT) -> ET.Element:
    return ET.fromstring(plot.draw("p", "a title", "what it shows", *marks))


def circles(root: ET.Element) -> list[tuple[float, float]]:
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in root.iter("circle")]


def test_a_drawing_is_named_for_a_screen_reader_as_are_its_axes() -> None:
    root = drawn(PLOT.axes("time", "share"))
    assert root.attrib["role"] == "img"
    labels = root.attrib["aria-labelledby"].split()
    told = {each.attrib["id"]: each.text for each in root if "id" in each.attrib}
    assert [told[label] for label in labels] == ["a title", "what it shows"]
    texts = {each.text for each in root.iter("text")}
    assert {"time", "share", "0", "100", "10"} <= texts


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


def test_a_matrix_marks_where_rows_and_columns_meet_and_cuts_long_names() -> None:
    matrix = Matrix(("a", "n" * 100), ("x", "y", "z"))
    marks = [Mark(0, 2, Tone.SOFT, "a meets z"), Mark(1, 0, Tone.STRONG, "n meets x")]
    root = ET.fromstring(matrix.draw("m", "t", "d", marks))
    (soft, strong) = root.iter("circle")
    assert float(soft.attrib["cx"]) - float(strong.attrib["cx"]) == pytest.approx(2 * matrix.cell)
    assert float(strong.attrib["cy"]) - float(soft.attrib["cy"]) == pytest.approx(matrix.cell)
    assert float(strong.attrib["r"]) > float(soft.attrib["r"])  # not by colour alone
    assert [each.findtext("title") for each in (soft, strong)] == ["a meets z", "n meets x"]
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
