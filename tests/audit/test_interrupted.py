"""An audit that is ended early says nothing that the whole audit contradicts.

Small random tables with extremes, medians, missing values, whole numbers and people with several
rows are audited to the end, and once for each check that an interrupt may come in or after.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from oracles.class_tables import Flavour, Statement, World, random_log, random_world

from casemate.audit import Audit, AuditOptions, Stop
from casemate.audit import decide_exposure as deciding
from casemate.audit.decide_exposure import CHECKS, AuditProgress, Check, Stage
from casemate.audit.findings import Findings
from casemate.audit.result import Audited, Verdict
from casemate.published import Knowledge
from casemate.table import Table

FLAVOURS: list[Flavour] = ["plain", "compared", "category", "second", "known", "constant"]
FLAVOURS += ["varying"]
ENDED = [place for place, each in enumerate(CHECKS) if each.stage in (Stage.SEARCH, Stage.MORE)]
SEED_OF_A_LATE_FINDING = 2
"""Of a log that exposes somebody by a search only."""
SEARCHES = {each.what for each in CHECKS if each.stage is Stage.SEARCH}


def audit(world: World, log: Sequence[Statement], table: Table, stop: Stop | None) -> Audited:
    return Audit.of(
        [statement.sql for statement in log],
        table,
        knowledge=Knowledge(known=world.known),
        options=AuditOptions(seconds=20),
        stop=stop,
    )


Interrupt = Callable[[Check], Callable[[Findings], None]]


def before(_check: Check) -> Callable[[Findings], None]:
    def run(_found: Findings) -> None:
        raise KeyboardInterrupt

    return run


def after(check: Check) -> Callable[[Findings], None]:
    """All that a check notes is there, and it does not count as finished."""

    def run(found: Findings) -> None:
        check.run(found)
        raise KeyboardInterrupt

    return run


def ended_early(
    world: World, log: Sequence[Statement], table: Table, interrupt: Interrupt
) -> Iterator[tuple[Check, Audited]]:
    """The audit, interrupted in each check in turn."""
    for place in ENDED:
        check = CHECKS[place]
        broken = replace(check, run=interrupt(check))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(deciding, "CHECKS", (*CHECKS[:place], broken, *CHECKS[place + 1 :]))
            found = audit(world, log, table, Stop())
        if found.interrupted:  # the check was wanted
            yield check, found


Secret = tuple[object, str, object]


def secrets(found: Audited) -> set[Secret]:
    exposed = {(e.record, e.column, e.value) for e in found.exposed if not e.total}
    return exposed | {(each.record, each.column, None) for each in found.missing}


def totals(found: Audited) -> set[Secret]:
    return {(each.person, each.column, each.value) for each in found.exposed if each.total}


def assert_not_contradicted(part: Audited, whole: Audited, check: Check, said: object) -> None:
    told, open_ = secrets(part), {*part.undecided, *part.unchecked}
    people = whole.people
    assert told <= secrets(whole), said
    assert {each for each in secrets(whole) - told if each[0] not in open_} == set(), said
    known = {(record, column) for record, column, _ in secrets(whole)}
    for person, column, _ in totals(part) - totals(whole):
        first = people.first_of(person)  # type: ignore[arg-type]  # a person
        rows = [] if first is None else people.rows(first).tolist()
        assert all((people.record(row), column) in known for row in rows), said
    for person, _, _ in totals(whole) - totals(part):
        first = people.first_of(person)  # type: ignore[arg-type]  # a person
        assert first is not None and people.record(first) in open_, said
    if part.verdict is Verdict.NONE_EXPOSED:
        assert whole.verdict is Verdict.NONE_EXPOSED and check.what not in SEARCHES, said
    assert (part.verdict is Verdict.EXPOSED) is bool(part.exposed or part.missing)
    assert not set(part.undecided) & set(part.unchecked), said
    explained = {record for each in part.reasons for record in each.records}
    assert explained == open_, said


def assert_all_sound(rng: Random, flavour: Flavour, folder: Path, interrupt: Interrupt) -> int:
    """Of one random table and log; how many values an early end left open."""
    world = random_world(rng, flavour, whole=rng.random() < 0.7)
    log = random_log(rng, flavour)
    left = 0
    with Table.open(world.policy(folder)) as table:
        whole = audit(world, log, table, None)
        assert not whole.interrupted
        for check, part in ended_early(world, log, table, interrupt):
            said = world, [each.sql for each in log], check.what
            assert_not_contradicted(part, whole, check, said)
            left += len(secrets(whole) - secrets(part))
    return left


@pytest.mark.parametrize("interrupt", [before, after])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_an_audit_that_is_interrupted_in_any_check_says_nothing_that_is_not_so(
    flavour: Flavour, interrupt: Interrupt, tmp_path: Path
) -> None:
    rng = Random(f"{flavour} {interrupt.__name__}")
    assert_all_sound(rng, flavour, tmp_path, interrupt)


@pytest.mark.slow
@pytest.mark.parametrize("interrupt", [before, after])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_many_audits_that_are_interrupted_say_nothing_that_is_not_so(
    flavour: Flavour, interrupt: Interrupt, tmp_path: Path
) -> None:
    rng = Random(f"many {flavour} {interrupt.__name__}")
    left = sum(assert_all_sound(rng, flavour, tmp_path, interrupt) for _ in range(20))
    assert left or flavour == "known"


def test_an_audit_that_forgets_whom_it_did_not_look_at_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the check that leaves people open, somebody whom a search exposes is called safe."""
    forgetful = tuple(each for each in CHECKS if each.run is not deciding.not_looked_at)
    assert len(forgetful) == len(CHECKS) - 1
    monkeypatch.setattr(f"{__name__}.CHECKS", forgetful)
    places = [p for p, each in enumerate(forgetful) if each.stage is Stage.SEARCH]
    monkeypatch.setattr(f"{__name__}.ENDED", places)
    with pytest.raises(AssertionError):
        assert_all_sound(Random(SEED_OF_A_LATE_FINDING), "plain", tmp_path, before)


# Through the doors of the library -----------------------------------------------------------------

LOG = [
    "SELECT team, SUM(pay) FROM t GROUP BY team",
    "SELECT SUM(pay) FROM t WHERE n < 5",
    "SELECT MAX(pay) FROM t WHERE n = 1",
]


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    rows = [(1, "a", 3), (2, "a", 5), (3, "b", 9), (4, "c", 1), (5, "c", 1)]
    path.write_text("n,team,pay\n" + "".join(f"{n},{team},{pay}\n" for n, team, pay in rows))
    return path


def test_a_stop_ends_the_audit_with_what_is_proved_so_far(staff: Path) -> None:
    whole, stop, seen = Audit.of(LOG, staff, private="pay"), Stop(), list[AuditProgress]()

    def tell(stands: AuditProgress) -> None:
        seen.append(stands)
        if stands.exposed is not None:
            stop.now()

    found = Audit.of(LOG, staff, private="pay", stop=stop, progress=tell)
    assert found.interrupted and not whole.interrupted
    assert {each.record for each in found.exposed} == {3, 4, 5}  # by rank
    assert {each.record for each in whole.exposed} == {1, 2, 3, 4, 5}
    assert found.undecided == (1, 2) and found.verdict is Verdict.EXPOSED
    (reason,) = found.reasons
    assert reason.reason.startswith("the audit was interrupted before values that follow within")
    assert reason.records == (1, 2) and found.undeclared == ("bounds",)
    assert seen[0].exposed is None
    assert (seen[2].exposed, seen[2].left) == (3, 2)
    assert any(
        "groups and insiders" in each and "interrupted" in each for each in found.assumptions
    )


def test_without_a_stop_an_interrupt_is_raised(
    staff: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [replace(each, run=before(each)) for each in CHECKS]
    monkeypatch.setattr(deciding, "CHECKS", (*CHECKS[:3], *broken[3:]))
    with pytest.raises(KeyboardInterrupt):
        Audit.of(LOG, staff, private="pay")


@pytest.mark.parametrize("place", [0, 1])
def test_an_interrupt_before_the_ranks_are_known_leaves_nothing_to_say(
    place: int, staff: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(CHECKS[place], run=before(CHECKS[place]))
    monkeypatch.setattr(deciding, "CHECKS", (*CHECKS[:place], broken, *CHECKS[place + 1 :]))
    with pytest.raises(KeyboardInterrupt):
        Audit.of(LOG, staff, private="pay", stop=Stop())


def test_the_same_log_with_no_time_for_searches_leaves_open_what_they_would_decide(
    staff: Path,
) -> None:
    found = Audit.of(LOG, staff, private="pay", options=AuditOptions(seconds=1e-9))
    assert {3, 4, 5} <= {each.record for each in found.exposed}
    assert not found.interrupted and found.verdict is Verdict.EXPOSED
    assert all("limit of 1e-09 seconds" in each.reason for each in found.reasons)


def test_statements_that_nobody_came_to_look_at_are_not_said_to_be_about_nobody(
    staff: Path,
) -> None:
    stop = Stop()
    stop.now()
    log = [*LOG, "SELECT SUM(pay) FROM t WHERE n > 9", "SELECT MIN(pay) FROM t WHERE n > 9"]
    sum_, least = len(LOG) + 1, len(LOG) + 2
    cut, whole = (Audit.of(log, staff, private="pay", stop=each) for each in (stop, None))
    assert named_as_about_nobody(cut) == [sum_]
    assert named_as_about_nobody(whole) == [sum_, least]


def named_as_about_nobody(found: Audited) -> list[int]:
    return [int(each.split()[1]) for each in found.assumptions if "is about nobody" in each]


def test_nothing_is_left_open_about_people_who_are_publicly_without_a_value(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("n,pay\n1,3\n2,\n3,9\n4,1\n")
    policy = tmp_path / "t.toml"
    policy.write_text(
        '[table]\nsource = "t.csv"\n[columns.n]\nrole = "public"\n[columns.pay]\n'
        'role = "private"\ntype = "integer"\nmin = 0\nmax = 10\nmissing = "{}"\n'
    )
    said = policy.read_text()
    for missing, left in (("public", (1, 3, 4)), ("secret", (1, 2, 3, 4))):
        policy.write_text(said.format(missing))
        stop = Stop()
        stop.now()
        found = Audit.of(["SELECT MAX(pay), SUM(pay) FROM t"], policy, stop=stop)
        assert (found.undecided, found.unchecked) == (left, ())
        assert found.undeclared == ()
