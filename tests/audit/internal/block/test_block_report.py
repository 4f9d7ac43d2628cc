"""Solutions of a block in words and as an object."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from casemate.audit.block.block import BlockAudited, as_html, as_json, as_text

ONE = ((8, "F"), (30, "M"))
OTHER = ((8, "F"), (31, "M"))
FOUND = BlockAudited(2, ("age", "sex"), (ONE, OTHER), True, ((8, "F"),), (), 0.12345)


def test_solutions_are_lines_to_read() -> None:
    assert as_text(FOUND).splitlines() == [
        "2 people, 2 solutions",
        "",
        "certain, in every solution: 1",
        "  age 8, sex F",
        "",
        "solutions, each person as age sex:",
        "  1. 8 F; 30 M",
        "  2. 8 F; 31 M",
    ]


def test_one_solution_gives_everybody_away() -> None:
    assert "the statistics give away everybody" in as_text(
        replace(FOUND, tables=(ONE,), certain=ONE)
    )


def test_a_contradiction_is_said_plainly() -> None:
    none = replace(FOUND, tables=(), certain=())
    assert "0 solutions" in as_text(none)
    assert "nobody could live there: the statistics contradict each other" in as_text(none)


def test_what_the_limit_left_open_is_said() -> None:
    cut = replace(FOUND, complete=False, certain=(), undecided=((8, "F"),))
    assert "at least 2 solutions: not all were enumerated" in as_text(cut)
    assert "not decided within the limit: 1\n  age 8, sex F" in as_text(cut)
    nothing = replace(cut, tables=(), undecided=())
    assert "no solution was found within the limit, and none was ruled out" in as_text(nothing)


def test_many_solutions_are_counted_in_the_text_and_listed_in_the_object() -> None:
    many = replace(FOUND, tables=(ONE, OTHER) * 15)
    assert "  20. 8 F; 31 M\n  and 10 more, all of them in the JSON" in as_text(many)
    assert len(as_json(many)["tables"]) == 30


def test_people_are_objects() -> None:
    assert as_json(FOUND) == {
        "schema": "casemate.block/1",
        "solutions": 2,
        "complete": True,
        "people": 2,
        "certain": [{"age": 8, "sex": "F"}],
        "undecided": [],
        "tables": [
            [{"age": 8, "sex": "F"}, {"age": 30, "sex": "M"}],
            [{"age": 8, "sex": "F"}, {"age": 31, "sex": "M"}],
        ],
        "seconds": 0.123,
    }


def test_a_page_has_a_row_for_each_solution_and_escapes_what_it_shows() -> None:
    hostile = replace(FOUND, certain=((8, "<script>"),), tables=(ONE, ((8, "<script>"), (31, "M"))))
    root = ET.fromstring(as_html(hostile))
    solutions = root.findall(".//section[@id='solutions']//tbody/tr")
    assert [[cell.text for cell in row] for row in solutions] == [
        ["1", "8 F", "30 M"],
        ["2", "8 <script>", "31 M"],
    ]
    assert root.find(".//section[@id='undecided']") is None
    (certain,) = root.findall(".//section[@id='certain']//tbody/tr")
    assert [cell.text for cell in certain] == ["1", "8", "<script>"]
