"""No representation and no error message of what is public contains a private value.

A number and a text that occur nowhere else are put into private cells; then everything public is
called, and all that can be reached from what it returns is represented.
"""

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from casemate import (
    AdaptivePlan,
    Attack,
    Audit,
    CasemateError,
    CountTracker,
    Misconfigured,
    OneBitAttack,
    OnlineAuditor,
    OnlineReconstruction,
    Plan,
    Quota,
    Session,
    Table,
    TableOracle,
    Unsupported,
    lineage,
    load_policy,
    membership,
    open_ledger,
    parse,
    reconstruct,
    repair,
    witnesses,
)
from casemate.attack.plan.plan import Planner
from casemate.attack.reconstruct.answers_file import Given
from casemate.audit import AuditOptions, Exposed
from casemate.audit.result import Proof
from casemate.published import Knowledge
from casemate.query.engines import StatementAnswer
from casemate.table.sources import Series

NUMBER, TEXT = 7354219, "canary"
QUERIES = [
    "SELECT SUM(pay) FROM t",
    "SELECT SUM(pay) FROM t WHERE name <> 'p1'",
    "SELECT zip, SUM(pay), MAX(pay) FROM t GROUP BY zip",
    "SELECT ill, COUNT(*) FROM t GROUP BY ill",
    "SELECT pay, COUNT(*) FROM t GROUP BY pay",
    "SELECT COUNT(*) FROM t WHERE pay > 5000",
    "SELECT ROUND(SUM(pay), -2) FROM t WHERE zip = 2",
    "SELECT note, COUNT(*) FROM t GROUP BY note",
    "SELECT MAX(note) FROM t",
    "SELECT nonsense FROM t",
]
POLICY = """
[table]
source = "t.csv"
[columns.name]
[columns.zip]
[columns.pay]
role = "private"
unbounded = true
[columns.note]
role = "private"
unbounded = true
[columns.ill]
role = "private"
values = ["a", "b"]
"""
BOUNDED = """
[table]
source = "t.csv"
[columns.zip]
values = [0, 1, 2]
[columns.pay]
role = "private"
min = 0
max = 10000000
[budget]
epsilon = 1
"""
SIMPLE = (type, types.ModuleType, types.FunctionType, str, bytes, int, float, Decimal, Fraction)


def quotes(text: str) -> bool:
    return str(NUMBER) in text or TEXT in text


@pytest.fixture(params=[0, 1000], ids=["alone", "among others"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A table with the canaries; where all others have 0, sums are the canary too."""
    rows = [
        (f"p{i}", i % 3, NUMBER if i == 1 else request.param * i, "ab"[i == 1], TEXT * (i == 1))
        for i in range(8)
    ]
    lines = ["name,zip,pay,ill,note", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "p.toml").write_text(POLICY)
    (tmp_path / "s.toml").write_text(BOUNDED)
    return tmp_path


# What is returned -----------------------------------------------------------------------------


def reachable(start: object) -> Iterator[object]:
    """The objects of casemate's own that can be reached from one, properties included."""
    seen: dict[int, object] = {}
    todo = [start]
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, SIMPLE):
            continue
        seen[id(each)] = each
        if type(each).__module__.startswith("casemate"):
            yield each
        todo += _parts(each)


def _parts(each: Any) -> list[Any]:
    if isinstance(each, Mapping):
        return [*each.keys(), *each.values()]
    if isinstance(each, list | tuple | set | frozenset):
        return list(each)
    if isinstance(each, np.ndarray):
        return each.ravel().tolist() if each.dtype == object else []
    found = list(getattr(each, "__dict__", {}).values())
    if type(each).__module__.startswith("casemate"):
        properties = {
            name
            for kind in type(each).__mro__
            for name, value in vars(kind).items()
            if isinstance(value, property)
        }
        found += [getattr(each, name) for name in properties if hasattr(each, name)]
    return found


def shown(start: object) -> set[str]:
    """The classes whose objects show a canary; what an online auditor answers may be shown."""
    return {
        type(each).__qualname__
        for each in reachable(start)
        if not isinstance(each, StatementAnswer) and (quotes(repr(each)) or quotes(str(each)))
    }


def audited(folder: Path) -> object:
    options = AuditOptions(approximate=True, witness=True, seconds=5)
    return Audit.of(QUERIES, folder / "p.toml", options=options)


def asked_online(folder: Path) -> object:
    auditor = OnlineAuditor(folder / "t.csv", private="pay")
    decision = auditor.would_expose("SELECT MAX(pay) FROM t")
    auditor.ask("SELECT MAX(pay) FROM t WHERE name IN ('p1', 'p2', 'p3')")
    return [auditor, decision, auditor.history]


def planned(folder: Path) -> object:
    with Table.open(folder / "t.csv", private=["pay"]) as table:
        plan = AdaptivePlan(Planner(table, "pay"), 2)
        return [Plan.of(table, 2), plan, plan.fixed]


def followed(folder: Path) -> object:
    table = Table.open(folder / "t.csv", private=["pay"])
    point = OnlineReconstruction(table, "pay", method="recursive")
    point.see("SELECT SUM(pay) FROM t", NUMBER)
    return [point, table]


def selected(folder: Path) -> object:
    table = Table.open(folder / "p.toml")
    sums = parse("SELECT pay, note, SUM(pay) FROM t WHERE pay > 5 GROUP BY pay, note", table.policy)
    found: list[object] = [table, sums, lineage(sums, table.source)]
    read = table.source.read(f"SELECT * FROM {table.source.relation()} AS t")
    return [*found, membership(sums[:0], table.source), read]


def learned_bits(folder: Path) -> object:
    what: dict[str, Any] = {"private": "pay", "dimensions": 2, "bounds": (0, 1e7)}
    path = folder / "t.csv"
    return [
        TableOracle.of(path, **what),
        OneBitAttack.of(path, noise="gaussian:1", queries=50, **what),
    ]


def answered(folder: Path) -> object:
    session = Session.simulated(folder / "s.toml", 1)
    measured = session.query("SELECT SUM(pay) FROM t WHERE zip = 1", measure=True)
    return [session, measured, session.query("SELECT zip, COUNT(*) FROM t GROUP BY zip")]


CALLS: dict[str, Callable[[Path], object]] = {
    "Audit.of": audited,
    "repair": lambda folder: repair(QUERIES, folder / "p.toml"),
    "witnesses": lambda folder: witnesses(QUERIES[:2], folder / "p.toml"),
    "Attack.of": lambda folder: Attack.of(
        QUERIES[:2], folder / "t.csv", private="pay", random=np.random.default_rng(1)
    ),
    "reconstruct": lambda _: reconstruct([[1, 1], [0, 1]], [NUMBER + 5, 5]),
    "OnlineAuditor": asked_online,
    "Plan": planned,
    "OnlineReconstruction": followed,
    "lineage": selected,
    "one bit": learned_bits,
    "Session": answered,
    "Knowledge": lambda _: Knowledge(known={2: (Fraction(NUMBER), None)}),
    "Given": lambda _: Given(1, TEXT, Decimal(NUMBER), "line 1"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nothing_that_is_returned_shows_a_private_value(
    call: Callable[[Path], object],
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(0):
        assert shown(call(folder)) == set()
    assert not quotes("".join(capfd.readouterr())) and not quotes(caplog.text)


def test_the_values_stay_in_their_attributes(folder: Path) -> None:
    found = Audit.of(QUERIES[:2], folder / "p.toml")
    assert [each.value for each in found.exposed] == [NUMBER]
    assert repr(found) == "<Audited: exposed, 2 queries, 8 records, 1 exposed>"
    assert repr(Series(np.array([NUMBER]), np.array([False]))) == "<Series: 1 values>"


def test_a_representation_with_a_value_is_found() -> None:
    @dataclass(frozen=True)
    class Careless:
        value: int

    Careless.__module__ = "casemate.audit.careless"
    assert shown([{"found": Careless(NUMBER)}]) == {f"{Careless.__qualname__}"}
    assert shown(Exposed(1, 1, "pay", NUMBER, None, None, Proof.RANK)) == set()


# What is raised -------------------------------------------------------------------------------


def frame() -> object:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"name": [TEXT], "pay": [NUMBER]})


WRONG: dict[str, Callable[[], Any]] = {
    "a frame": frame,
    "a series": lambda: frame()["pay"],  # type: ignore[index]  # of a frame
    "an array": lambda: np.array([[TEXT, NUMBER]], object),
    "numbers": lambda: np.array([float(NUMBER)]),
    "a dictionary": lambda: {"name": [TEXT], "pay": [NUMBER]},
    "rows": lambda: [(TEXT, NUMBER)],
    "a number": lambda: NUMBER,
    "bytes": f"name,pay\n{TEXT},{NUMBER}\n".encode,
    "the text of a file": lambda: f"name,pay\n{TEXT},{NUMBER}\n",
    "a long text": lambda: TEXT * 100,
    "a text with NUL": lambda: f"{TEXT}\0",
}
OF_TABLES: dict[str, Callable[..., object]] = {
    "Audit.of": partial(Audit.of, QUERIES[:2]),
    "witnesses": partial(witnesses, QUERIES[:2]),
    "repair": partial(repair, QUERIES[:2]),
    "Attack.of": partial(Attack.of, QUERIES[:2]),
    "Plan.of": partial(Plan.of, target=2),
    "OnlineAuditor": OnlineAuditor,
    "TableOracle.of": TableOracle.of,
    "OneBitAttack.of": partial(OneBitAttack.of, noise="gaussian:1", queries=9),
}
"""What takes a table, and the names of its private columns."""

ENTRIES: dict[str, Callable[[Any], object]] = {
    **{name: partial(call, private="pay") for name, call in OF_TABLES.items()},
    "Table.open": Table.open,
    "load_policy": load_policy,
    "Audit.of, queries": lambda wrong: Audit.of(wrong, "hospital"),
    "Attack.of, queries": lambda wrong: Attack.of(wrong, "hospital"),
    "Attack.of, answers": lambda wrong: Attack.of(
        ['SELECT SUM("Blood sugar") FROM t'], "hospital", answers=wrong
    ),
    "Session": Session,
    "Session.simulated": lambda wrong: Session.simulated(wrong, 1),
    "Session.looking": Session.looking,
    "open_ledger": lambda wrong: open_ledger(wrong, dataset="t", policy="", epsilon=Fraction(1)),
    "Quota": lambda wrong: Quota(5, journal=wrong),
    "CountTracker": lambda wrong: CountTracker(2, 0.1, journals=wrong),
}


def said(error: BaseException) -> str:
    """What an error and all errors behind it say."""
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return str(error) + ("" if behind is None else said(behind))


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_no_path_is_refused_by_its_type_and_not_quoted(
    entry: Callable[[Any], object], wrong: Callable[[], Any]
) -> None:
    with pytest.raises(
        Misconfigured, match=r"expected .*, got (an object of type|a text)"
    ) as caught:
        entry(wrong())
    assert not quotes(said(caught.value)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_other_arguments_are_not_quoted_either(wrong: Callable[[], Any]) -> None:
    given = wrong()
    for call in (
        lambda: reconstruct(given, [1.0]),
        lambda: reconstruct([[1, 1]], given),
        lambda: parse(given, None),  # type: ignore[arg-type]  # it fails before that
        lambda: lineage(given, None),  # type: ignore[arg-type]  # it fails before that
        lambda: OnlineReconstruction(given, "pay"),
    ):
        assert not quotes(_raised(call))


def _raised(call: Callable[[], object]) -> str:
    """What is said of an argument, if anything is; of a statement, the statement is shown."""
    try:
        call()
    except Unsupported:
        return ""
    except (CasemateError, TypeError, ValueError, AttributeError) as error:
        return said(error)
    return ""


def test_a_path_that_is_not_there_is_still_shown() -> None:
    with pytest.raises(Misconfigured, match=r"there is no file salaries\.csv"):
        Table.open("salaries.csv")


# A private column that was forgotten -------------------------------------------------------------


@pytest.mark.parametrize("call", OF_TABLES.values(), ids=OF_TABLES)
def test_a_table_of_which_nothing_is_private_is_not_called_safe(
    call: Callable[..., object], folder: Path
) -> None:
    for table in (folder / "t.csv", Table.open(folder / "t.csv")):
        with pytest.raises(Misconfigured, match="no column is private; name one"):
            call(table)
