"""Everything that leaves when one statement is asked, with the noised numbers masked, and compared.

Only public seams are used: `Session`, and the command line with the files it leaves. What is not
masked must be the same on two neighbouring tables; an error that is not one of casemate's is a
failure by itself.
"""

import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, is_dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from neighbours.statements import Statement

from casemate import CasemateError, ScanFailed, Session
from casemate.cli import run

Left = Mapping[str, Any]
"""What left, by kind: `error`, `columns`, `rows`, `cost` and so on."""

NOISED = "noised"
WIDTH = re.compile(r"within [\d.,]+ records")
"""How wide a rank is proven follows from noised numbers, as the ends of other proofs do."""
SCAN_FAILED = str(ScanFailed())
UNEXPECTED = "unexpected"
Open = Callable[[Path, int], Session]
"""How a session is opened over a policy, with a seed: a twin opens a broken one."""


@dataclass(frozen=True)
class Finding:
    """A statement after which two neighbours look different, and in which part."""

    mode: str
    part: str
    sql: str
    one: str
    two: str
    world: str = ""

    def __str__(self) -> str:
        """For a report."""
        return (
            f"[{self.mode}] {self.part}\n  {self.sql}\n  one: {self.one[:300]}\n"
            f"  two: {self.two[:300]}\n  {self.world}"
        )


def differing(one: Left, two: Left) -> list[str]:
    """The parts that are not the same, and those that nobody may see at all."""
    for fatal in (UNEXPECTED, "error"):  # then nothing else is there to be compared
        if fatal in one or fatal in two:
            same = fatal != UNEXPECTED and one.get(fatal) == two.get(fatal)
            return [] if same else [fatal]
    return [part for part in sorted({*one, *two}) if one.get(part) != two.get(part)]


def findings(
    mode: str, statement: Statement, one: Left, two: Left, world: object = ""
) -> list[Finding]:
    """One finding for each part that differs."""
    return [
        Finding(mode, part, statement.sql, repr(one.get(part)), repr(two.get(part)), str(world))
        for part in differing(one, two)
    ]


# Sessions -------------------------------------------------------------------------------------


def asked(session: Session, statement: Statement, measure: bool, exact: bool = False) -> Left:
    """What leaves a session that is asked one statement; nothing is masked if it is `exact`."""
    try:
        answer = session.query(statement.sql, measure=measure, all_groups=True)
    except ScanFailed:  # after a charge nothing may fail because of what is in the table
        return {UNEXPECTED: "ScanFailed"}
    except CasemateError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return {UNEXPECTED: type(error).__name__}
    rows = [tuple(_masked(cell, exact) for cell in row) for row in answer.rows]
    return {
        "columns": answer.columns,
        "rows": _comparable(rows, statement),
        "notes": [WIDTH.sub(NOISED, note) for note in answer.notes],
        "origin": str(answer.origin),
        "confidence": answer.confidence,
        "cost": asdict(answer.cost),
        "remaining": asdict(answer.remaining),
        "spent": asdict(answer.spent),
    }


def counted(session: Session, statement: Statement, measure: bool) -> list[float] | None:
    """The counts of an answer that was given before, in the order of its groups."""
    try:
        answer = session.query(statement.sql, measure=measure, all_groups=True)
    except CasemateError:
        return None
    found = {tuple(map(repr, row[:-1])): row[-1] for row in answer.rows}
    return [float(getattr(found[key], "value", 0.0) or 0.0) for key in sorted(found)]


def looked(session: Session, statement: Statement, measure: bool) -> Left:
    """What is said of a statement before it is asked, and of the budget."""
    standing = plain(session.standing())
    try:
        return {
            "standing": standing,
            "forecast": plain(session.forecast(statement.sql, measure=measure)),
        }
    except CasemateError as error:
        return {"standing": standing, "forecast": f"{type(error).__name__}: {error}"}
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return {UNEXPECTED: type(error).__name__}


def plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _masked(cell: Any, exact: bool) -> Any:
    """A key as it is, with its type; a number that came out of answers is masked."""
    if hasattr(cell, "lo"):
        return repr(cell) if exact else NOISED
    return (type(cell).__name__, repr(cell))


def _comparable(rows: list[Any], statement: Statement) -> Any:
    """Rows that noised numbers order are compared in any order, and those they cut not at all."""
    if statement.cut:
        return "cut"
    return sorted(map(repr, rows)) if statement.ordered else rows


# The command line -----------------------------------------------------------------------------


def commanded(policy: Path, statement: Statement, *options: str) -> Left:
    """What leaves `casemate ask` and `casemate budget`, and the files there are after it."""
    code, out, err = ended(policy, "ask", policy.name, statement.sql, *options, "--format", "json")
    budget = ended(policy, "budget", policy.name, "--format", "json")
    found = {"exit": code, "stderr": err, "budget": budget, **_printed(out, statement)}
    if code == 70 or SCAN_FAILED in err:
        found[UNEXPECTED] = err
    return found | {"files": files(policy.parent), "transcript": transcript(policy.parent)}


def ended(policy: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in the policy's folder."""
    out, err, code = StringIO(), StringIO(), 0
    with chdir(policy.parent), redirect_stdout(out), redirect_stderr(err):
        try:
            run(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    folder = str(policy.parent)
    return code, out.getvalue().replace(folder, "FOLDER"), err.getvalue().replace(folder, "FOLDER")


def _printed(out: str, statement: Statement) -> dict[str, Any]:
    if not out:
        return {"answer": None}
    answer = json.loads(out)
    rows = [[_masked_json(cell) for cell in row] for row in answer.get("rows", [])]
    notes = [WIDTH.sub(NOISED, note) for note in answer.get("notes", [])]
    return {"answer": answer | {"rows": _comparable(rows, statement), "notes": notes}}


def _masked_json(cell: Any) -> Any:
    if isinstance(cell, dict):
        return {name: cell[name] if name == "source" else NOISED for name in cell}
    return cell


def files(folder: Path) -> list[tuple[str, str]]:
    """Names and modes; the table itself is no output."""
    return sorted(
        (each.name, oct(stat.S_IMODE(each.stat().st_mode)))
        for each in folder.iterdir()
        if not each.name.startswith("people")
    )


LEDGER = ("number", "kind", "key", "principal", "purpose", "cost_text", "total_text", "units")
TRANSCRIPT = ("number", "kind", "key", "run", "questions", "runs", "text")


def transcript(folder: Path) -> list[Any]:
    """The entries of ledger and transcript, but for noised numbers, times and hashes."""
    place = folder / "casemate.ledger"
    if not place.exists():
        return []
    connection = sqlite3.connect(f"file:{place}?mode=ro", uri=True)
    try:
        ledger = _selected(connection, "entries", LEDGER)
        entries = _selected(connection, "transcript", TRANSCRIPT)
    finally:
        connection.close()
    kept = [(*row[:6], _masked_text(row[6])) for row in entries]
    return list(_renamed([*ledger, *kept]))


def _selected(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> list[Any]:
    try:
        return connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
    except sqlite3.OperationalError:  # nothing was ever written there
        return []


def _masked_text(text: str) -> Any:
    """An entry: how many numbers there are stays, and what they are does not."""
    entry = json.loads(text)
    for name in ("values", "gap", "sign"):
        if name in entry:
            entry[name] = len(entry[name]) if isinstance(entry[name], list) else NOISED
    if "answer" in entry:
        answer = json.loads(entry["answer"])
        entry["answer"] = answer | {"parts": [len(part) for part in answer.get("parts", [])]}
    return repr(entry)


def _renamed(rows: Sequence[Any]) -> Iterator[Any]:
    """Runs of the gate and keys of datasets are random: what counts of digests is their order."""
    names: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"digest {len(names)}")

    for row in rows:
        yield tuple(DIGEST.sub(renamed, cell) if isinstance(cell, str) else cell for cell in row)


DIGEST = re.compile("[0-9a-f]{64}")


def remove_ledger(policy: Path) -> None:
    """The files that answers left, so that the next statement begins anew."""
    for each in policy.parent.iterdir():
        if each.name.startswith("casemate.ledger"):
            os.remove(each)
