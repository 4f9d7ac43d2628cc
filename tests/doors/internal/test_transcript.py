"""One behavioural contract for every form of the transcript: in memory, SQLite, PostgreSQL."""

import threading

import pytest
from privacy.places import Books

from casemate.doors import Closed, Content, Easy, TranscriptEntry, open_transcript
from casemate.doors.transcript import ENTRIES_PER_PAGE, TranscriptBook, write_once
from casemate.errors import TranscriptDamaged
from casemate.privacy.book import IN_MEMORY, Head


def easy(text: str, run: str = "r1") -> Easy:
    return Easy(text, "p", "v", run, 1, 10, -1)


def test_entries_come_back_in_order_with_what_they_say(books: Books) -> None:
    transcript = books.transcript()
    said: list[Content] = [
        Closed("r0", "first"),
        easy("q1"),
        easy("q2 'quoted' λ \x01"),
        Closed("r1", "last"),
    ]
    for content in said:
        first = transcript.append(content)
    again = books.transcript().append(Closed("r1", "another reason"))
    assert again == first, "an entry is written once, and a second writer gets the first"
    for reader in (transcript, books.transcript()):
        assert [entry.content for entry in reader.replay()] == said
    newest = transcript.newest()
    assert newest is not None and newest.questions == 2


def test_find_and_latest_look_up_by_key_and_by_run(books: Books) -> None:
    transcript = books.transcript()
    assert transcript.newest() is transcript.find("closed r1") is transcript.latest("r1") is None
    entries = [transcript.append(content) for content in (easy("q1"), easy("q2", "r2"))]
    entries.append(transcript.append(easy("q3")))
    assert transcript.find(easy("q2").key) == entries[1]
    assert transcript.latest("r1") == entries[2]
    assert transcript.latest("r2") == entries[1]


def test_work_that_fails_leaves_nothing_behind(books: Books) -> None:
    transcript = books.transcript()
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


def test_writers_at_the_same_moment_share_one_chain(books: Books) -> None:
    together, got = threading.Barrier(4), list[TranscriptEntry]()

    def write(name: int) -> None:
        transcript = books.transcript()
        together.wait(timeout=60)
        for number in range(8):
            got.append(transcript.append(easy(f"q{number}", run=f"r{name}")))

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 32
    assert {entry.head for entry in got} == {entry.head for entry in books.transcript().replay()}
    assert len({entry.key for entry in got}) == len(list(books.transcript().replay())) == 8


def test_a_head_kept_elsewhere_is_looked_for(books: Books) -> None:
    transcript = books.transcript()
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
