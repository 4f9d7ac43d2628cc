"""The mapped file: whatever moment its writer is killed at, the newest whole record is there."""

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.journal import LONGEST, Mapped, new_number

records = st.binary(max_size=LONGEST)


def at(path: Path) -> Mapped:
    return Mapped(path, b"whatever", "a test")


def newest(path: Path) -> bytes | None:
    mapped = at(path)
    found = mapped.newest()
    mapped.close()
    return found


@given(st.lists(records, max_size=5), st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_the_newest_record_and_the_words_are_read_back(kept: list[bytes], words: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        mapped = at(Path(folder) / "a")
        assert mapped.newest() is None and mapped.words.tolist() == [0] * 6
        for i, word in enumerate(words):
            mapped.words[i] = word
        for record in kept:
            mapped.keep(record)
            assert mapped.newest() == record
        incarnation = mapped.incarnation
        mapped.close()
        again = at(Path(folder) / "a")
        assert (again.words.tolist(), again.incarnation) == (words, incarnation)
        assert again.newest() == (kept[-1] if kept else None)
        again.keep(b"next")
        assert again.newest() == b"next"
        again.close()


@given(st.lists(records, max_size=3), records, st.randoms(use_true_random=False))
def test_a_record_of_which_any_part_was_written_leaves_the_one_before(
    kept: list[bytes], last: bytes, random: Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        mapped = at(path)
        for record in kept:
            mapped.keep(record)
        before = path.read_bytes()
        mapped.keep(last)
        mapped.close()
        after = path.read_bytes()
        changed = [i for i in range(len(after)) if after[i] != before[i]]
        part = set(random.sample(changed, random.randrange(len(changed))))
        path.write_bytes(bytes(after[i] if i in part else before[i] for i in range(len(after))))
        assert newest(path) == (kept[-1] if kept else None)


def test_a_file_that_begins_anew_is_another_one_with_nothing_in_it(tmp_path: Path) -> None:
    mapped = at(tmp_path / "a")
    mapped.keep(b"old")
    mapped.words[5] = 7
    incarnation = mapped.incarnation
    mapped.begin_anew()
    assert mapped.incarnation != incarnation
    assert (mapped.newest(), mapped.words.tolist()) == (None, [0] * 6)
    mapped.keep(b"new")
    mapped.flush()
    mapped.close()
    assert newest(tmp_path / "a") == b"new"


def test_a_record_that_has_no_room_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    mapped = at(tmp_path / "a")
    mapped.keep(b"x" * LONGEST)
    with pytest.raises(ValueError, match=f"at most {LONGEST} bytes"):
        mapped.keep(b"x" * (LONGEST + 1))
    assert mapped.newest() == b"x" * LONGEST
    mapped.close()


def test_a_file_of_another_kind_is_refused_and_let_go_of(tmp_path: Path) -> None:
    at(tmp_path / "a").close()
    with pytest.raises(Misconfigured, match="is no journal of somebody else; name a new file"):
        Mapped(tmp_path / "a", b"another.", "somebody else")
    at(tmp_path / "a").close()
    with pytest.raises(Misconfigured, match="cannot be opened"):
        at(tmp_path)


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_a_file_is_of_whom_it_was_given_to_first(first: str, second: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        mapped = Mapped(path, b"whatever", "a test", first)
        mapped.keep(b"record")
        mapped.begin_anew()
        mapped.close()
        whole = path.read_bytes()
        Mapped(path, b"whatever", "a test", first).close()
        if first != second:
            with pytest.raises(Misconfigured) as caught:
                Mapped(path, b"whatever", "a test", second)
            assert str(caught.value) == (
                f"the journal {path} belongs to site {first!r}; name another file for {second!r}"
            )
        assert path.read_bytes() == whole
        at(path).close()  # who does not say a name may look, and the lock was let go of


def test_a_file_without_a_name_or_with_part_of_one_is_adopted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    older = at(path)
    older.keep(b"old")
    incarnation = older.incarnation
    older.close()
    assert path.stat().st_size == 1088
    nameless = path.read_bytes()
    Mapped(path, b"whatever", "a test", "lima").close()
    named = path.read_bytes()
    cuts = range(len(nameless), len(nameless) + 12)
    for left in [named[:cut].ljust(size, b"\0") for cut in cuts for size in (cut, len(named))]:
        path.write_bytes(left)
        adopted = Mapped(path, b"whatever", "a test", "lima")
        assert (adopted.newest(), adopted.incarnation) == (b"old", incarnation)
        adopted.close()
        assert path.read_bytes() == named
    with pytest.raises(Misconfigured, match="belongs to site 'lima'"):
        Mapped(path, b"whatever", "a test", "tokyo")


def test_numbers_are_whole_and_above_zero() -> None:
    found = {new_number() for _ in range(1000)}
    assert len(found) == 1000 and min(found) >= 1 and max(found) <= 2**62
