"""The command `casemate attack one-bit`: what it prints, bad input, and Ctrl-C."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from casemate.attack import commands as attack_one_bit
from casemate.attack.one_bit.choice import KnownNoise, OneBitLearnerName
from casemate.attack.one_bit.streams import Weighting
from casemate.cli.main import ended

Captured = pytest.CaptureFixture[str]
TABLE = ("--table", "people.csv", "--private", "pay", "--bounds", "0:100")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{place},{place % 3},{7 * place % 40},x" for place in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["id,area,pay,word", *rows, ""]))
    return tmp_path


def one_bit(*options: str) -> int:
    return ended(["attack", "one-bit", *options])


def found(capsys: Captured, *options: str) -> dict[str, Any]:
    assert one_bit(*options, "--format", "json", "--seed", "1") == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_an_attack_is_an_object(capsys: Captured) -> None:
    fields = found(capsys, *TABLE, "--noise", "laplace:50", "--queries", "3000")
    assert fields["schema"] == "casemate.one-bit/1" and fields["finished"] is True
    assert (fields["dimensions"], fields["queries"], fields["records"]) == (16, 3000, 60)
    assert (fields["learner"], fields["kind"], fields["told"]) == ("kalman", "median", "law")
    assert fields["error"] < fields["baseline"] / 4 and 0.5 < fields["ratio"] < 3
    assert fields["values"] is None and fields["identifiable"] == 16
    assert fields["curve"][-1]["queries"] == 3000


def test_values_are_there_when_they_are_asked_for(capsys: Captured) -> None:
    options = (*TABLE, "--noise", "gaussian:0.001", "--queries", "2000", "--dimensions", "4")
    fields = found(capsys, *options, "--reveal")
    truth = [7 * place % 40 for place in range(60)]
    means = [sum(truth[15 * j : 15 * (j + 1)]) / 15 for j in range(4)]
    assert [each["value"] for each in fields["values"]] == pytest.approx(means, abs=0.01)
    assert [each["group"] for each in fields["values"]] == [
        "id <= 14",
        "14 < id <= 29",
        "29 < id <= 44",
        "id > 44",
    ]


def test_every_learner_can_be_asked_for(capsys: Captured) -> None:
    assert list(get_args(attack_one_bit.LearnerChoice)) == [
        each.value for each in OneBitLearnerName
    ]
    assert list(get_args(attack_one_bit.ToldChoice)) == [each.value for each in KnownNoise]
    assert list(get_args(attack_one_bit.WeightsChoice)) == [each.value for each in Weighting]
    for learner in get_args(attack_one_bit.LearnerChoice)[1:]:
        options = ("--noise", "uniform:50", "--queries", "500", "--learner", learner)
        assert found(capsys, *TABLE, *options)["learner"] == learner


def test_what_the_attacker_is_told_and_how_queries_are_weighted(capsys: Captured) -> None:
    options = (*TABLE, "--noise", "uniform:50", "--queries", "500", "--dimensions", "2")
    assert found(capsys, *options)["learner"] == "edge"
    assert found(capsys, *options, "--told", "scale")["learner"] == "kalman"
    assert found(capsys, *options, "--told", "nothing")["learner"] == "automatic"
    assert found(capsys, *options, "--weights", "subsets")["weights"] == "subsets"
    assert found(capsys, *options, "--learner", "bisection")["weights"] == "single"


def test_a_policy_names_the_column_and_its_bounds(capsys: Captured) -> None:
    options = ("--noise", "laplace:1", "--queries", "100", "--dimensions", "3")
    fields = found(capsys, "--table", "hospital", *options)
    assert (fields["private"], fields["dimensions"]) == ("Blood sugar", 3)


def test_the_same_seed_gives_the_same_report(capsys: Captured) -> None:
    options = (*TABLE, "--noise", "laplace:5", "--queries", "700", "--reveal")
    one, other = found(capsys, *options), found(capsys, *options)
    del one["seconds"], other["seconds"]
    assert one == other


def test_the_text_and_the_page(folder: Path, capsys: Captured) -> None:
    options = (*TABLE, "--noise", "uniform:5", "--queries", "1000", "--seed", "2")
    assert one_bit(*options) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("after 1,000 yes/no answers totals of pay were off by")
    assert "bounded noise is a gift to the attacker" in printed
    assert one_bit(*options, "--format", "html", "--output", "page.html") == 0
    assert "Error and limit against queries" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (("--noise", "nosuch:5"), "cannot read the noise 'nosuch:5'"),
        (("--noise", "laplace"), "cannot read the noise 'laplace'"),
        (("--noise", "laplace:0"), "need a positive and finite"),
        (("--noise", "laplace:-1"), "need a positive and finite"),
        (("--private", "word"), "'word' is not numeric"),
        (("--private", "absent"), "absent"),
        (("--bounds", "0:"), "--bounds 0: has an open end"),
        (("--bounds", "5:5"), "leave no range"),
        (("--bounds", "zero:one"), "is not LO:HI"),
        (("--dimensions", "61"), "60 records, fewer than the 61 groups"),
        (("--dimensions", "0"), "--dimensions 0 is no number of groups"),
        (("--queries", "0"), "--queries 0 leaves nothing to ask"),
        (("--queries", "-5"), "--queries -5 leaves nothing to ask"),
        (("--seed", "-1"), "--seed -1 is negative"),
        (("--confidence", "1.5"), "a confidence of 1.5 must lie between 0 and 1"),
        (("--learner", "edge", "--told", "nothing"), "the learner edge has to know the law"),
        (("--table", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_bad_input_is_one_sentence(
    changed: tuple[str, ...], sentence: str, capsys: Captured
) -> None:
    given = dict(zip(TABLE[::2], TABLE[1::2], strict=True))
    given |= {"--noise": "laplace:5", "--queries": "10", "--seed": "1"}
    given |= dict(zip(changed[::2], changed[1::2], strict=True))
    assert one_bit(*(f"{name}={value}" for name, value in given.items())) == 2
    assert_one_sentence(sentence, capsys)


def test_without_bounds_there_is_no_attack(capsys: Captured) -> None:
    assert one_bit(*TABLE[:4], "--noise", "laplace:5", "--queries", "10") == 2
    assert_one_sentence("nothing says between which numbers 'pay' lies; give --bounds", capsys)


def assert_one_sentence(sentence: str, capsys: Captured) -> None:
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


PROGRAM = """
import sys
from casemate.attack.one_bit.attack import LeastErrors
from casemate.cli.main import run

plain = LeastErrors.add

def told(self, queries):
    if self.queries == 2:
        print("asking", file=sys.stderr, flush=True)
    return plain(self, queries)

LeastErrors.add = told
run()
"""


def test_an_interrupt_writes_the_best_so_far_and_ends_with_130() -> None:
    options = [*TABLE, "--noise", "laplace:5", "--queries", "2000000000", "--format", "json"]
    command = [sys.executable, "-c", PROGRAM, "attack", "one-bit", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None and run.stderr.readline() == "asking\n"
        run.send_signal(signal.SIGINT)
        printed, said = run.communicate(timeout=120)
    assert run.returncode == 130
    assert said.endswith("interrupted: this is the best so far\n")
    fields = json.loads(printed)
    assert fields["finished"] is False and 0 < fields["queries"] < 2_000_000_000
    assert fields["curve"][-1]["queries"] == fields["queries"]
