"""The commands `casemate track server`, `site` and `watch`, as processes and as mistakes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from servers import NatsServer, free_port
from track.transport.eventually import eventually

from casemate.errors import Refused
from casemate.report.terminal import Exit, TrackerChoice, end_of
from casemate.track.commands import app, as_line
from casemate.track.journal import FileJournal
from casemate.track.modes import TRACKERS
from casemate.track.service.serving import Sight
from casemate.track.setting import Count

PROGRAM = """
import sys
from casemate.track.commands import app
sys.exit(app(sys.argv[1:], result_action="return_int_as_exit_code_else_zero"))
"""


def started(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], text=True, **options)


def site_fed(lines: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A site that is fed some lines, and has ended."""
    return subprocess.run(
        [sys.executable, "-m", "casemate", "track", "site", *arguments],
        input=lines, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def wrong(*arguments: str) -> str:
    """What a command says that must fail before it connects to anything."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is asserted below
        app(arguments, print_error=False, exit_on_error=False)
    code, sentence = end_of(caught.value)
    assert code == Exit.WRONG_INPUT and "\n" not in sentence, sentence
    return sentence


def watched(address: str, *options: str) -> list[dict[str, Any]]:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, "watch", address, "--format", "json", *options],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return [json.loads(line) for line in found.stdout.splitlines()]


def through(address: str, folder: Path) -> None:
    """A server, a site fed with numbers, one fed with lines, and a watcher."""
    (folder / "names").write_text("# the other one\nb\n\n")
    server = started(
        "server", address, "a", f"@{folder / 'names'}",
        "--alpha", "0.05", "--mode", "deterministic", "--interval", "0.1",
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert server.stderr is not None
    assert server.stderr.readline() == (
        f"serving 2 sites at {address}; the count begins with what the sites answer, since a "
        f"server keeps nothing\n"
    )
    sites = [
        started("site", address, "a", "--journal", str(folder / "a.journal"),
                stdin=subprocess.PIPE, stderr=subprocess.PIPE),
        started("site", address, "b", "--lines", "--heartbeat", "0.2",
                stdin=subprocess.PIPE, stderr=subprocess.PIPE),
    ]  # fmt: skip
    assert sites[0].communicate("30\n12\n")[1] == "site 'a' has counted 42\n"
    assert sites[1].stdin is not None
    sites[1].stdin.write("x\n" * 58)
    sites[1].stdin.flush()
    eventually(lambda: watched(address, "--once")[0]["lo"] == 100, 60)
    (found,) = watched(address, "--once")
    assert found["schema"] == "casemate.track-count/1" and found["lo"] == 100
    assert found["lo"] <= found["value"] <= found["hi"] and found["confidence"] == 1.0
    assert set(found) == {
        "schema", "value", "lo", "hi", "confidence", "lag", "epoch", "stale_sites", "words",
        "words_per_second",
    }  # fmt: skip
    sites[1].send_signal(signal.SIGTERM)
    assert sites[1].communicate()[1] == (
        "site 'b' has no --journal: its count is lost when it has ended and the server is "
        "started again\nsite 'b' has counted 58\n"
    )
    assert sites[1].returncode == 0
    server.send_signal(signal.SIGINT)
    assert server.communicate()[1] == "" and server.returncode == Exit.INTERRUPTED


@pytest.mark.parametrize(
    "broker",
    [
        pytest.param("nats_server", marks=pytest.mark.nats),
        pytest.param("redis_server", marks=pytest.mark.redis),
    ],
)
def test_a_tracker_of_processes_counts_what_its_sites_are_fed(
    broker: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    through(request.getfixturevalue(broker).address(), tmp_path)


@pytest.mark.nats
def test_watching_where_nobody_serves_ends_with_a_sentence(nats_server: NatsServer) -> None:
    sentence = wrong("watch", nats_server.address(), "--wait", "0.3")
    assert "no server showed a count for 0.3 s; one may still be waiting for its sites" in sentence
    assert "or start `casemate track server` on this address, or check the subject" in sentence


@pytest.mark.nats
def test_a_rate_makes_items_by_itself(nats_server: NatsServer) -> None:
    site = started(
        "site", nats_server.address(), "a", "--rate", "100000", stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    with pytest.raises(subprocess.TimeoutExpired):
        site.wait(2)
    site.terminate()
    said = site.communicate()[1].splitlines()[1]
    assert int(said.split()[-1].replace(",", "")) > 0


@pytest.mark.nats
@pytest.mark.parametrize("kept", [True, False])
def test_a_site_whose_count_nobody_took_says_so_and_fails(
    kept: bool, nats_server: NatsServer, tmp_path: Path
) -> None:
    journal = ("--journal", os.fspath(tmp_path / "a.journal")) if kept else ()
    address = nats_server.address()
    found = site_fed("30\n12\n", address, "a", *journal)
    assert found.returncode == Exit.REFUSED
    *first, counted, sentence = found.stderr.splitlines()
    assert counted == "site 'a' has counted 42" and len(first) == (not kept)
    assert f"no server at {address} answered site 'a', so its count 42 was not taken" in sentence
    assert "(a server says so if it does not know it), or start the server" in sentence
    assert ("a.journal" in sentence) == kept and ("lost" in sentence) != kept


@pytest.mark.nats
def test_a_site_that_nobody_answers_says_so_after_a_while(nats_server: NatsServer) -> None:
    site = started(
        "site", nats_server.address(), "a", stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert site.stderr is not None
    assert "has no --journal" in site.stderr.readline()
    said = site.stderr.readline()
    site.terminate()
    site.communicate()
    assert said.startswith("no server has answered yet at nats://127.0.0.1:")
    assert said.endswith("; start one, or check the address and the name 'a'\n")
    assert site.returncode == 0  # it had counted nothing


@pytest.mark.nats
def test_a_second_server_of_a_subject_is_refused_and_one_after_a_kill_is_not(
    nats_server: NatsServer,
) -> None:
    address = nats_server.address()
    serve = ("server", address, "a", "--alpha", "0.1", "--patience", "0.5")
    first = started(*serve, stderr=subprocess.PIPE)
    assert first.stderr is not None
    assert first.stderr.readline().startswith("serving 1 site at ")
    watched(address, "--once")
    with pytest.raises(Refused, match=r"another server shows counts at nats://.*; stop it, or use"):
        app(serve, print_error=False, exit_on_error=False)
    first.kill()
    first.communicate()
    again = started(*serve, stderr=subprocess.PIPE)
    assert again.stderr is not None
    assert again.stderr.readline().startswith("serving 1 site at ")
    again.terminate()
    again.communicate()


@pytest.mark.nats
@pytest.mark.parametrize(
    ("lines", "code"),
    [("many\n\nmore\n", Exit.FOUND), ("many\n1\n", Exit.REFUSED), ("\n0\n", Exit.DONE)],
)
def test_a_site_fails_for_wrong_lines_only_if_it_counted_nothing_else_and_quiet_is_quiet(
    lines: str, code: Exit, nats_server: NatsServer
) -> None:
    found = site_fed(lines, nats_server.address(), "a", "--quiet")
    assert found.returncode == code
    if code is Exit.FOUND:
        said = site_fed(lines, nats_server.address(), "a").stderr
        assert "a line of the input is no number of items" in said and found.stderr == ""
        assert "nothing was counted: 2 lines of the input are no numbers of items; use" in said


@pytest.mark.nats
def test_a_site_that_the_server_does_not_know_is_told_so(nats_server: NatsServer) -> None:
    address = nats_server.address()
    server = started("server", address, "paris", "--alpha", "0.1", stderr=subprocess.PIPE)
    assert server.stderr is not None
    assert server.stderr.readline().startswith("serving 1 site at ")
    found = site_fed("42\n", address, "berlin")
    server.terminate()
    server.communicate()
    assert found.returncode == Exit.WRONG_INPUT
    assert "site 'berlin' is none of the sites here; add it to `sites`" in found.stderr


def test_a_journal_of_another_site_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "lima.journal"
    FileJournal(path, "lima").close()
    sentence = wrong("site", "x://y", "tokyo", "--journal", os.fspath(path))
    assert sentence == (f"the journal {path} belongs to site 'lima'; name another file for 'tokyo'")


def test_a_server_may_run_every_mode_of_a_tracker() -> None:
    assert get_args(TrackerChoice) == TRACKERS


@pytest.mark.parametrize("command", ["server {} a --alpha 0.1", "site {} a", "watch {}"])
def test_a_broker_that_is_not_there_is_one_sentence_without_the_password(command: str) -> None:
    address = f"nats://me:hunter2@127.0.0.1:{free_port()}/x"
    sentence = wrong(*command.format(address).split())
    assert "no NATS server answers at nats://127.0.0.1:" in sentence
    assert "hunter2" not in sentence


def test_a_line_says_everything_about_a_count() -> None:
    stale = tuple(f"edge-{i}" for i in range(7))
    count = Count(12345.6, 12000, 13000, 0.99, 0.25, 7, stale, 4321)
    assert as_line(Sight(count, 12.5)) == (
        "12,346  12,000 .. 13,000 (0.99 sure but for the stale)  words 4,321 (12.5/s)  lag 0.25 s  "
        "stale: edge-0, edge-1, edge-2, edge-3, edge-4 and 2 more"
    )
    sure = Count(1.0, 1, 1, 1.0, 0.0, 7, (), 3)
    assert as_line(Sight(sure, None)) == "1  1 .. 1 (sure)  words 3  lag 0.00 s"
