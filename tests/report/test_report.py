"""One report, three forms: text, JSON and a page that is self-contained and well-formed."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest
from rendered import sections, words

from casemate.report import (
    ROWS_ON_PAGE,
    Block,
    Code,
    Drawing,
    Facts,
    Figure,
    LazyRows,
    Link,
    Listing,
    Paragraph,
    Prose,
    Report,
    Section,
    TableBlock,
    Where,
    as_html,
    as_json,
    as_text,
)
from casemate.report.plots import Markup

NUMBERS = [(f"row {i}", f"{i * 500:,}") for i in range(1, 8)]
DRAWN = Figure(lambda: Drawing(Markup("<svg/>"), ("see ", Link("the rows", "rows"))))
EVERYTHING = Report(
    "casemate count",
    "seven <rows> were found",
    lambda: {"schema": "casemate.count/1", "rows": 7},
    [
        Facts([("rows", 7)]),
        Paragraph("this is proved"),
        Paragraph("nothing is shown", remark=True, where=Where.PAGE),
        Paragraph("only here", where=Where.TEXT),
    ],
    [
        Section("drawn", "A figure", [DRAWN]),
        Section(
            "rows",
            "Rows and numbers",
            [TableBlock("seven rows", ("name", "number"), NUMBERS, numeric=(1,), rows_in_text=2)],
        ),
        Section(
            "lines",
            "Lines",
            [
                TableBlock(
                    "lines", ("name", "how"), [("a", Code(Link("x < y", "rows")))], "{}: {}".format
                ),
                Listing(["one thing", "Another."], "- ", rows_in_text=1),
                Facts([("a", "1"), ("long", "2")], where=Where.TEXT),
            ],
            label="",
        ),
        Section("empty", "Nothing", [TableBlock("none", ("name",), []), Listing([])]),
        Section("long", "Too long for a terminal", [Paragraph("long")], where=Where.PAGE),
    ],
)


def at(root: ET.Element, path: str) -> ET.Element:
    found = root.find(path)
    assert found is not None
    return found


def body(*blocks: Block) -> ET.Element:
    page = as_html(Report("c", "h", dict, (), [Section("s", "S", blocks)]))
    return at(ET.fromstring(page), ".//section")


def test_the_text_has_the_headline_first_and_counts_what_it_leaves_out() -> None:
    assert as_text(EVERYTHING).splitlines() == [
        "seven <rows> were found",
        "this is proved",
        "only here",
        "",
        "rows and numbers:",
        "name   number",
        "row 1     500",
        "row 2   1,000",
        "  and 5 more, all of them in the JSON",
        "",
        "  a: x < y",
        "- one thing",
        "  and 1 more, all of them in the JSON",
        "a     1",
        "long  2",
    ]


def test_a_headline_may_be_for_the_page_alone() -> None:
    table = TableBlock("none", ("name", "number"), [], even_empty=True)
    report = Report("c", "h", dict, [table], headline_where=Where.PAGE)
    assert as_text(report) == "name  number" and "<h1>H.</h1>" in as_html(report)


def test_a_page_is_well_formed_loads_nothing_and_follows_the_reader() -> None:
    assert as_json(EVERYTHING) == {"schema": "casemate.count/1", "rows": 7}
    text = as_html(EVERYTHING)
    assert text.startswith("<!DOCTYPE html>\n")
    root = ET.fromstring(text)
    assert root.attrib["lang"] == "en"
    assert root.findtext("body/main/header/h1") == "Seven <rows> were found."
    assert not any(part in text for part in ("://", "<script", "@import", "url("))
    assert "default-src 'none'" in at(root, "head/meta[@http-equiv]").attrib["content"]
    style = root.findtext("head/style") or ""
    assert "prefers-color-scheme: dark" in style and "@media print" in style
    assert style.count("{") == style.count("}")


def test_a_page_has_every_section_with_content_and_clauses_as_sentences() -> None:
    page = as_html(EVERYTHING)
    assert sections(page) == ["drawn", "rows", "lines", "long"]
    assert all(each in words(page) for each in ("This is proved.", "One thing", "Another."))
    assert "only here" not in page and "Another.." not in page
    root = ET.fromstring(page)
    assert root.findtext(".//p[@class='note']") == "Nothing is shown."
    assert root.findtext(".//dl/div/dd") == "7"
    assert [each.attrib["href"] for each in root.iter("a")] == ["#rows", "#rows"]
    assert at(root, ".//td/code/a").text == "x < y"
    assert "".join(at(root, ".//figure/figcaption").itertext()) == "see the rows"


def test_a_table_has_a_caption_headers_with_scopes_rows_to_link_to_and_code_with_its_lines() -> (
    None
):
    rows: list[tuple[Prose, ...]] = [("a", Code("SELECT\n1", lines=True)), ("b", "2")]
    root = body(TableBlock("two rows", ("name", "sql"), rows, anchors=["a-1", "a-2"]))
    assert root.findtext(".//caption") == "two rows"
    assert [each.attrib["scope"] for each in root.findall(".//th")] == ["col"] * 2 + ["row"] * 2
    assert at(root, "div").attrib["aria-label"] == "two rows"
    assert [each.attrib["id"] for each in root.findall(".//tbody/tr")] == ["a-1", "a-2"]
    assert root.findtext(".//td/pre/code") == "SELECT\n1"


@pytest.mark.parametrize("more", [0, 4])
def test_what_does_not_fit_in_a_table_is_counted_and_never_made(more: int) -> None:
    made = []

    def row(number: int) -> Sequence[str]:
        made.append(number)
        return [f"row {number}"]

    root = body(TableBlock("c", ("name",), LazyRows(range(ROWS_ON_PAGE + more), row)))
    assert len(root.findall(".//tbody/tr")) == ROWS_ON_PAGE == len(made)
    assert (f"and {more} more" in (root.findtext("p") or "")) == (more > 0)


def test_a_figure_that_cannot_be_drawn_takes_its_section_with_it() -> None:
    empty = Report("c", "h", dict, (), [Section("s", "S", [Figure(lambda: None)])])
    assert sections(as_html(empty)) == [] and as_text(empty) == "h"


def test_whatever_stands_in_a_block_is_escaped() -> None:
    hostile = "<script>"
    table = TableBlock(hostile, (hostile,), [(hostile,)], anchors=[hostile])
    root = body(table, Listing([(hostile,)]), Facts([(hostile, hostile)]), Paragraph(hostile))
    assert root.find(".//script") is None and "".join(root.itertext()).count(hostile) == 7
