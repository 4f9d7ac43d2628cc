"""One behavioural contract for every form of the transcript: in memory, SQLite, PostgreSQL."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from casemate.doors import (
    Closed,
    Content,
    Easy,
    Transcript,
    TranscriptEntry,
    open_transcript,
)
from casemate.doors.transcript import ENTRIES_PER_PAGE, FORM, TranscriptBook, write_once
from casemate.errors import TranscriptDamaged
from casemate.privacy.book import IN_MEMORY, Head, MemoryBook

Opener = Callable[[], Transcript]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same transcript again and again."""
    kept = MemoryBook(FORM)
    where: str | Path = IN_MEMORY if request.param == "memory" else tmp_path / "hospital.ledger"
    if request.param == "postgres":
        where = request.getfixturevalue("postgres")
    with ExitStack() as stack:

        def open_again() -> Transcript:
            new = Transcript(kept) if where == IN_MEMORY else open_transcript(where)
            return stack.enter_context(new)

        yield open_again


def easy(text: str, run: str = "r1") -> Easy:
    return Easy(text, "p", "v", run, 1, 10, -1)


def test_entries_come_back_in_order_with_what_they_say(opened: Opener) -> None:
    transcript = opened()
    said: list[Content] = [
        Closed("r0", "first"),
        easy("q1"),
        easy("q2 'quoted' λ \x01"),
        Closed("r1", "last"),
    ]
    for content in said:
        transcript.append(content)
    for reader in (transcript, opened()):
        assert [entry.content for entry in reader.replay()] == said
    newest = transcript.newest()
    assert newest is not None and newest.questions == 2


def test_an_entry_is_written_once_and_a_second_writer_gets_the_first(opened: Opener) -> None:
    first = opened().append(Closed("r1", "one"))
    again = opened().append(Closed("r1", "two"))
    assert again == first
    assert [entry.content for entry in opened().replay()] == [Closed("r1", "one")]


def test_find_and_latest_look_up_by_key_and_by_run(opened: Opener) -> None:
    transcript = opened()
    assert transcript.newest() is transcript.find("closed r1") is transcript.latest("r1") is None
    entries = [transcript.append(content) for content in (easy("q1"), easy("q2", "r2"))]
    entries.append(transcript.append(easy("q3")))
    assert transcript.find(easy("q2").key) == entries[1]
    assert transcript.latest("r1") == entries[2]
    assert transcript.latest("r2") == entries[1]


def test_work_that_fails_leaves_nothing_behind(opened: Opener) -> None:
    transcript = opened()
    transcript.append(easy("q0"))

    def interrupted(book: TranscriptBook) -> None:
        write_once(book, easy("q1"))
        assert book.find(easy("q1").key) is not None, "its own work is seen inside"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transcript.run(interrupted)
    assert transcript.find(easy("q1").key) is transcript.latest("r9") is None
    assert transcript.append(easy("q1")).number == 1
    assert len(list(transcript.replay())) == 2


def test_writers_at_the_same_moment_share_one_chain(opened: Opener) -> None:
    together, got = threading.Barrier(4), list[TranscriptEntry]()

    def write(name: int) -> None:
        transcript = opened()
        together.wait(timeout=60)
        for number in range(8):
            got.append(transcript.append(easy(f"q{number}", run=f"r{name}")))

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 32
    assert {entry.head for entry in got} == {entry.head for entry in opened().replay()}
    assert len({entry.key for entry in got}) == len(list(opened().replay())) == 8


def test_a_head_kept_elsewhere_is_looked_for(opened: Opener) -> None:
    transcript = opened()
    heads = [transcript.append(easy(f"q{n}")).head for n in range(3)]
    assert len(list(transcript.replay(expected_head=heads[1]))) == 3
    with pytest.raises(TranscriptDamaged, match="entry 1 of the transcript"):
        list(transcript.replay(expected_head=Head(1, "00" * 32)))
    with pytest.raises(TranscriptDamaged, match=r"entry 7 of the transcript .* it is missing"):
        list(transcript.replay(expected_head=Head(7, "00" * 32)))


def test_a_transcript_longer_than_a_page_is_replayed_whole() -> None:
    transcript = open_transcript(IN_MEMORY)
    for number in range(ENTRIES_PER_PAGE + 5):
        transcript.append(easy(f"q{number}"))
    assert [entry.number for entry in transcript.replay()] == list(range(ENTRIES_PER_PAGE + 5))
