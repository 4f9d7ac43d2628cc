"""`casemate audit watch`: every prefix of a log as an audit has it; nothing lost, nothing twice."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest
from audit.small_world import opened, random_log, random_world

from casemate import Audit
from casemate.audit import AuditOptions
from casemate.audit.watch import IncrementalAudit
from casemate.cli.main import exit_code
from casemate.errors import Misconfigured
from casemate.published import Knowledge
from casemate.query.parse import GrowingLog, Logged
from casemate.table import Table

Captured = pytest.CaptureFixture[str]
STAFF = """team,name,grade,pay
red,ana,1,3100
red,ben,2,2900
red,cem,,4000
blue,dora,1,5200
blue,emil,2,3300
blue,fay,2,2800
blue,gus,3,3900
"""
SUMS = [
    "SELECT SUM(pay) FROM staff",
    "SELECT team, AVG(pay), COUNT(*) FROM staff GROUP BY team",
    "SELECT SUM(pay) FROM staff WHERE name <> 'dora'",
    "SELECT SUM(pay) FROM staff WHERE team = 'red' AND name <> 'ana'",
]
TABLE = ("--table", "staff.csv", "--private", "pay")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "staff.csv").write_text(STAFF)
    return tmp_path


def once(capsys: Captured, log: str, *options: str, code: int = 0) -> list[dict[str, Any]]:
    """The events of one run."""
    arguments = ["audit", "watch", log, *TABLE, "--once", "--format", "json", *options]
    assert exit_code(arguments) == code, capsys.readouterr().err
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def refused(capsys: Captured, log: str, *options: str) -> str:
    assert exit_code(["audit", "watch", log, *TABLE, "--once", *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    return printed.err


# Every prefix -----------------------------------------------------------------------------------


def prefixes(table: Table, log: list[Logged]) -> Iterator[tuple[set[Any], set[Any]]]:
    """After each statement, whose values a watch has said, and whose an audit of all says."""
    watched = IncrementalAudit(table, Knowledge(), AuditOptions(), "postgres")
    said: set[Any] = set()
    for number, entry in enumerate(log, start=1):
        step = watched.add(entry)
        said |= {(f.record, f.person, f.column) for f in step.findings}
        found = Audit.of(log[:number], table)
        people = found.people
        reported: list[Any] = [*found.exposed, *found.missing]
        places = [None if e.record is None else people.place(e.record) for e in reported]
        yield (
            said,
            {
                (p, people.first_of(e.person) if p is None else int(people.first[p]), e.column)
                for p, e in zip(places, reported, strict=True)
            },
        )


CONDITIONS = ["team = 'red'", "team = 'blue'", "grade = 1", "grade = 2", "grade IS NULL", "TRUE"]
CONDITIONS += [f"name <> '{name}'" for name in ("ana", "ben", "dora", "gus")]
CONDITIONS += ["name IN ('ana', 'dora', 'emil')", "grade > 1 OR name = 'fay'"]
FORMS = [
    "SELECT SUM(pay) FROM s WHERE {}",
    "SELECT AVG(pay) FROM s WHERE {}",
    "SELECT SUM(pay) / COUNT(*) FROM s WHERE {}",
    "SELECT COUNT(*) FROM s WHERE {}",
    "SELECT team, SUM(pay) FROM s WHERE {} GROUP BY team",
    "SELECT grade, AVG(pay), COUNT(*) FROM s WHERE {} GROUP BY grade",
    "SELECT team, grade, SUM(pay) FROM s WHERE {} GROUP BY team, grade HAVING COUNT(*) > 1",
    "SELECT SUM(CASE WHEN {} THEN pay ELSE 0 END) FROM s",
    "SELECT team, SUM(pay) FILTER (WHERE {}) FROM s GROUP BY team",
    "SELECT SUM(pay) FROM s WHERE {} AND FALSE",
    "SELECT no_such FROM s WHERE {}",
]
OTHERS = [
    "SELECT MAX(pay) FROM s WHERE {}",
    "SELECT SUM(2 * pay) FROM s WHERE {}",
    "SELECT ROUND(AVG(pay)) FROM s WHERE {}",
    "SELECT COUNT(*) FROM s WHERE {} AND pay > 3000",
]


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_of_unbounded_numbers_are_what_an_audit_of_every_prefix_says(
    seed: int, folder: Path
) -> None:
    rng = Random(seed)
    forms = FORMS if seed % 3 else [*FORMS, *OTHERS]
    log = [Logged(rng.choice(forms).format(rng.choice(CONDITIONS)), 1) for _ in range(9)]
    with Table.open("staff.csv", private=("pay",)) as table:
        for said, audited in prefixes(table, log):
            assert said == audited


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_categories_and_missing_values_are_what_an_audit_of_every_prefix_says(
    seed: int, tmp_path: Path
) -> None:
    rng = Random(seed)
    world = random_world(rng)
    log = [Logged(sql, 1) for sql in random_log(rng, world, lambda _: True)[:6]]
    with opened(world, tmp_path) as table:
        for said, audited in prefixes(table, log):
            assert said >= audited  # a total may give way to the rows it is made of


# The options of an audit ------------------------------------------------------------------------


def test_a_watch_reads_cells_and_missing_values_as_an_audit_with_the_same_options_does(
    folder: Path, capsys: Captured
) -> None:
    """Nobody's pay can be read without the options, and which were given is part of the state."""
    (folder / "staff.csv").write_text(STAFF.replace("5200", "N").replace("3100", "EUR 3'100"))
    (folder / "d.sql").write_text("".join(f"{each};\n" for each in SUMS))
    written = ("--missing-marker", "N", "--thousands", "'", "--currency", "EUR")
    events = once(capsys, "d.sql", *written, "--missing", "public")
    audit = ["audit", "d.sql", *TABLE, *written, "--missing", "public", "--format", "json"]
    assert exit_code(audit) == 0
    found = json.loads(capsys.readouterr().out)
    watched = {each["record"] for event in events for each in event["newly_exposed"]}
    assert watched == {each["record"] for each in found["exposed"]} == {1}
    assert "another table, policy or set of options" in refused(
        capsys, "d.sql", *written, "--missing", "secret"
    )


def test_a_file_that_goes_from_a_folder_ends_the_watch_with_its_name(
    folder: Path, capsys: Captured
) -> None:
    logs = folder / "logs"
    logs.mkdir()
    for place, sql in enumerate(SUMS[:2]):
        (logs / f"{place}.sql").write_text(f"{sql};\n")
    log = GrowingLog(logs)
    assert len(list(log.arrived())) == 2
    once(capsys, "logs")
    (logs / "1.sql").unlink()
    with pytest.raises(Misconfigured, match=r"1\.sql is gone, and a watch needs all"):
        list(log.arrived())
    assert "1.sql is gone" in refused(capsys, "logs")


# One run after the other ------------------------------------------------------------------------


def test_an_event_names_the_statement_its_place_and_the_people(
    folder: Path, capsys: Captured
) -> None:
    (folder / "d.sql").write_text(";\n".join([*SUMS[:3], "SELECT nothing", ""]))
    assert exit_code(["audit", "watch", "d.sql", *TABLE, "--once", "--quiet"]) == 0
    assert capsys.readouterr().out == (
        "query 3 (d.sql:3): 1 person newly exposed (1 in all): record 4\n"
        "query 4 (d.sql:4): not audited: there is no column nothing\n"
    )


def test_a_file_that_grows_is_taken_up_where_it_was_left(folder: Path, capsys: Captured) -> None:
    log = folder / "d.sql"
    log.write_text("")
    said = []
    for place, sql in enumerate(SUMS):
        with log.open("a") as file:
            file.write(sql[: place + 20])
        assert once(capsys, "d.sql") == []  # half a statement waits
        with log.open("a") as file:
            file.write(sql[place + 20 :] + "; -- done; \n")
        said += once(capsys, "d.sql")
        assert once(capsys, "d.sql") == []
    assert [(each["query"], each["line"], each["exposed"]) for each in said] == [
        (3, 3, 1),
        (4, 4, 2),
    ]
    assert said[1]["newly_exposed"] == [
        {"record": 1, "person": 1, "column": "pay", "by": 4, "proof": "rank"}
    ]


def test_a_folder_counts_new_files_and_files_that_grow(folder: Path, capsys: Captured) -> None:
    (folder / "logs").mkdir()
    (folder / "logs/b.sql").write_text(f"{SUMS[0]};")
    assert once(capsys, "logs") == []
    (folder / "logs/a.sql").write_text(f"{SUMS[1]};")
    assert once(capsys, "logs") == []
    with (folder / "logs/b.sql").open("a") as file:
        file.write(f"\n\n{SUMS[2]};")
    (event,) = once(capsys, "logs")
    assert (event["query"], event["file"], event["line"]) == (3, "b.sql", 3)
    (folder / "logs/c.sql").write_text(f"{SUMS[3]};")
    (event,) = once(capsys, "./logs/.")
    assert (event["query"], event["file"], event["exposed"]) == (4, "c.sql", 2)


def test_a_csv_of_answers_is_followed_record_by_record(folder: Path, capsys: Captured) -> None:
    log = folder / "d.csv"
    log.write_text('sql,answer\n"SELECT SUM(pay)\nFROM staff",25200\n')
    assert once(capsys, "d.csv") == []
    with log.open("a") as file:
        file.write("SELECT SUM(pay) FROM staff WHERE name <> 'dora',2000")
    assert once(capsys, "d.csv") == []
    with log.open("a") as file:
        file.write("0\n,7\n")
    first, second = once(capsys, "d.csv")
    assert (first["query"], first["line"], first["newly_exposed"][0]["record"]) == (2, 4, 4)
    assert (second["line"], second["refused"]) == (5, ["there is no statement on this line"])


def test_keys_are_named_with_reveal_alone_and_values_never(folder: Path, capsys: Captured) -> None:
    (folder / "p.toml").write_text(
        '[table]\nsource = "staff.csv"\nkey = "name"\n[columns.name]\nrole = "identifier"\n'
        '[columns.team]\nrole = "public"\n[columns.pay]\nrole = "private"\nunbounded = true\n'
    )
    (folder / "d.sql").write_text(
        "SELECT SUM(pay) FROM s; SELECT MIN(pay) FROM s WHERE team = 'red';"
        "SELECT MAX(pay) FROM s WHERE team = 'red'; SELECT SUM(pay) FROM s WHERE team = 'red';"
        "SELECT AVG(pay) FROM s WHERE team IN ('red', 'blue') AND team = 'red';"
    )
    common = ["audit", "watch", "d.sql", "--table", "p.toml", "--once", "--quiet"]
    for form in ("text", "json"):
        assert exit_code([*common, "--state", f"1{form}", "--format", form]) == 0, (
            capsys.readouterr().err
        )
        hidden = capsys.readouterr().out
        assert exit_code([*common, "--state", f"2{form}", "--format", form, "--reveal"]) == 0
        shown = capsys.readouterr().out
        for value in ("3100", "2900", "4000"):
            assert value not in hidden + shown
        assert "ana" not in hidden
    assert "3100" not in (folder / "2json").read_text()


def test_somebody_exposed_fails_a_run_that_asked_for_it(folder: Path, capsys: Captured) -> None:
    (folder / "d.sql").write_text(f"{SUMS[0]};")
    assert once(capsys, "d.sql", "--fail-on", "exposed") == []
    (folder / "d.sql").write_text(";".join(SUMS) + ";")
    assert len(once(capsys, "d.sql", "--fail-on", "exposed", code=1)) == 2
    assert once(capsys, "d.sql", "--fail-on", "exposed", code=1) == []
    assert exit_code(["audit", "watch", "d.sql", *TABLE, "--fail-on", "exposed"]) == 2


def test_what_bounds_leave_open_at_a_large_size_is_said_once(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casemate.audit.watch.exposure.MAX_STORED_ENTRIES", 7)
    monkeypatch.setattr("casemate.published.plain_sums.MAX_STORED_ENTRIES", 7)
    (folder / "d.sql").write_text(";\n".join([*SUMS, ""]))
    first, *others = once(capsys, "d.sql", "--bounds", "0:10000")
    assert (first["query"], first["verdict"]) == (2, "incomplete") and "bounds" in first["doubts"][
        0
    ]
    assert [(each["verdict"], each["doubts"]) for each in others] == 2 * [("exposed", [])]


# States -----------------------------------------------------------------------------------------


def test_a_state_that_does_not_fit_is_refused_with_a_sentence(
    folder: Path, capsys: Captured
) -> None:
    (folder / "d.sql").write_text(";".join(SUMS) + ";")
    once(capsys, "d.sql")
    state = folder / "d.sql.casemate-watch"
    good = state.read_text()
    assert "another table, policy" in refused(capsys, "d.sql", "--bounds", "0:9999")
    (folder / "known.csv").write_text("record,value\n1,3100\n")
    assert "another table, policy" in refused(capsys, "d.sql", "--known", "known.csv")
    state.write_text(good.replace("watch-state/1", "watch-state/0"))
    assert "watch-state/0" in refused(capsys, "d.sql")
    for garbled in ("", "{", "[]", "7", good[:-40], good.replace('"runs"', '"run"')):
        state.write_text(garbled)
        assert "not the state of a watch" in refused(capsys, "d.sql")
    state.write_text(good)
    (folder / "d.sql").write_text((";".join(SUMS) + ";").replace("dora", "emil"))
    assert "has changed" in refused(capsys, "d.sql")
    (folder / "d.sql").write_text(f"{SUMS[0]};")
    assert "d.sql was cut or replaced" in refused(capsys, "d.sql")
    assert "does not exist" in refused(capsys, "e.sql")


# Kills ------------------------------------------------------------------------------------------

PACKAGE = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
LIFE = """
import os, signal, sys
from casemate.audit.watch import state, watching
from casemate.cli.main import exit_code
from casemate.errors import Misconfigured
last, count = int(sys.argv[1]), 0
def stepped(call):
    def step(*arguments, **options):
        die()
        result = call(*arguments, **options)
        die()
        return result
    return step
def die():
    global count
    if count == last:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
state.WatchState.write = stepped(state.WatchState.write)
watching.EventWords.as_json = stepped(watching.EventWords.as_json)
watching.IncrementalAudit.add = stepped(watching.IncrementalAudit.add)
sys.exit(exit_code(sys.argv[2:]))
"""


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_no_event_and_repeats_at_most_the_last(
    step: int, folder: Path
) -> None:
    (folder / "d.sql").write_text(";".join([*SUMS, "SELECT nothing", SUMS[0]]) + ";")
    moment, ended = 0, -signal.SIGKILL
    while ended == -signal.SIGKILL:
        state = folder / f"state-{moment}"
        said: list[int] = []
        for last in (moment, moment // 2 + 1, 10**6):
            command = [sys.executable, "-c", LIFE, str(last), "audit", "watch", "d.sql", *TABLE]
            command += ["--once", "--format", "json", "--state", str(state)]
            run = subprocess.run(command, capture_output=True, text=True, check=False, env=PACKAGE)
            ended = run.returncode if last == moment else ended
            here = [json.loads(line)["query"] for line in run.stdout.splitlines()]
            assert not set(said[:-1]) & set(here)
            said += here
        assert sorted(set(said)) == [3, 4, 5] and run.returncode == 0
        assert json.loads(state.read_text())["queries"] == 6
        moment += step
    assert moment > 20


def test_a_watch_that_goes_on_ends_with_130_and_is_taken_up_again(folder: Path) -> None:
    log = folder / "d.sql"
    log.write_text(f"{SUMS[0]};\n")
    command = [sys.executable, "-m", "casemate", "audit", "watch", "d.sql", *TABLE]
    process = subprocess.Popen(
        [*command, "--interval", "0.05"], stdout=subprocess.PIPE, text=True, env=PACKAGE
    )
    assert process.stdout is not None
    with log.open("a") as file:
        file.write(f"{SUMS[1]};\n{SUMS[2]};\n")
    assert process.stdout.readline().startswith("query 3 (d.sql:3): 1 person newly exposed")
    with log.open("a") as file:
        file.write(f"{SUMS[3]};\n")
    last = process.stdout.readline()
    assert last.startswith("query 4 (d.sql:4): 1 person newly exposed (2 in all)")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.stdout.close()
    after = subprocess.run(
        [*command, "--once"], capture_output=True, text=True, check=False, env=PACKAGE
    )
    assert after.returncode == 0 and after.stdout in ("", last)  # ended while it was printed


# Webhooks ---------------------------------------------------------------------------------------


class Office(HTTPServer):
    """Takes events, once it has failed so many times."""

    def __init__(self, failures: int) -> None:
        super().__init__(("127.0.0.1", 0), Desk)
        self.failures, self.events = failures, list[dict[str, Any]]()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/events"


class Desk(BaseHTTPRequestHandler):
    server: Office

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.failures -= 1
        if self.server.failures >= 0:
            self.send_response(302 if self.server.failures % 2 else 500)
            self.send_header("Location", "/elsewhere")
        else:
            self.server.events.append(json.loads(body))
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_webhook_that_fails_gets_every_event_later_in_order_and_once(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casemate.audit.watch.webhook.FIRST_WAIT_SECONDS", 0.01)
    office = Office(failures=4)
    (folder / "d.sql").write_text(";".join(SUMS) + ";")
    said = once(capsys, "d.sql", "--webhook", office.url)
    assert [each["query"] for each in said] == [3, 4] and office.events == []
    kept = json.loads((folder / "d.sql.casemate-watch").read_text())["pending"]
    assert [each["event"]["query"] for each in kept] == [3, 4]
    assert once(capsys, "d.sql") == []  # without the webhook they stay
    assert once(capsys, "d.sql", "--webhook", office.url) == []
    assert office.events == said
    assert once(capsys, "d.sql", "--webhook", office.url) == []
    assert office.events == said
    office.shutdown()
    office.server_close()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/b", "nowhere", "http://"])
def test_a_webhook_is_an_address_of_the_web(url: str, folder: Path, capsys: Captured) -> None:
    (folder / "d.sql").write_text("")
    assert "http:// or https://" in refused(capsys, "d.sql", "--webhook", url)
