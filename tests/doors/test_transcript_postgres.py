"""What only the PostgreSQL form promises: its names, its triggers, and a lost connection."""

import sys

import psycopg
import pytest
from doors.doorway import FACTS

from casemate.doors import Closed, open_transcript
from casemate.errors import LedgerUnavailable, Misconfigured
from casemate.privacy.ledger import open_ledger


def by_hand(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement.encode())


def test_without_psycopg_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Misconfigured, match=r"needs psycopg; install casemate\[postgres\]"):
        open_transcript("postgresql://localhost/nowhere")


def test_a_name_that_is_no_plain_identifier_is_misconfigured() -> None:
    with pytest.raises(Misconfigured, match="a ledger's name in PostgreSQL"):
        open_transcript("postgresql://localhost/nowhere#x; DROP TABLE y")


def test_a_server_that_is_not_there_is_unavailable_and_its_password_is_not_told() -> None:
    with pytest.raises(LedgerUnavailable, match="OperationalError") as failure:
        open_transcript("postgresql://ann:secret@127.0.0.1:1/nowhere?connect_timeout=2")
    assert "secret" not in str(failure.value)


@pytest.mark.postgres
def test_a_ledger_and_its_transcript_share_one_database(postgres: str) -> None:
    for name in ("hospital", "school"):
        url = f"{postgres}#{name}"
        with open_ledger(url, **FACTS) as ledger, open_transcript(url) as transcript:
            assert transcript.append(Closed("r", name)).number == 0
            ledger.verify()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE casemate_ledger_transcript SET text = ''",
        "DELETE FROM casemate_ledger_transcript",
        "TRUNCATE casemate_ledger_transcript",
    ],
)
def test_entries_that_were_written_stay_written(postgres: str, statement: str) -> None:
    with open_transcript(postgres) as transcript:
        transcript.append(Closed("r", ""))
        with pytest.raises(psycopg.errors.RaiseException, match="the transcript is append-only"):
            by_hand(postgres, statement)


@pytest.mark.postgres
def test_a_lost_connection_is_reported_and_made_again(postgres: str) -> None:
    with open_transcript(postgres) as transcript:
        transcript.append(Closed("r1", ""))
        by_hand(
            postgres,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        with pytest.raises(LedgerUnavailable, match="ask again"):
            transcript.append(Closed("r2", ""))
        assert transcript.append(Closed("r2", "")).number == 1
