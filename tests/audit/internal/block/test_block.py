"""Who could live in a block: the block of the literature, and what limits leave open."""

from pathlib import Path

import pytest
from census_block import COMMON, SECOND, TRUTH, people, seven

from casemate.audit.block.block import BlockAudited, audit_block


def solved(
    folder: Path, *suppressed: str, more: str = "", most: int = 1000, seconds: float = 60
) -> BlockAudited:
    file = folder / "block.csv"
    file.write_text(seven(*suppressed, more=more))
    return audit_block(file, most=most, seconds=seconds)


@pytest.mark.parametrize("suppressed", [(), ("2A",), ("2B",), ("2C",), ("2D",)])
def test_the_published_block_has_one_solution(suppressed: tuple[str, ...], tmp_path: Path) -> None:
    found = solved(tmp_path, *suppressed)
    assert found.tables == (TRUTH,) and found.complete
    assert found.certain == TRUTH
    assert found.fields == ("age", "sex", "race", "married")


def test_without_both_rows_by_sex_there_are_eight(tmp_path: Path) -> None:
    found = solved(tmp_path, "2A", "2B")
    assert len(found.tables) == 8 and found.complete and found.certain == COMMON


def test_without_the_row_of_black_women_there_are_two(tmp_path: Path) -> None:
    found = solved(tmp_path, "4A")
    assert set(found.tables) == {TRUTH, SECOND} and found.complete and found.certain == ()


def test_without_the_row_of_married_adults_there_are_sixty_four(tmp_path: Path) -> None:
    found = solved(tmp_path, "3B")
    assert len(found.tables) == 64 and found.complete and found.certain == people("8FBS")


def test_that_rows_were_withheld_for_being_small_is_knowledge_too(tmp_path: Path) -> None:
    cells = [",,S,18+", "M,B,,", "F,W,,", "M,W,,", ",,,<5", ",,,<18", ",,,64+"]
    withheld = "\n".join(f",{cell},<3,," for cell in cells)
    assert len(solved(tmp_path, "2A", "2B", more=withheld).tables) == 6


def test_who_is_certain_is_decided_though_not_all_solutions_are_listed(tmp_path: Path) -> None:
    found = solved(tmp_path, "3B", most=5)
    assert len(found.tables) == 5 and not found.complete
    assert (found.certain, found.undecided) == (people("8FBS"), ())


def test_without_time_nothing_is_claimed(tmp_path: Path) -> None:
    found = solved(tmp_path, "3B", seconds=1e-9)
    assert not found.complete and found.certain == ()
    assert set(found.undecided) <= set(TRUTH)


def test_contradictory_statistics_have_no_solution(tmp_path: Path) -> None:
    found = solved(tmp_path, more="5A,F,,,,6,,")
    assert (found.tables, found.complete, found.certain) == ((), True, ())


def test_people_without_ages_are_told_apart_by_their_values(tmp_path: Path) -> None:
    file = tmp_path / "block.csv"
    file.write_text("sex,race,count\n,,3\nF,,2\nM,,1\n,B,1\n,W,\nF,W,1\n")
    found = audit_block(file)
    assert set(found.tables) == {(("F", "B"), ("F", "W"), ("M", "W"))}
    assert found.fields == ("sex", "race")
