"""Random statements on neighbouring tables: whatever differs, but for noised numbers, is a breach.

Run as `python -m neighbours.attack [--statements N] [--seed S] [--workers W]` with `tests` on the
path, or as `make attack`; the environment may say `STATEMENTS` and `SEED`. A batch is one pair of
tables and so many statements about them; it depends on the seed and its number alone, so a batch
that found something is repeated by `--only MODE NUMBER`.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from neighbours import online
from neighbours.compare import (
    UNEXPECTED,
    Finding,
    Left,
    Open,
    asked,
    commanded,
    counted,
    differing,
    findings,
    looked,
    remove_ledger,
)
from neighbours.statements import Statement, statements
from neighbours.tables import GATED, World, random_world

from casemate import CasemateError, Session

BATCH = 25
"""Statements about one pair of tables."""

TURNS = 5
"""What passes the gate is called a breach only if it differs under so many seeds."""

SHARES = {
    "laplace": 5,
    "gaussian": 4,
    "measure": 5,
    "tables": 2,
    "histogram": 2,
    "warm": 2,
    "cold": 2,
    "auto": 2,
    "online": 2,
    "online scan": 1,
    "command line": 1,
}
"""Of how many batches each mode gets how many."""


@dataclass
class Tally:
    """What came of the statements of one mode."""

    tried: int = 0
    accepted: int = 0
    refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # of accepted statements
    reasons: Counter[str] = field(default_factory=Counter)
    found: list[Finding] = field(default_factory=list)

    def note(self, statement: Statement, left: Left) -> None:
        """Count one statement, as its first table answered it."""
        self.tried += 1
        error = left.get("error") or (left.get("exit") and left.get("stderr"))
        if error or UNEXPECTED in left:
            self.refused += 1
            self.reasons[_reason(str(error))] += 1
        else:
            self.accepted += 1
            self.kinds.update(statement.kinds or {"plain"})

    def add(self, other: "Tally") -> None:
        """The same over more batches."""
        self.tried += other.tried
        self.accepted += other.accepted
        self.refused += other.refused
        self.kinds.update(other.kinds)
        self.reasons.update(other.reasons)
        self.found += other.found


def _reason(error: str) -> str:
    """An error by its kind and the last words of its first line."""
    kind, _, rest = error.splitlines()[0].partition(": ") if error else ("", "", "")
    return f"{kind}: {rest.split(': ')[-1][:70]}"


# One batch ------------------------------------------------------------------------------------


@dataclass
class Pair:
    """Sessions over both tables with one seed, opened anew when what they know went apart."""

    policies: tuple[Path, Path]
    open_session: Open
    seed: int
    _open: ExitStack = field(default_factory=ExitStack)
    sessions: tuple[Session, ...] = ()

    def opened(self) -> list[str]:
        """Open both; why each cannot be, where it cannot."""
        self.close()
        self.seed += 1
        opened, errors = [], []
        for policy in self.policies:
            try:
                opened.append(self._open.enter_context(self.open_session(policy, self.seed)))
                errors.append("")
            except CasemateError as error:
                errors.append(f"{type(error).__name__}: {error}".replace(str(policy.parent), ""))
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                errors.append(f"{UNEXPECTED} {type(error).__name__}")
        self.sessions = tuple(opened) if len(opened) == 2 else ()
        return errors

    def close(self) -> None:
        """Close both."""
        self._open.close()
        self.sessions = ()


def session_batch(
    mode: str, rng: Random, count: int, folder: Path, open_session: Open = Session.simulated
) -> Tally:
    """Statements to two sessions with one seed."""
    measure = mode == "measure"
    world = random_world(rng, ["cold"] if measure else [mode])
    if measure:
        world = replace(world, epsilon="1000000", surprises=20_000)
    asked_for = statements(rng, world.columns, count, world.joined)
    pair = Pair(world.written(folder), open_session, rng.randrange(10**9))
    return session_statements(mode, world, asked_for, pair)


def session_statements(
    mode: str, world: World, asked_for: Sequence[Statement], pair: Pair
) -> Tally:
    """The same in a given world."""
    tally, errors, count = Tally(), pair.opened(), len(asked_for)
    if not pair.sessions:
        tally.tried = tally.refused = count
        tally.reasons[_reason(errors[0] or errors[1])] += count
        if errors[0] != errors[1] or UNEXPECTED in errors[0]:
            tally.found.append(Finding(mode, "opening", "", errors[0], errors[1], str(world)))
        return tally
    for statement in asked_for:
        found = _asked_of(mode, pair, statement, world, tally)
        tally.found += found
        if found or len(pair.sessions) < 2:
            pair.opened()
    pair.close()
    return tally


def _asked_of(
    mode: str, pair: Pair, statement: Statement, world: World, tally: Tally
) -> list[Finding]:
    measure = mode == "measure"
    exact = _is_public(statement, world)
    one, two = (asked(each, statement, measure, exact) for each in pair.sessions)
    tally.note(statement, one)
    found = findings(mode, statement, one, two, world)
    if found and mode in GATED:
        found = _through_the_gate(pair, statement, exact, found)
        pair.opened()
    if not found and statement.counts and (measure or mode in ("laplace", "gaussian")):
        found = _moved(mode, pair, statement, world)
    if not found and tally.tried % 5 == 0:
        before, after = (looked(each, statement, measure) for each in pair.sessions)
        found = findings(mode, statement, before, after, world)
    return found


def _is_public(statement: Statement, world: World) -> bool:
    """Whether everybody knows the answer already, so that all of it must be the same."""
    private = {column.name for column in world.columns if column.private}
    return world.protects == "private-columns" and not statement.reads & private


def _through_the_gate(
    pair: Pair, statement: Statement, exact: bool, found: list[Finding]
) -> list[Finding]:
    """What differs under every seed; whether a question is easy may differ under some."""
    always = {each.part for each in found}
    for _ in range(TURNS):
        pair.opened()
        if len(pair.sessions) < 2:
            break
        one, two = (asked(each, statement, False, exact) for each in pair.sessions)
        always &= set(differing(one, two))
        if not always:
            return []
    return [each for each in found if each.part in always]


def _moved(mode: str, pair: Pair, statement: Statement, world: World) -> list[Finding]:
    """Under one seed the noise is the same, so that counts differ by what one person moves."""
    one, two = (counted(each, statement, mode == "measure") for each in pair.sessions)
    if one is None or two is None:
        return []
    distance = sum(abs(a - b) for a, b in zip(one, two, strict=True))
    if distance <= world.moved_by + 1e-6:
        return []
    bound = f"at most {world.moved_by}"
    return [Finding(mode, "sensitivity", statement.sql, f"{distance}", bound, str(world))]


def command_batch(mode: str, rng: Random, count: int, folder: Path) -> Tally:
    """Statements through the command line, each with a ledger of its own or the one before."""
    tally = Tally()
    world = random_world(rng, ["laplace", "gaussian", "tables", "cold", "warm"])
    if world.strategy in GATED:  # so few people that no question can be hard
        world = replace(world, epsilon="1", surprises=25)
        world = replace(world, tables=tuple(rows[:60] for rows in world.tables))  # type: ignore[arg-type]  # two of them
    one, two = world.written(folder)
    for number, statement in enumerate(statements(rng, world.columns, count, world.joined)):
        options = ["--measure"] if world.strategy == "cold" and number % 2 else []
        left = [commanded(policy, statement, *options) for policy in (one, two)]
        tally.note(statement, left[0])
        found = findings(mode, statement, left[0], left[1], world)
        turns = TURNS if found and world.strategy in GATED else 0
        for _ in range(turns):  # by chance one gate may call hard what the other calls easy
            again = [commanded(_afresh(policy), statement, *options) for policy in (one, two)]
            always = {each.part for each in findings(mode, statement, again[0], again[1], world)}
            found = [each for each in found if each.part in always]
        tally.found += found
        if turns or found or number % 3 == 2:
            _afresh(one)
            _afresh(two)
    return tally


def _afresh(policy: Path) -> Path:
    remove_ledger(policy)
    return policy


Batch = Callable[[str, Random, int, Path], Tally]


def batch_of(mode: str) -> Batch:
    """What runs a mode."""
    if mode.startswith("online"):
        return partial(_online, scans=mode == "online scan")
    return command_batch if mode == "command line" else session_batch


def _online(mode: str, rng: Random, count: int, folder: Path, scans: bool) -> Tally:
    tally = Tally()
    tally.tried, tally.accepted, reasons, found = online.conversation(rng, count, folder, scans)
    tally.refused = tally.tried - tally.accepted
    tally.reasons.update(reasons)
    tally.found = [replace(each, mode=mode) for each in found]
    return tally


# All of them ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One batch, repeatable by itself."""

    mode: str
    number: int
    seed: str
    count: int


def tasks(count: int, seed: str) -> list[Task]:
    """Batches of all modes for about so many statements, at least one of each."""
    found, shares = [], sum(SHARES.values())
    for mode, share in SHARES.items():
        wanted = max(1, round(count * share / shares))
        size = min(BATCH, wanted)
        found += [Task(mode, number, seed, size) for number in range(-(-wanted // size))]
    return found


def done(task: Task) -> tuple[Task, Tally]:
    """What came of one batch."""
    rng = Random(f"{task.seed} {task.mode} {task.number}")
    with tempfile.TemporaryDirectory() as folder:
        tally = batch_of(task.mode)(task.mode, rng, task.count, Path(folder))
    again = f" (--seed {task.seed} --only '{task.mode}' {task.number})"
    tally.found = [replace(each, world=each.world + again) for each in tally.found]
    return task, tally


def attacked(count: int, seed: str, workers: int = 1) -> Iterator[tuple[Task, Tally]]:
    """Every batch, in this process or in several."""
    todo = tasks(count, seed)
    if workers == 1:
        yield from map(done, todo)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(done, todo)


def summary(tallies: dict[str, Tally]) -> str:
    """A table by mode."""
    lines = [f"{'mode':14}{'tried':>8}{'accepted':>10}{'refused':>9}{'differences':>13}"]
    total = Tally()
    for mode, tally in tallies.items():
        total.add(tally)
        lines.append(_line(mode, tally))
    return "\n".join([*lines, _line("all", total)])


def _line(mode: str, tally: Tally) -> str:
    numbers = f"{tally.tried:8}{tally.accepted:10}{tally.refused:9}{len(tally.found):13}"
    return f"{mode:14}{numbers}  {tally.accepted / max(1, tally.tried):.0%}"


def report(tallies: dict[str, Tally], most: int) -> str:
    """Differences, the first of each mode and part, and which kinds of statements were accepted."""
    first: dict[tuple[str, str], list[Finding]] = {}
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for tally in tallies.values():
        kinds.update(tally.kinds)
        reasons.update(tally.reasons)
        for found in tally.found:
            first.setdefault((found.mode, found.part), []).append(found)
    lines = ["", "accepted, by kind: " + ", ".join(f"{k} {n}" for k, n in kinds.most_common())]
    lines += ["refused, by reason:", *(f"  {n:6} {why}" for why, n in reasons.most_common(most))]
    for (mode, part), several in sorted(first.items()):
        lines += ["", f"{mode}, {part}: {len(several)}", *map(str, several[:most])]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    given = os.environ.get
    parser.add_argument("--statements", type=int, default=int(given("STATEMENTS", "20000")))
    parser.add_argument("--seed", default=given("SEED", "0"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", type=int, default=3, help="differences of a kind to show")
    parser.add_argument("--only", nargs=2, metavar=("MODE", "NUMBER"), help="repeat one batch")
    options = parser.parse_args(arguments)
    tallies: dict[str, Tally] = {}
    start, tried, different = time.monotonic(), 0, 0
    if options.only:
        again = Task(options.only[0], int(options.only[1]), options.seed, BATCH)
        results: Iterator[tuple[Task, Tally]] = iter([done(again)])
    else:
        results = attacked(options.statements, options.seed, options.workers)
    for task, tally in results:
        tallies.setdefault(task.mode, Tally()).add(tally)
        tried += tally.tried
        different += len(tally.found)
        seconds = time.monotonic() - start
        shown = f"{tried} of {options.statements} statements, {different} differences"
        print(f"{shown}, {seconds:.0f} s", file=sys.stderr)
        for found in tally.found[:1]:  # at once: a long run may be stopped
            print(found, file=sys.stderr)
    print(summary(tallies))
    print(report(tallies, options.show))
    return int(any(tally.found for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
