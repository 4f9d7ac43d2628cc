"""Pages are self-contained, well-formed, and count what they leave out."""

import xml.etree.ElementTree as ET

from casemate.report import Markup, facts, figure, listing, page, paragraph, section, table

ROWS = [[f"row {i}", i] for i in range(1, 8)]


def parsed(text: Markup) -> ET.Element:
    return ET.fromstring(f"<div>{text}</div>")


def at(root: ET.Element, path: str) -> ET.Element:
    found = root.find(path)
    assert found is not None
    return found


def test_a_page_is_well_formed_and_loads_nothing() -> None:
    text = page("kind", "Head <line>", paragraph("intro"), [section("s", "A section", "text")])
    assert text.startswith("<!DOCTYPE html>\n")
    root = ET.fromstring(text)
    assert root.attrib["lang"] == "en" and root.find("body/main/section/h2") is not None
    assert root.findtext("body/main/header/h1") == "Head <line>"
    assert not any(part in text for part in ("://", "<script", "@import", "url("))
    assert "default-src 'none'" in at(root, "head/meta[@http-equiv]").attrib["content"]


def test_the_style_is_for_light_dark_and_paper() -> None:
    style = ET.fromstring(page("k", "h", "", [])).findtext("head/style") or ""
    assert "prefers-color-scheme: dark" in style and "@media print" in style
    assert style.count("{") == style.count("}")


def test_a_table_has_a_caption_and_headers_with_scopes() -> None:
    root = parsed(table("seven rows", ["name", "number"], ROWS))
    assert root.findtext(".//caption") == "seven rows"
    assert [each.attrib["scope"] for each in root.findall(".//th")] == ["col"] * 2 + ["row"] * 7
    assert at(root, "div").attrib["aria-label"] == "seven rows"


def test_what_does_not_fit_in_a_table_is_counted() -> None:
    root = parsed(table("c", ["name", "number"], ROWS, most=3))
    assert len(root.findall(".//tbody/tr")) == 3
    assert "and 4 more" in (root.findtext("p") or "")
    assert parsed(table("c", ["name", "number"], ROWS, most=7)).find("p") is None


def test_links_lead_to_rows() -> None:
    root = parsed(table("c", ["name", "number"], ROWS[:2], identities=["a-1", "a-2"]))
    assert [each.attrib["id"] for each in root.findall(".//tbody/tr")] == ["a-1", "a-2"]


def test_small_things_are_what_they_seem() -> None:
    assert parsed(facts([("people", "7")])).findtext("dl/div/dd") == "7"
    assert parsed(listing(["<a>", "b"])).findtext("ul/li") == "<a>"
    assert parsed(figure(Markup("<svg/>"), "caption")).findtext("figure/figcaption") == "caption"
