import pytest
from doors.internal.test_entry import chained, contents
from hypothesis import given
from hypothesis import strategies as st

from casemate.doors import Closed, Content
from casemate.doors.transcript import from_lines, to_lines
from casemate.errors import TranscriptDamaged


@given(st.lists(contents, max_size=6))
def test_a_published_transcript_is_read_back_whole(said: list[Content]) -> None:
    entries = chained(said)
    lines = list(to_lines(entries))
    assert list(from_lines(lines)) == entries
    assert all(line.isascii() and line.count("\n") == 1 for line in lines)


@given(st.lists(contents, min_size=1, max_size=4), st.data())
def test_a_torn_last_line_is_left_out(said: list[Content], data: st.DataObject) -> None:
    *whole, last = to_lines(chained(said))
    torn = last[: data.draw(st.integers(0, len(last) - 1))]
    assert list(from_lines([*whole, torn])) == chained(said)[:-1]


def test_a_changed_missing_or_unreadable_line_is_damage() -> None:
    lines = list(to_lines(chained([Closed(f"r{n}", "tired") for n in range(3)])))
    for broken in (
        [lines[0], lines[1].replace("tired", "bored"), lines[2]],
        [lines[0], lines[2]],
        [lines[0], "{}\n"],
        [lines[0], lines[1][:-9] + "\n", lines[2]],
    ):
        with pytest.raises(TranscriptDamaged, match="entry 1 of the transcript"):
            list(from_lines(broken))
