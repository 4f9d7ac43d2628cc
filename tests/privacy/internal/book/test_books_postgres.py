"""What only the PostgreSQL form promises: its names, its locks, and a lost connection."""

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import psycopg
import pytest
from ledger_race import race

from casemate.doors import Closed, open_transcript
from casemate.errors import LedgerDamaged, LedgerUnavailable, Misconfigured
from casemate.privacy import Pure
from casemate.privacy.ledger import Ledger, open_ledger
from casemate.privacy.ledger.ledger import Receipt

FACTS: dict[str, Any] = {"dataset": "hospital", "policy": "a1b2", "epsilon": Fraction(1)}
TENTH = Pure(Fraction(1, 10))


def opened(url: str, **changes: Any) -> Ledger:
    return open_ledger(url, **(FACTS | changes))


def fill(url: str) -> list[Receipt]:
    with opened(url) as ledger:
        return [ledger.charge(TENTH, key=f"q{n}", purpose="count") for n in range(3)]


def by_hand(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


DISARM = (
    "DROP TRIGGER never_change ON casemate_ledger_entries",
    "DROP TRIGGER never_leave ON casemate_ledger_entries",
    "DROP TRIGGER never_change ON casemate_ledger_head",
)


books = pytest.mark.parametrize("book", [opened, open_transcript])


@books
def test_without_psycopg_one_sentence_says_what_to_install(
    book: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Misconfigured, match=r"needs psycopg; install casemate\[postgres\]"):
        book("postgresql://localhost/nowhere")


@books
@pytest.mark.parametrize("name", ["Upper", "with-dash", "x; DROP TABLE y", "a" * 41, "1st"])
def test_a_name_that_is_no_plain_identifier_is_misconfigured(
    book: Callable[[str], object], name: str
) -> None:
    with pytest.raises(Misconfigured, match="a ledger's name in PostgreSQL"):
        book(f"postgresql://localhost/nowhere#{name}")


@books
def test_a_server_that_is_not_there_is_unavailable_and_its_password_is_not_told(
    book: Callable[[str], object],
) -> None:
    with pytest.raises(
        LedgerUnavailable, match=r"OperationalError.*(same key|ask again)"
    ) as failure:
        book("postgresql://ann:secret@127.0.0.1:1/nowhere?connect_timeout=2")
    assert "secret" not in str(failure.value)


@pytest.mark.postgres
def test_a_ledger_and_its_transcript_share_one_database(postgres: str) -> None:
    for name in ("hospital", "school"):
        url = f"{postgres}#{name}"
        with opened(url, dataset=name) as ledger, open_transcript(url) as transcript:
            assert transcript.append(Closed("r", name)).number == 0
            ledger.verify()


@pytest.mark.postgres
def test_ledgers_of_two_names_live_side_by_side(postgres: str) -> None:
    with opened(postgres + "#hospital") as one, opened(postgres + "#school", dataset="s") as two:
        one.charge(TENTH, key="q", purpose="count")
        assert two.remaining() == 1
        assert one.remaining() == Fraction(9, 10)


@pytest.mark.postgres
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE casemate_ledger_entries SET cost_text = 'pure 0' WHERE number = 1",
        "DELETE FROM casemate_ledger_entries WHERE number = 3",
        "TRUNCATE casemate_ledger_entries",
        "DELETE FROM casemate_ledger_head",
        "UPDATE casemate_ledger_head SET number = 1, units = 0",
        "UPDATE casemate_ledger_transcript SET text = ''",
        "DELETE FROM casemate_ledger_transcript",
        "TRUNCATE casemate_ledger_transcript",
    ],
)
def test_rows_that_were_written_stay_written(postgres: str, statement: str) -> None:
    fill(postgres)
    with open_transcript(postgres) as transcript:
        transcript.append(Closed("r", ""))
    with pytest.raises(psycopg.errors.RaiseException, match="is append-only"):
        by_hand(postgres, statement)


@pytest.mark.postgres
def test_the_database_itself_refuses_to_pass_the_budget(postgres: str) -> None:
    fill(postgres)
    with pytest.raises(psycopg.errors.CheckViolation):
        by_hand(postgres, "UPDATE casemate_ledger_head SET number = 9, units = 1000000000001")


@pytest.mark.postgres
def test_an_untouched_ledger_opens_and_a_tampered_row_is_named(postgres: str) -> None:
    fill(postgres)
    by_hand(postgres, *DISARM)
    with opened(postgres) as ledger:
        assert ledger.verify().number == 3
    by_hand(postgres, "UPDATE casemate_ledger_entries SET cost_text = 'pure 0' WHERE number = 2")
    with pytest.raises(LedgerDamaged, match=r"^row 2 of the ledger is damaged"):
        opened(postgres)


@pytest.mark.postgres
def test_rows_cut_off_are_found(postgres: str) -> None:
    receipts = fill(postgres)
    by_hand(postgres, *DISARM, "DELETE FROM casemate_ledger_entries WHERE number > 1")
    with pytest.raises(LedgerDamaged, match=r"row 2 .* the head counts 4 rows"):
        opened(postgres)
    by_hand(
        postgres,
        "UPDATE casemate_ledger_head SET (number, hash, total_text, units) = (SELECT number, hash, "
        "total_text, units FROM casemate_ledger_entries ORDER BY number DESC LIMIT 1)",
    )
    with opened(postgres) as ledger:
        assert ledger.spent().amount == Fraction(1, 10), "the stated limit of what can be found"
    with pytest.raises(LedgerDamaged, match="a receipt vouches for row 3"):
        opened(postgres, expected_head=receipts[-1].head)


@pytest.mark.postgres
def test_a_lost_connection_is_reported_and_made_again(postgres: str) -> None:
    with opened(postgres) as ledger, open_transcript(postgres) as transcript:
        ledger.charge(TENTH, key="q1", purpose="count")
        transcript.append(Closed("r1", ""))
        by_hand(
            postgres,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        with pytest.raises(LedgerUnavailable, match="retry with the same key"):
            ledger.charge(TENTH, key="q2", purpose="count")
        ledger.charge(TENTH, key="q2", purpose="count")
        assert ledger.spent().amount == Fraction(1, 5)
        with pytest.raises(LedgerUnavailable, match="ask again"):
            transcript.append(Closed("r2", ""))
        assert transcript.append(Closed("r2", "")).number == 1


@pytest.mark.postgres
def test_ledgers_opened_at_once_on_an_empty_database_share_it(postgres: str) -> None:
    granted = race(lambda: opened(postgres), callers=5)
    assert len(granted) == 20
    with opened(postgres) as ledger:
        assert ledger.remaining() == 0


@pytest.mark.postgres
def test_a_role_that_may_only_append_is_enough(postgres: str) -> None:
    fill(postgres)
    by_hand(
        postgres,
        "DROP ROLE IF EXISTS clerk",
        "CREATE ROLE clerk",
        "GRANT SELECT, INSERT ON casemate_ledger_entries TO clerk",
        "GRANT SELECT, UPDATE ON casemate_ledger_head TO clerk",
        "GRANT SELECT ON casemate_ledger_book_versions TO clerk",
    )
    as_clerk = f"{postgres}&options=-c%20role%3Dclerk"
    with opened(as_clerk) as ledger:
        ledger.charge(TENTH, key="more", purpose="count")
        assert ledger.spent().amount == Fraction(2, 5)
    by_hand(postgres, "DROP OWNED BY clerk", "DROP ROLE clerk")


@pytest.mark.postgres
def test_a_session_that_does_not_wait_for_the_disk_is_made_to(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[psycopg.Connection[Any]] = []
    connect = psycopg.connect

    def remembered(*args: Any, **options: Any) -> psycopg.Connection[Any]:
        made.append(connect(*args, **options))
        return made[-1]

    monkeypatch.setattr(psycopg, "connect", remembered)
    with opened(f"{postgres}&options=-c%20synchronous_commit%3Doff"):
        shown = made[0].execute("SHOW synchronous_commit").fetchone()
    assert shown == ("on",)
