"""Wrong input of any command is one sentence on stderr and exit code 2, and nothing is printed."""

import shlex
from pathlib import Path

import pytest
from census_block import seven
from cli.asked import COUNT, write_people
from cli.running import Captured, assert_refused

ONE_BIT = "attack one-bit --table=many.csv --private=pay --noise=laplace:5 --queries=10"
COMMANDS = {
    "audit q.sql --table=hospital": [
        ("--table=people.csv", "no column is private"),
        ("--table=people.csv --private=salary", "salary"),
        ("--bounds=7", "not LO:HI"),
        ("--bounds=7:3", "is empty"),
        ("--protect=much", "not a share"),
        ("--group-size=0", "too small"),
        ("--insiders=-1", "negative"),
        ("--certificates=-1", "negative"),
        ("--dominance=2", "not N,K%"),
        ("--known=gone.csv", "gone.csv cannot be read"),
        ("--known=people.csv", "must begin with record,value"),
        ("--dialect=klingon", "klingon"),
        ("--table=nowhere", "nowhere"),
        ("--witness=second.csv", "add --reveal"),
        ("--witness=. --reveal", "not a file"),
        ("--witness=gone/second.csv --reveal", "a folder that exists"),
        ("--seconds=-1", "is not a time"),
        ("--seconds=nan", "is not a time"),
    ],
    "audit block block.csv": [
        ("--limit=0", "--limit 0 is too small"),
        ("--seconds=-1", "--seconds -1.0 is not a time"),
        ("--seconds=nan", "--seconds nan is not a time"),
        ("--ages=old", "--ages old is not LO:HI"),
    ],
    "attack reconstruct q.sql --table=hospital --seed=1": [
        ("--bounds=5:3", "--bounds 5:3 is empty"),
        ("--bounds=5", "not LO:HI"),
        ("--noise=cauchy:3", "unknown law of noise 'cauchy:3'"),
        ("--noise=laplace", "has no number after its name"),
        ("--noise=laplace:0", "must be finite and above 0"),
        ("--noise=gaussian:-2", "must be finite and above 0"),
        ("--solver=magic", '"least-squares", "box", "convex", "robust", "lp", "integer"'),
        ("--confidence=0", "--confidence 0 must lie between 0 and 1"),
        ("--confidence=1.5", "--confidence 1.5 must lie between 0 and 1"),
        ("--confidence=nan", "must lie between 0 and 1"),
        ("--tolerance=-1", "--tolerance -1 is no distance"),
        ("--tolerance=nan", "--tolerance nan is no distance"),
        ("--known=gone.csv", "gone.csv cannot be read"),
        ("--answers=gone.csv", "gone.csv cannot be read"),
        ("--dialect=klingon", "klingon"),
        ("--seed=-1", "--seed -1 is negative"),
    ],
    "attack reconstruct pay.sql --private=pay": [
        ("--table=seen.csv", "does not have the private column"),
        ("--table=nowhere", "nowhere"),
    ],
    "attack plan --table=hospital --target=2": [
        ("--target=7", "there is no record 7"),
        ("--min-count=0", "minimum count of 0"),
        ("--min-count=9", "minimum count of 9"),
        ("--max-queries=0", "at most 0 queries"),
        ("--seconds=-1", "--seconds -1.0 is not"),
        ("--seconds=nan", "--seconds nan is not"),
        ("--private=Zip", "'Zip', which is not"),
        ("--dialect=x", "no SQL dialect 'x'"),
        ("--table=population:9", "several columns are private"),
    ],
    f"{ONE_BIT} --bounds=0:100 --seed=1": [
        ("--noise=nosuch:5", "cannot read the noise 'nosuch:5'"),
        ("--noise=laplace", "cannot read the noise 'laplace'"),
        ("--noise=laplace:0", "need a positive and finite"),
        ("--noise=laplace:-1", "need a positive and finite"),
        ("--private=word", "'word' is not numeric"),
        ("--private=absent", "absent"),
        ("--bounds=0:", "--bounds 0: has an open end"),
        ("--bounds=5:5", "needs two different ends"),
        ("--bounds=zero:one", "is not LO:HI"),
        ("--dimensions=61", "60 records, fewer than the 61 groups"),
        ("--dimensions=0", "--dimensions 0 is no number of groups"),
        ("--queries=0", "--queries 0 leaves nothing to ask"),
        ("--queries=-5", "--queries -5 leaves nothing to ask"),
        ("--seed=-1", "--seed -1 is negative"),
        ("--confidence=1.5", "a confidence of 1.5 must lie between 0 and 1"),
        ("--learner=edge --told=nothing", "the learner edge has to know the law"),
        ("--table=nowhere.csv", "nowhere.csv"),
    ],
    "attack extract --predict=stolen:predict --dimension=3": [
        ("--command=x", "give one of --predict"),
        ("--predict=stolen", "not module:function"),
        ("--predict=stolen:gone", "there is no gone in stolen"),
        ("--predict=stolen:constant", "gave the same label to all"),
        ("--predict=stolen:fails", "failed with ZeroDivisionError"),
        ("--truth=short.csv", "has 2 numbers; expected 3"),
        ("--truth=gone.csv", "cannot be read"),
        ("--bounds=5:5", "needs two different ends"),
        ("--bounds=5:", "needs two different ends"),
        ("--bounds=0:1e999", "too large, or too narrow"),
        ("--bounds=1", "not LO:HI"),
        ("--queries=1", "--queries 1 is too few"),
        ("--seed=-1", "--seed -1 is negative"),
        ("--dimension=0", "--dimension 0 is too small"),
        ("--dimension=5", "failed with ValueError when it was given an array of 2 x 5"),
        ("--learner=magic", "magic"),
    ],
    "attack extract --dimension=3": [
        ("--command=no-such-program-here", "cannot be started"),
        ("--command=true", "ended with exit code 0"),
    ],
    f'ask people.toml "{COUNT}"': [
        ("--seed=1", "unknown option: --seed"),
    ],
    "plan people.toml": [
        ("--expect=0", "--expect 0 is too small; give at least 1"),
        ("--people=0", "--people 0 is too small; give at least 1"),
    ],
    "track simulate --sites=16 --alpha=0.1 --items=20000 --seed=1": [
        ("--mode=magic", 'Choose from: "auto", "deterministic"'),
        ("--adversary=nobody", "there is no adversary 'nobody'; choose one of uniform"),
        ("--adversary=zipf:much", "the exponent of a Zipf load is a number of at least 0"),
        ("--adversary=zipf:-1", "the exponent of a Zipf load is a number of at least 0"),
        ("--alpha=0", "alpha is a relative error between 0 and 1, as 0.01, got 0"),
        ("--alpha=1.5", "alpha is a relative error between 0 and 1, as 0.01, got 1.5"),
        ("--alpha=nan", '"nan" is no number; write one as 0.02 or 2%'),
        ("--alpha=much", "--alpha"),
        ("--delta=1", "delta is a probability between 0 and 1, as 0.01, got 1"),
        ("--delta=-0.1", "delta is a probability between 0 and 1, as 0.01, got -0.1"),
        ("--sites=0", "a tracker needs at least one site, got 0"),
        ("--sites=1000001", "--sites 1,000,001 is more than 1,000,000"),
        ("--items=0", "the items that will come are a whole number from 1 to 2^53, got 0"),
        ("--items=10000000000000000", "is more than 1,000,000,000,000,000"),
        ("--runs=0", "at least one run is needed, got 0"),
        ("--seed=-1", "--seed -1 is negative"),
    ],
    "track plan --sites=16 --alpha=0.2 --delta=0.1 --horizon=10000": [
        ("--alpha=-1", "alpha is a relative error between 0 and 1, as 0.01, got -1"),
        ("--delta=0", "delta is a probability between 0 and 1, as 0.01, got 0"),
        ("--sites=-3", "a tracker needs at least one site, got -3"),
        ("--horizon=0", "items that will come are a whole number from 1 to 2^53, got 0"),
        ("--horizon=1000000000000000000000000000000", "is more than 1,000,000,000,000,000"),
    ],
    "track server x://y a --alpha=0.1": [
        ("", "an address begins with nats:// or redis://"),
        ("--alpha=1.5", "alpha is a relative error between 0 and 1"),
        ("--mode=block", "robust-tuned"),
        ("--mode=magic", "robust-tuned"),
        ("--patience=0", "need 0 < repeat"),
        ("--patience=nan", "need 0 < repeat"),
        ("--repeat=nan", "need 0 < repeat"),
        ("--interval=nan", "and interval > 0"),
    ],
    "track site x://y a": [
        ("--rate=1e13", "above 0 and at most 1,000,000,000,000"),
        ("--rate=nan", "--rate is a number of items a second above 0"),
        ("--rate=-1", "--rate is a number of items a second above 0"),
        ("--rate=1 --lines", "goes without --lines"),
        ("--heartbeat=nan", "a heartbeat is a number of seconds"),
        ("--heartbeat=0", "a heartbeat is a number of seconds"),
    ],
    "track watch x://y": [
        ("--wait=nan", "--wait is a number of seconds above 0"),
        ("--wait=0", "--wait is a number of seconds above 0"),
    ],
}
"""By which wrong options a command that works fails, and with which sentence."""

ARGUMENTS = [
    ("adit", 'unknown command "adit"; did you mean casemate audit?'),
    ("xyzzy", 'unknown command "xyzzy"; see casemate --help'),
    ("audit", "QUERIES is missing; see casemate audit --help"),
    ("audit q.sql b --table hospital", 'unexpected argument "b"; see casemate audit --help'),
    ("audit q.sql --table hospital --fromat json", "unknown option: --fromat. Did you mean --form"),
    ("audit q.sql --table hospital --xyzzy", "unknown option: --xyzzy; see casemate audit --help"),
    ("ask -z", "unknown option: -z; see casemate ask --help"),
    ("ask people.toml -zq", "unknown option: -zq; see casemate ask --help"),
    ("policy init people.csv -z", "unknown option: -z; see casemate policy init --help"),
    ("audit q.sql --table", "parameter --table requires an argument."),
    ("audit q.sql --table hospital --format jsn", 'Did you mean "json"?'),
    ("audit q.sql --table hospital --seconds many", 'unable to convert "many" into float.'),
    ("attack plan --table hospital", "--target is missing; see casemate attack plan"),
    ("attack extract --dimension 3", "give one of --predict module:function and --comm"),
    (ONE_BIT, "nothing says between which numbers 'pay' lies; give --bounds"),
    ("ask", "POLICY is missing"),
    (f'ask people.csv "{COUNT}"', "people.csv has no budget"),
    (f'ask absent.toml "{COUNT}"', "absent.toml"),
    (f'ask people.toml "{COUNT}" "{COUNT}"', "unexpected argument"),
    (f'ask people.toml "{COUNT}" --dialect klingon', "no SQL dialect 'klingon'"),
    ("budget people.csv", "people.csv"),
    ("budget absent.toml", "absent.toml"),
    ("plan people.csv", "planning never opens a table"),
    ("policy init people.csv --output people.toml", "is there already"),
    ("completion show tcsh", 'Choose from: "bash", "zsh", "fish"'),
    ("track simulat", "did you mean casemate track simulate?"),
    ("track watch nats", "this is no address of a message broker"),
    ("track server x://y a b a --alpha 0.1", "'a' is given twice"),
    ("track server x://y a '' --alpha 0.1", "a site's name is 1 to"),
    ("track server x://y @absent --alpha 0.1", "the list of sites absent cannot be read (no such"),
    ("track site x://y a --journal q.sql", "is no journal of a casemate site"),
]
FILES = [
    ("q.sql", "", "holds no statement"),
    ("q.sql", "-- nothing\n", "holds no statement"),
    ("q.sql", "SELECT COUNT(*) FROM t", "none of the queries is about a private column"),
    ("q.sql", 'SELECT MAX("Blood sugar") FROM t', "none of the queries can be used"),
    ("q.sql", "SELECT SUM(x) FROM t", "there is no column x"),
    ("--known", "record,value\n1,11\n", "contradicts its bounds"),
    ("--known", "record,lo,hi\n1,6,4\n", "contradicts its bounds, or itself"),
    ("--known", "record,value\n77,4\n", "a record that is not in the table"),
    ("--known", "record,value\n1,x\n", "not a number"),
    ("--answers", "1,,32.1\n2,,15.5", "query 3 has no answer"),
    ("--answers", "1,,32.1\n2,,15.5\n3,,11.4\n4,,1", "answers query 4, and there are 3 queries"),
    ("--answers", "1,,32.1\n2,,15.5\n3,,NaN", "line 4: the answer is not a finite number"),
    ("--answers", "1,,32.1\n2,,15.5\n3,,many", "line 4: the answer is not a number"),
    ("--answers", "1,,32.1\n2,x,15.5\n3,,11.4", "query 2 shows no cell of that name"),
    ("block.csv", "sex,count,meen\n,7,3\n", "unknown column meen"),
    ("block.csv", "count,mean\n7,many\n", "line 2: the mean is not a number"),
    ("people.toml", "[tabel]\n", "people.toml: `tabel` is not a key of this section; did you mean"),
]


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    write_people(folder)
    (folder / "block.csv").write_text(seven())


def with_options(command: str, changed: str) -> list[str]:
    """The words of a command in which some options are changed."""
    words = shlex.split(f"{command} {changed}")
    options = {word.partition("=")[0]: word for word in words if word.startswith("--")}
    return [*(word for word in words if not word.startswith("--")), *options.values()]


WRONG = [
    *(
        (with_options(command, changed), said)
        for command in COMMANDS
        for changed, said in COMMANDS[command]
    ),
    *((shlex.split(line), said) for line, said in ARGUMENTS),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_a_wrong_command_line_is_one_sentence_and_nothing_is_written(
    arguments: list[str], sentence: str, folder: Path, capsys: Captured
) -> None:
    before = {each.name for each in folder.iterdir()}
    assert_refused(capsys, arguments, sentence)
    assert {each.name for each in folder.iterdir()} - {"__pycache__"} == before


@pytest.mark.parametrize(("file", "text", "sentence"), FILES)
def test_a_file_that_is_wrong_is_one_sentence(
    file: str, text: str, sentence: str, folder: Path, capsys: Captured
) -> None:
    words = ["attack", "reconstruct", "q.sql", "--table", "hospital", "--seed", "1"]
    if file == "block.csv":
        words = ["audit", "block", file]
    if file == "people.toml":
        words = ["policy", "check", file]
    if file.startswith("--"):
        head = "query,cell,answer\n" if file == "--answers" else ""
        words, file, text = [*words, file, "given.csv"], "given.csv", head + text
    (folder / file).write_text(text)
    assert_refused(capsys, words, sentence)
