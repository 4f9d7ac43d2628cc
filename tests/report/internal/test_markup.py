"""Text becomes markup only escaped."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from casemate.report.plots import Markup, escape, join, tag
from casemate.report.plots.plot import NOT_IN_XML

ANYTHING = st.text(st.characters())


def test_text_is_escaped_once() -> None:
    assert escape("<script>") == "&lt;script&gt;"
    assert escape(escape("<script>")) == "&lt;script&gt;"
    assert tag("p", "a & b", tag("b", "<c>")) == "<p>a &amp; b<b>&lt;c&gt;</b></p>"


def test_attributes_are_named_as_in_html() -> None:
    shown = tag("text", "t", class_="x", text_anchor="end", viewBox="0 0", id=None)
    assert shown == '<text class="x" text-anchor="end" viewBox="0 0">t</text>'
    assert tag("meta", name="a", charset="utf-8") == '<meta name="a" charset="utf-8"/>'
    assert tag("ul") == "<ul></ul>"


def test_coordinates_have_two_decimals_and_numbers_in_the_text_have_all() -> None:
    assert tag("line", x1=1 / 3, x2=-1e-9, y1=1234.5, y2=2) == (
        '<line x1="0.33" x2="0" y1="1234.5" y2="2"></line>'
    )
    assert tag("td", 0.1234567) == "<td>0.1234567</td>"


def test_parts_are_joined_and_escaped() -> None:
    assert join(["<", Markup("<b/>")], " & ") == "&lt; &amp; <b/>"


def test_what_no_page_can_hold_is_replaced() -> None:
    assert escape("a\x00b\x1bc\ud800d\uffff") == "a\ufffdb\ufffdc\ufffdd\ufffd"


@given(ANYTHING, ANYTHING)
def test_any_text_survives_a_parser_unchanged(content: str, value: str) -> None:
    element = ET.fromstring(tag("p", content, title=value))
    assert element.text == (_as_xml_reads(content) or None)
    assert len(element) == 0 and list(element.attrib) == ["title"]


def _as_xml_reads(text: str) -> str:
    """A parser turns every end of a line into one kind; what XML cannot hold is replaced."""
    kept = NOT_IN_XML.sub("\ufffd", text)
    return kept.replace("\r\n", "\n").replace("\r", "\n")
