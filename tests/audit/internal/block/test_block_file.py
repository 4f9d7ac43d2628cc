"""A CSV of published statistics is read as they are meant, or refused in one sentence."""

from fractions import Fraction
from pathlib import Path

import pytest
from census_block import seven

from casemate.audit.block.block import read_ages, read_block
from casemate.audit.block.model import Block, PeopleCell, Statistic
from casemate.errors import Misconfigured


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "block.csv"


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
