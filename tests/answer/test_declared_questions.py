"""Questions that a policy declares are proven by themselves, and only if they came first."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from unittest import mock

import pytest
from answer.conversations import Protected, Scenario, Talk, hold
from answer.session_world import number, numbers, parity, world
from answer.test_coverage import BINNED, LAWS, PERSON, apart, unites

from casemate import Session
from casemate.answer import construction as constructions
from casemate.answer import replay
from casemate.doors import Declared, EntryKind
from casemate.errors import Misconfigured
from casemate.grid import ProofSource

BY_SEX = "SELECT sex, COUNT(*) FROM t GROUP BY sex"
AVERAGE = "SELECT AVG(visits) FROM t"
MEDIAN = "SELECT MEDIAN(age) FROM t WHERE sex = 'f'"
RATE = "SELECT AVG(CASE WHEN ill = 1 THEN 1 ELSE 0 END) FROM t WHERE sex = 'f'"
EITHER = "SELECT COUNT(*) FROM t WHERE sex = 'f' OR ill = 1"
CUT = "SELECT COUNT(*) FROM t WHERE age > 42"
ILL = "SELECT COUNT(*) FROM t WHERE ill = 1"
EVERY = (BY_SEX, AVERAGE, MEDIAN, EITHER, CUT)
NOTE = "declared before anything was measured: each number by itself at 95 %"
DECLARING = '[answer]\nstrategy = "warm"\nquestions = "report.sql"\n'
PLAIN = '[answer]\nstrategy = "warm"\n'


def declaring(folder: Path, *statements: str, more: str = DECLARING) -> Path:
    """A policy that declares these statements."""
    (folder / "report.sql").write_text(";\n".join(statements))
    return world(folder, more=more)


# What is declared -------------------------------------------------------------------------------


def test_declared_numbers_have_narrower_bounds_and_the_same_ones_for_a_session(
    tmp_path: Path,
) -> None:
    with Session.simulated(declaring(tmp_path, *EVERY), seed=5) as session:
        declared = [(session.query(sql), session.query(sql)) for sql in EVERY]
    with Session.simulated(world(tmp_path, more=PLAIN), seed=5) as session:
        others = [session.query(sql) for sql in EVERY]
    for (alone, again), together in zip(declared, others, strict=True):
        assert NOTE in alone.notes
        assert NOTE in again.notes
        assert NOTE not in together.notes
        for one, other in zip(numbers(alone), numbers(together), strict=True):
            assert one.proof is other.proof is ProofSource.TABLES
            assert (one.session_lo, one.session_hi) == (other.session_lo, other.session_hi)
            assert other.lo <= one.lo <= one.hi <= other.hi  # type: ignore[operator]  # numbers
            assert together.sql == MEDIAN or (one.lo, one.hi) != (other.lo, other.hi)


def test_a_count_is_proven_to_two_deviations_and_a_little(tmp_path: Path) -> None:
    with Session.simulated(declaring(tmp_path, ILL), seed=5) as session:
        cell = number(session.query(ILL))
        proofs = session._dataset.construction._table_proofs()
        (part,) = session._compile(ILL).asked.parts
        deviation = proofs.effects.estimate(part.products[0]).deviation
    half = (float(cell.hi) - float(cell.lo)) / 2  # type: ignore[arg-type]  # numbers
    assert 1.96 <= half / deviation <= 2.1


@pytest.mark.parametrize("sql", [AVERAGE, RATE])
def test_a_quotient_is_proven_to_two_deviations_and_a_little(tmp_path: Path, sql: str) -> None:
    with Session.simulated(declaring(tmp_path, sql), seed=5) as session:
        cell = number(session.query(sql))
        asked, proofs = session._compile(sql).asked, session._dataset.construction._table_proofs()
        ((above, below),) = asked.shares or asked.ratios
        prove = proofs.share if asked.shares else proofs.mean
        found = prove(asked.parts[above].products[0], asked.parts[below].products[0], 0.05)
    assert found is not None
    unit = float(asked.parts[above].unit)
    half = (float(cell.hi) - float(cell.lo)) / 2  # type: ignore[arg-type]  # numbers
    assert 1.96 <= half / (found.error * unit) <= 2.25


def test_what_was_not_declared_is_proven_for_whoever_chose_it(tmp_path: Path) -> None:
    with Session.simulated(declaring(tmp_path, BY_SEX), seed=5) as session:
        found = session.query(ILL)
        (one,) = numbers(session.query("SELECT COUNT(*) FROM t WHERE sex = 'f'"))
        each = numbers(session.query(BY_SEX))[0]
    assert NOTE not in found.notes
    assert float(one.hi) - float(one.lo) > float(each.hi) - float(each.lo)  # type: ignore[arg-type]


def test_a_declared_question_that_tables_do_not_prove_is_answered_as_ever(tmp_path: Path) -> None:
    odd = "SELECT COUNT(*) FROM t WHERE a = 1 AND b = 1 AND c = 1"
    (tmp_path / "report.sql").write_text(odd)
    with Session.simulated(parity(tmp_path, 'questions = "report.sql"'), seed=1) as session:
        answer = session.query(odd)
    assert NOTE not in answer.notes
    assert number(answer).proof is not ProofSource.TABLES


# What comes first, and what comes too late ------------------------------------------------------


@pytest.mark.parametrize("measure", [False, True])
def test_the_declaration_is_in_the_transcript_before_any_measurement(
    measure: bool, tmp_path: Path
) -> None:
    policy = declaring(tmp_path, BY_SEX, ILL)
    with Session(policy) as session:
        session.query(ILL, measure=measure)
    first, *others = replay(policy).entries
    assert isinstance(first.content, Declared)
    assert len(first.content.questions) == 2
    assert others
    assert EntryKind.DECLARED not in [each.kind for each in others]


def test_a_public_total_does_not_come_before_the_declaration(tmp_path: Path) -> None:
    (tmp_path / "report.sql").write_text(ILL)
    budget = 'epsilon = 1\ndelta = 1e-6\nprotects = "private-columns"'
    with Session.simulated(world(tmp_path, budget=budget, more=DECLARING), seed=1) as session:
        assert NOTE in session.query(ILL).notes
        kinds = [each.kind for each in session._dataset.doors.transcript.replay()]
    assert kinds[0] == EntryKind.DECLARED


def test_a_declaration_outlives_the_process_and_the_file(tmp_path: Path) -> None:
    policy = declaring(tmp_path, BY_SEX, ILL)
    with Session(policy) as session:
        session.query(BY_SEX)
    (tmp_path / "report.sql").unlink()
    with Session(world(tmp_path, more=PLAIN)) as session:
        assert NOTE in session.query(ILL).notes
        assert NOTE in session.query(BY_SEX).notes


def test_a_file_that_was_changed_declares_nothing_new_and_a_note_says_so(tmp_path: Path) -> None:
    policy = declaring(tmp_path, BY_SEX)
    with Session(policy) as session:
        before = session.query(BY_SEX)
    policy = declaring(tmp_path, ILL)
    with Session(policy) as session:
        late, again = session.query(ILL), session.query(BY_SEX)
    assert NOTE not in late.notes
    assert any("report.sql was changed" in each for each in late.notes)
    assert NOTE in again.notes
    assert again.rows == before.rows


def test_a_file_that_is_named_after_the_start_declares_nothing(tmp_path: Path) -> None:
    with Session(world(tmp_path, more=PLAIN)) as session:
        session.query(BY_SEX)
    policy = declaring(tmp_path, ILL)
    with Session(policy) as session:
        answer = session.query(ILL)
    assert NOTE not in answer.notes
    assert any("named after the first measurement" in each for each in answer.notes)
    assert EntryKind.DECLARED not in [each.kind for each in replay(policy).entries]


def test_a_declaration_that_is_forced_into_the_transcript_late_does_not_count(
    tmp_path: Path,
) -> None:
    with Session(world(tmp_path, more=PLAIN)) as session:
        session.query(BY_SEX)
        doors, text = session._dataset.doors, session._compile(ILL).asked.text
        doors.transcript.append(Declared((text,), doors.edition.policy, doors.edition.data, ""))
    with Session(world(tmp_path, more=PLAIN)) as session:
        assert NOTE not in session.query(ILL).notes


def test_of_two_processes_the_one_that_measured_first_leaves_nothing_to_declare(
    tmp_path: Path,
) -> None:
    policy = declaring(tmp_path, ILL)
    with closing(Session(policy)) as late, closing(Session(world(tmp_path, more=PLAIN))) as first:
        first.query(BY_SEX)
        assert NOTE not in late.query(ILL).notes


# Files that cannot be declared ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{BY_SEX};\n\nSELEC COUNT(*) FROM t;", 3),
        (f"-- by sex\n{BY_SEX};\nSELECT COUNT(*)\nFROM t\nWHERE nobody = 1;", 5),
        (f"{BY_SEX};\nSELECT age, RANK() OVER (ORDER BY age) FROM t;", 2),
        ("SELECT COUNT(*) FROM t WHERE id = 3", 1),
    ],
)
def test_a_statement_that_cannot_be_answered_is_named_before_there_is_a_ledger(
    text: str, line: int, tmp_path: Path
) -> None:
    policy = declaring(tmp_path, text)
    with pytest.raises(Misconfigured, match=f"report.sql, line {line}, declares") as error:
        Session(policy)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "casemate.ledger").exists()


def test_a_file_without_a_statement_or_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="holds no statement"):
        Session(declaring(tmp_path, ""))
    (tmp_path / "report.sql").unlink()
    with pytest.raises(Misconfigured, match=r"`answer.questions` names .*report.sql"):
        Session(world(tmp_path, more=DECLARING))


def test_strategies_that_share_the_budget_need_a_number_of_questions(tmp_path: Path) -> None:
    more = DECLARING.replace("warm", "gaussian")
    with pytest.raises(Misconfigured, match=r"`answer\.questions` names a file; `gaussian` needs"):
        Session(declaring(tmp_path, BY_SEX, more=more))


# Coverage ---------------------------------------------------------------------------------------

BY_KIND = "SELECT kind, COUNT(*) FROM t GROUP BY kind"
MEAN = "SELECT ill, AVG(age) FROM t GROUP BY ill"
SHARE = "SELECT ill, AVG(CASE WHEN kind = 1 THEN 1 ELSE 0 END) FROM t GROUP BY ill"


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Protected]]:
    folder, random = tmp_path_factory.mktemp("declared"), Random("declared")
    (folder / "report.sql").write_text(f"{BY_KIND};{MEAN};{SHARE}")
    rows = [apart(random) for _ in range(3000)]
    budget = f"epsilon = 1\n{LAWS['gaussian']}"
    made = Protected.of(
        folder, "declared", PERSON, rows, columns=BINNED, more=DECLARING, budget=budget
    )
    with made as about:
        yield [about]


def by_kind(talk: Talk) -> None:
    talk.ask(BY_KIND)


def mean(talk: Talk) -> None:
    talk.ask(MEAN)


def test_declared_counts_are_covered_and_much_narrower_ones_would_not_be(
    declared: list[Protected], seed: int
) -> None:
    found = hold(declared, by_kind, 14, seed)
    with pytest.raises(AssertionError):
        found.require("tables", 16)


def share(talk: Talk) -> None:
    talk.ask(SHARE)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [mean, share])
def test_declared_quotients_are_covered_and_narrower_ones_would_not_be(
    declared: list[Protected], seed: int, asked: Scenario
) -> None:
    found = hold(declared, asked, 600, seed)
    with pytest.raises(AssertionError):
        found.require("tables", 1.6)


@pytest.mark.slow
def test_declared_bounds_that_are_narrower_by_three_eighths_would_not_hold(
    declared: list[Protected], seed: int
) -> None:
    found = hold(declared, by_kind, 600, seed)
    with pytest.raises(AssertionError):
        found.require("tables", 1.6)


class Anything(frozenset[str]):
    """As if everything had been declared."""

    def __contains__(self, _: object) -> bool:
        return True


@pytest.mark.slow
def test_declaring_what_looked_high_after_the_noise_was_seen_would_break_coverage(
    declared: list[Protected], seed: int
) -> None:
    hold(declared, unites, 40, seed)  # nobody can declare then
    forced = mock.patch.object(constructions, "declared_texts", return_value=Anything())
    with forced, pytest.raises(AssertionError):
        hold(declared, unites, 80, seed)
