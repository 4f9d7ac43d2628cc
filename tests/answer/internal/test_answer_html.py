"""The page of a private answer: well-formed, escaped, with its intervals drawn."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from answer.answers import DATED, GROUPED, HOSTILE, UNPROVEN

from casemate.answer.page import ROWS_DRAWN, as_html
from casemate.grid import Noised, Origin


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)


def drawn(page: str) -> list[ET.Element]:
    return list(parsed(page).iter("svg"))


def width(line: ET.Element) -> float:
    """From the first point of a line to its last."""
    first, *_, last = line.attrib["points"].split()
    return float(last.partition(",")[0]) - float(first.partition(",")[0])


def test_the_page_says_what_was_asked_what_it_cost_and_where_it_comes_from() -> None:
    root = parsed(as_html(GROUPED))
    assert root.findtext("body/main/header/h1") == (
        "2 rows, from the stand-in, and the gate let it pass."
    )
    assert root.findtext("body/main/header/p/code") == GROUPED.sql
    words = " ".join("".join(root.itertext()).split())
    assert "rho 0.02 (epsilon 0.9)" in words and "ages are counted in bins of 5" in words


def test_every_row_has_a_line_for_the_proof_a_thicker_one_for_the_error_and_a_dot() -> None:
    (plot,) = drawn(as_html(GROUPED))
    lines, bars = list(plot.iter("polyline")), list(plot.iter("rect"))
    assert (len(lines), len(bars), len(list(plot.iter("circle")))) == (2, 2, 2)
    people = max(map(width, lines)) / (10_974.25 - 9_050)  # how wide one of them is drawn
    drawn_errors = sorted(float(bar.attrib["width"]) / people for bar in bars)
    assert drawn_errors == pytest.approx([24, 63], abs=0.5)
    assert all(float(bar.attrib["height"]) > 2 for bar in bars)


def test_every_column_of_numbers_has_a_figure() -> None:
    titles = [plot.findtext("title") for plot in drawn(as_html(DATED))]
    assert titles == ["avg, row by row", "n, row by row"]


def test_the_figure_is_told_in_words_too() -> None:
    (plot,) = drawn(as_html(GROUPED))
    assert plot.findtext("desc") == "Female: 10,012, 9,050 to 10,974; NULL: 0, 0 to 962."


def test_nothing_is_drawn_as_proven_that_is_not() -> None:
    (plot,) = drawn(as_html(UNPROVEN))
    assert not list(plot.iter("polyline")) and len(list(plot.iter("rect"))) == 1
    assert "nothing is proven" in as_html(UNPROVEN)


def test_an_exact_answer_is_a_dot() -> None:
    exact = replace(UNPROVEN, rows=((Noised(5.0, 5.0, 5.0, 0.0),),), origin=Origin.MEASURED)
    (plot,) = drawn(as_html(exact))
    assert not list(plot.iter("rect")) and len(list(plot.iter("circle"))) == 1


def test_no_rows_make_a_page_without_figures() -> None:
    assert not drawn(as_html(replace(GROUPED, rows=())))


def test_many_rows_are_in_the_table_and_the_first_in_the_figure() -> None:
    rows = tuple((i, Noised(float(i), 0.0, 100.0, 1.0)) for i in range(ROWS_DRAWN + 7))
    page = as_html(replace(GROUPED, rows=rows))
    (plot,) = drawn(page)
    assert len(list(plot.iter("circle"))) == ROWS_DRAWN
    assert "7 more rows are in the table below" in page


def test_what_comes_from_outside_is_escaped() -> None:
    rows = ((HOSTILE, Noised(1.0, 0.0, 2.0, 0.5)),)
    hostile = replace(GROUPED, sql=HOSTILE, columns=(HOSTILE, HOSTILE), rows=rows, notes=(HOSTILE,))
    page = as_html(hostile, session=True)
    assert HOSTILE not in page and parsed(page) is not None
