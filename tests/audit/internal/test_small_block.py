"""Small blocks: the file is read as it is meant, solved as brute force says, and told plainly."""

import math
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from random import Random
from statistics import median

import pytest
from census_block import COMMON, SECOND, TRUTH, people, seven
from rendered import forms

from casemate.audit.small_block.model import (
    Block,
    PeopleCell,
    Person,
    Statistic,
    certain,
    common_people,
    read_ages,
    read_block,
    solve_block,
)
from casemate.audit.small_block.report import BlockAudited, audit_block, block_report
from casemate.audit.time_limit import SearchLimit
from casemate.errors import Misconfigured

as_text, as_json, as_html = forms(block_report)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "block.csv"


def solved(
    file: Path, *suppressed: str, more: str = "", most: int = 1000, seconds: float = 60
) -> BlockAudited:
    file.write_text(seven(*suppressed, more=more))
    return audit_block(file, most=most, seconds=seconds)


@pytest.mark.parametrize("suppressed", ["", "2A", "2B", "2C", "2D"])
def test_the_published_block_has_one_solution(suppressed: str, file: Path) -> None:
    found = solved(file, suppressed)
    assert found.tables == (TRUTH,) and found.complete and found.certain == TRUTH
    assert found.fields == ("age", "sex", "race", "married")


def test_suppressed_rows_leave_as_many_solutions_as_the_literature_says(file: Path) -> None:
    found = solved(file, "2A", "2B")
    assert len(found.tables) == 8 and found.complete and found.certain == COMMON
    found = solved(file, "4A")
    assert set(found.tables) == {TRUTH, SECOND} and found.complete and found.certain == ()
    found = solved(file, "3B")
    assert len(found.tables) == 64 and found.complete and found.certain == people("8FBS")


def test_that_rows_were_withheld_for_being_small_is_knowledge_too(file: Path) -> None:
    cells = [",,S,18+", "M,B,,", "F,W,,", "M,W,,", ",,,<5", ",,,<18", ",,,64+"]
    withheld = "\n".join(f",{cell},<3,," for cell in cells)
    assert len(solved(file, "2A", "2B", more=withheld).tables) == 6


def test_who_is_certain_is_decided_though_not_all_solutions_are_listed(file: Path) -> None:
    found = solved(file, "3B", most=5)
    assert len(found.tables) == 5 and not found.complete
    assert (found.certain, found.undecided) == (people("8FBS"), ())


def test_without_time_nothing_is_claimed(file: Path) -> None:
    found = solved(file, "3B", seconds=1e-9)
    assert not found.complete and found.certain == ()
    assert set(found.undecided) <= set(TRUTH)
    limit = SearchLimit(seconds=math.inf, work=1e-6, workers=1)
    block = read_block(file).block
    assert not solve_block(block, limit).complete and certain(block, limit).people == ()


def test_contradictory_statistics_have_no_solution(file: Path) -> None:
    found = solved(file, more="5A,F,,,,6,,")
    assert (found.tables, found.complete, found.certain) == ((), True, ())


def test_people_without_ages_are_told_apart_by_their_values(file: Path) -> None:
    file.write_text("sex,race,count\n,,3\nF,,2\nM,,1\n,B,1\n,W,\nF,W,1\n")
    found = audit_block(file)
    assert set(found.tables) == {(("F", "B"), ("F", "W"), ("M", "W"))}
    assert found.fields == ("sex", "race")


# The file -----------------------------------------------------------------------------------------


def read(file: Path, text: str) -> Block:
    file.write_text(text)
    return read_block(file).block


def test_a_row_is_whom_it_is_about_and_what_was_published(file: Path) -> None:
    block = read(file, seven())
    assert (block.size, block.low, block.high) == (7, 0, 125)
    assert block.attributes == {"sex": ("F", "M"), "race": ("B", "W"), "married": ("S", "M")}
    twentieth = Fraction(1, 20)
    assert block.statistics[0] == Statistic(PeopleCell(), 7, Fraction(30), Fraction(38), twentieth)
    adults = PeopleCell({"married": ("M",)}, at_least=18)
    assert Statistic(adults, 4, Fraction(51), Fraction(54), twentieth) in block.statistics
    assert len(block.statistics) == 8  # the row 3A was suppressed


def test_the_means_of_a_file_are_rounded_alike(file: Path) -> None:
    widths = {each.mean_within for each in read(file, seven("2A", "2C", "4A")).statistics}
    assert widths == {Fraction(1, 2)}
    widths = {each.mean_within for each in read(file, seven("2A", "2C")).statistics}
    assert widths == {Fraction(1, 20)}


@pytest.mark.parametrize(
    ("age", "ends"),
    [
        ("40", (40, 40)),
        ("18-64", (18, 64)),
        ("18 – 64", (18, 64)),
        ("18+", (18, None)),
        ("<18", (0, 17)),
        ("", (None, None)),
    ],
)
def test_ages_are_written_as_tables_write_them(
    age: str, ends: tuple[int | None, int | None], file: Path
) -> None:
    block = read(file, f"age,count\n{age},2\n,3\n")
    assert block.statistics[0].cell == PeopleCell({}, *ends)


@pytest.mark.parametrize(
    ("count", "meant"), [("0-2", (0, 2)), ("<3", (0, 2)), ("2", 2), ("1+", (1, 100))]
)
def test_a_count_may_be_a_range(count: str, meant: object, file: Path) -> None:
    assert read(file, f"sex,count\n,5\nF,{count}\nM,\n").statistics[1].count == meant


def test_a_filter_may_name_several_values(file: Path) -> None:
    block = read(file, "race,count\n,5\nA | B,3\nC,\n")
    assert block.attributes == {"race": ("A", "B", "C")}
    assert block.statistics[1].cell.where == {"race": ("A", "B")}


def test_without_anything_about_ages_people_have_none(file: Path) -> None:
    file.write_text("sex,count\n,2\nF,1\nM,1\n")
    published = read_block(file)
    assert published.fields == ("sex",)
    assert (published.block.low, published.block.high) == (0, 0)


def test_ages_are_a_range() -> None:
    assert read_ages(" 0 : 99 ") == (0, 99)


@pytest.mark.parametrize("text", ["7", "a:b", "9:3", ":", "0:1e9", "-1:5", "0:99999999999"])
def test_a_wrong_range_of_ages_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured, match="--ages"):
        read_ages(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no column count"),
        ("sex,number\n,7\n", "has no column count"),
        ("sex,count,meen\n,7,3\n", "unknown column meen after count; expected median or mean"),
        ("mean,count\n,7\n", "has the column mean before count"),
        ("sex,sex,count\n,,7\n", "a name of its own"),
        ("sex,,count\n,,7\n", "a name of its own"),
        ("sex,count\n,7\nF\n", "line 3 has 1 cells; expected 2"),
        ("count\nseven\n", "line 2: the count is not a number"),
        ("count\n-7\n", "line 2: the count is not a number"),
        ("count\n7.5\n", "line 2: the count is not a number"),
        ("count\n9999999999\n", "line 2: the count is not a number"),
        ("count,mean\n7,many\n", "line 2: the mean is not a number"),
        ("count,mean\n7,nan\n", "line 2: the mean is not a number"),
        ("count,mean\n7,1e3\n", "line 2: the mean is not a number"),
        ("count,median\n7,1/2\n", "line 2: the median is not a number"),
        ("age,count\n,7\nyoung,3\n", "line 3: the age is not a number"),
        ("age,count\n,7\n64-18,3\n", "line 3: the age ends before it begins"),
        ("age,count\n,7\n<0,3\n", "line 3: the age ends before it begins"),
        ("age,count,median\n,7,\n18+,,30\n", "line 3 has a median or a mean without a count"),
        ("age,count,mean\n,7,\n18+,0,30\n", "line 3 has a median or a mean without a count"),
        ("age,count,mean\n,7,\n18+,0-2,30\n", "line 3 has a median or a mean without a count"),
        ("sex,count\nF,3\nM,4\n", "does not say how many people there are"),
        ("sex,count\n,0\nF,3\nM,4\n", "does not say how many people there are"),
        ("count\n101\n", "at most 100 can be solved"),
        ("sex,count\n,3\nF,3\n", "the column sex names fewer than two values"),
        ("sex,count\n,3\n|,3\n", "the column sex names fewer than two values"),
        ('count\n"7', "cannot be read"),
    ],
)
def test_bad_input_is_one_sentence(text: str, sentence: str, file: Path) -> None:
    with pytest.raises(Misconfigured, match=sentence) as raised:
        read(file, text)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_not_text_cannot_be_read(file: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be read"):
        read_block(file)
    file.write_bytes(b"\xff\xfe\x00count")
    with pytest.raises(Misconfigured, match="cannot be read"):
        read_block(file)


# Against everybody who could live there -----------------------------------------------------------

SMALL = {"sex": ("F", "M"), "race": ("A", "B", "C")}


def inside(cell: PeopleCell, person: Person) -> bool:
    values = dict(zip(SMALL, person[1:], strict=True))
    low = -math.inf if cell.at_least is None else cell.at_least
    high = math.inf if cell.at_most is None else cell.at_most
    fits = all(values[name] in wanted for name, wanted in cell.where.items())
    return fits and low <= int(person[0]) <= high


def gives(statistic: Statistic, table: tuple[Person, ...]) -> bool:
    ages = [int(person[0]) for person in table if inside(statistic.cell, person)]
    least, most = statistic.count if isinstance(statistic.count, tuple) else (statistic.count,) * 2
    if not least <= len(ages) <= most:
        return False
    if statistic.median is not None and 2 * median(ages) != 2 * statistic.median:
        return False
    if statistic.mean is None:
        return True
    return abs(Fraction(sum(ages), len(ages)) - statistic.mean) <= statistic.mean_within


def random_cell(rng: Random) -> PeopleCell:
    where: dict[str, tuple[str, ...]] = {}
    if rng.randrange(2):
        where["sex"] = (rng.choice(SMALL["sex"]),)
    if rng.randrange(2):
        where["race"] = tuple(rng.sample(SMALL["race"], rng.randint(1, 2)))
    return PeopleCell(where, rng.choice([None, None, 1]), rng.choice([None, None, 2]))


def publish(rng: Random, cell: PeopleCell, table: tuple[Person, ...]) -> Statistic:
    ages = [int(person[0]) for person in table if inside(cell, person)]
    if not ages or rng.random() < 0.2:
        return Statistic(cell, (0, len(ages)))
    mean = Fraction(round(Fraction(sum(ages), len(ages)) * 2), 2)
    middle = Fraction(int(2 * median(ages)), 2)
    return Statistic(cell, len(ages), middle, mean, Fraction(1, 4))


def test_small_blocks_have_exactly_the_solutions_of_brute_force(rng: Random) -> None:
    everybody: list[Person] = [
        (age, *values) for age in range(4) for values in product(*SMALL.values())
    ]
    tables = list(combinations_with_replacement(sorted(everybody), 3))
    for _ in range(8):
        truth = rng.choice(tables)
        cells = [PeopleCell(), *(random_cell(rng) for _ in range(rng.randint(1, 4)))]
        statistics = tuple(publish(rng, cell, truth) for cell in cells)
        expected = [table for table in tables if all(gives(each, table) for each in statistics)]
        block = Block(3, 0, 3, SMALL, statistics)
        found = solve_block(block)
        assert found.complete
        assert [tuple(sorted(table)) for table in found.tables] == sorted(expected)
        assert Counter(certain(block).people) == Counter(common_people(expected))


# What is told of it -------------------------------------------------------------------------------

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
