"""The online auditor on tables that differ in private values only.

Decisions must be the same on all of them. What is answered must be an affine function of the
secrets, found by asking about tables in which one person has something and all others nothing; and
no combination of these functions may be about one person.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from neighbours.compare import Finding
from neighbours.tables import csv

from casemate import CasemateError, OnlineAuditor

PEOPLE = ("ana", "ben", "cem", "dora", "emil", "fay")
HUGE = 9223372036854775807
SECRETS: dict[str, tuple[str, ...]] = {
    "integer": ("0", "1", "7", "-3", "5200", "4611686018427387904", "9007199254740993", "-1000000"),
    "decimal": ("0", "0.1", "7.5", "-3.25", "5200", "123456789012.123456", "0.000001"),
    "double": ("0", "0.5", "7.25", "-3", "5200", "1024", "0.125"),
}
UNIT = 3
"""What one person has in the table that is about that person."""


@dataclass(frozen=True)
class Secrets:
    """The private values of everybody, as one table has them."""

    values: tuple[str, ...]

    def written(self, folder: Path, kind: str, nullable: bool) -> Path:
        folder.mkdir(parents=True)
        rows = [
            (name, "red" if place % 2 else "blue", str(place + 1), "" if place == 4 else "x", value)
            for place, (name, value) in enumerate(zip(PEOPLE, self.values, strict=True))
        ]
        csv(folder / "staff.csv", ("name", "team", "n", "note", "pay"), rows)
        (folder / "casemate.toml").write_text(
            '[table]\nsource = "staff.csv"\n[columns.name]\n[columns.team]\n'
            '[columns.n]\ntype = "integer"\n[columns.note]\n[columns.pay]\nrole = "private"\n'
            f'type = "{kind}"\nunbounded = true\nnullable = {str(nullable).lower()}\n'
        )
        return folder / "casemate.toml"


def random_secrets(rng: Random, kind: str, nullable: bool) -> list[Secrets]:
    """Nothing at all, something of each, and whatever there is."""
    nothing = ["0"] * len(PEOPLE)
    alone = [[*nothing[:i], str(UNIT), *nothing[i + 1 :]] for i in range(len(PEOPLE))]
    anything = [[rng.choice(SECRETS[kind]) for _ in PEOPLE] for _ in range(2)]
    if nullable:
        anything = [[each if rng.random() < 0.6 else "" for each in row] for row in anything]
    return [Secrets(tuple(row)) for row in (nothing, *alone, *anything)]


# Statements -----------------------------------------------------------------------------------


def random_statement(rng: Random, kind: str, extremes: bool) -> tuple[str, str, int]:
    """A statement, the same with its result as it is, and how many of its columns are keys."""
    argument = random_argument(rng, kind)
    functions = ("MIN", "MAX") if extremes else ("SUM", "SUM", "SUM", "AVG", "COUNT", "MAX")
    shown = bare = f"{rng.choice(functions)}({argument})"
    if rng.random() < 0.15:
        shown = rng.choice([f"COALESCE({shown}, 0)", f"{shown} * 2", f"{shown} / 3", f"- {shown}"])
    few = ", ".join(f"'{name}'" for name in rng.sample(PEOPLE, rng.randint(2, 5)))
    if rng.random() < 0.15:
        filtered = f" FILTER (WHERE name IN ({few}))"
        shown, bare = shown + filtered, bare + filtered
    where = rng.choice(["", "", f" WHERE name IN ({few})", " WHERE n > 2", " WHERE note = 'x'"])
    if rng.random() < 0.2:
        where += " GROUP BY team"
        return f"SELECT team, {shown} FROM t{where}", f"SELECT team, {bare} FROM t{where}", 1
    return f"SELECT {shown} FROM t{where}", f"SELECT {bare} FROM t{where}", 0


def random_argument(rng: Random, kind: str) -> str:
    """The secret, or what is taken for a linear function of it."""
    if rng.random() < 0.25:
        return "pay"
    changed = random_change(rng, kind)
    if rng.random() < 0.5:
        return changed
    return f"CASE WHEN name = '{rng.choice(PEOPLE)}' THEN {changed} ELSE pay END"


def random_change(rng: Random, kind: str) -> str:
    whole = (str(HUGE), str(-HUGE), str(HUGE // 2), "4611686018427387904", "12", "1", "0", "-1")
    real = ("0.0000001", "0.1", "99999999999999999999999999", "1e300", "0.000000000001", "2.5")
    c = rng.choice(whole if kind == "integer" and rng.random() < 0.7 else (*whole, *real))
    d = rng.choice(["2", "3", "1000", "0.1", "0"])
    made = [f"(pay + {c}) - {c}", f"pay * {c}", f"pay / {d}", f"pay + {c}", f"pay - {c}", "- pay"]
    made += [f"(pay * {c}) / {c}", f"({c} - pay)", f"pay * {c} * {c}", f"pay % {d}"]
    made += ["CAST(pay AS DOUBLE PRECISION)", f"CAST(pay + {c} AS NUMERIC(38, 2))", "ROUND(pay)"]
    made += [f"ROUND(pay * {c}, 2)", "pay * n", f"pay * n + {c}", f"COALESCE(pay + {c}, 0)"]
    made += [f"NULLIF(pay, {d})", f"GREATEST(pay, {c})", "CAST(CAST(pay AS TEXT) AS NUMERIC)"]
    made += [f"pay + CAST('1e{rng.choice([15, 17, 300])}' AS DOUBLE PRECISION)", "pay + n / 0"]
    return rng.choice(made)


# A conversation -------------------------------------------------------------------------------


Open = Callable[[Path, int], OnlineAuditor]
"""How an auditor is opened over a policy, by scans from so many records: a twin opens another."""


def plainly(policy: Path, scans_from: int) -> OnlineAuditor:
    return OnlineAuditor(policy, scans_from=scans_from)


def conversation(
    rng: Random, count: int, folder: Path, scans: bool, open_auditor: Open = plainly
) -> tuple[int, int, Counter[str], list[Finding]]:
    """So many statements to auditors of all tables at once: tried, allowed, reasons, findings."""
    kind, nullable = rng.choice(list(SECRETS)), rng.random() < 0.2
    tables = random_secrets(rng, kind, nullable)
    allowed, reasons, found, extremes = 0, Counter[str](), [], rng.random() < 0.25
    with ExitStack() as opened:
        auditors = [
            opened.enter_context(
                open_auditor(
                    each.written(folder / str(place), kind, nullable), 1 if scans else 10**9
                )
            )
            for place, each in enumerate(tables)
        ]
        watch = Watch(kind, nullable, tables)
        for _ in range(count):
            sql, bare, keys = random_statement(rng, kind, extremes)
            decisions = [_decision(each, sql) for each in auditors]
            reasons[decisions[0].split(": ", 1)[-1][:70]] += 1
            if len(set(decisions)) > 1:
                other = next(each for each in decisions if each != decisions[0])
                found.append(Finding("", "decision", sql, decisions[0], other, kind))
                break
            if "unexpected" in decisions[0]:
                found.append(Finding("", "unexpected", sql, decisions[0], "", kind))
            if decisions[0].startswith("allowed"):
                allowed += 1
                problem = watch.problem(auditors, sql, bare, keys)
                found += problem
                if problem:
                    break
    return reasons.total(), allowed, reasons, found


def _decision(auditor: OnlineAuditor, sql: str) -> str:
    try:
        decision = auditor.would_expose(sql)
    except CasemateError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"unexpected {type(error).__name__}"
    return f"{'allowed' if decision.allowed else 'refused'}: {decision.reason} ({decision.family})"


class Watch:
    """What has been answered, as functions of the secrets."""

    def __init__(self, kind: str, nullable: bool, tables: Sequence[Secrets]) -> None:
        self._kind, self._nullable, self._tables = kind, nullable, tables
        self._rows: list[list[Fraction]] = []

    def problem(
        self, auditors: Sequence[OnlineAuditor], sql: str, bare: str, keys: int
    ) -> list[Finding]:
        """What is wrong with answering this, after all that was answered.

        A result that was computed on, and may have left its type or lost its fraction there, must
        be a function of the result itself.
        """
        if "MIN(" in sql or "MAX(" in sql:
            ends = {_recorded(each, sql) for each in auditors}
            return [self._finding("record", sql, *sorted(ends)[:2])] if len(ends) > 1 else []
        answers = self._answers(auditors, sql, keys)
        if not isinstance(answers, Finding) and (self._nullable or not answers[0]):
            return []
        results = answers if bare == sql else self._answers(auditors, bare, keys)
        if isinstance(answers, Finding) or isinstance(results, Finding):
            return [each for each in (answers, results) if isinstance(each, Finding)][:1]
        for key in results[0]:  # none where it is refused after the other
            values = [numbers.get(key) for numbers in results]
            shown = dict(zip(values, (numbers[key] for numbers in answers), strict=True))
            if any(shown[value] != each[key] for value, each in zip(values, answers, strict=True)):
                return [self._finding("result", sql, "one result", "is shown as two numbers")]
            if problem := self._added(values, sql):
                return [problem]
        return []

    def _answers(
        self, auditors: Sequence[OnlineAuditor], sql: str, keys: int
    ) -> list[dict[Any, Any]] | Finding:
        """The numbers of every table, unless something else of the answers tells them apart."""
        answers = [_answered(each, sql, keys) for each in auditors]
        shapes = sorted({shape for shape, _ in answers})
        if len(shapes) > 1:
            return self._finding("answer", sql, *shapes[:2])
        return [numbers for _, numbers in answers]

    def _added(self, values: list[Any], sql: str) -> Finding | None:
        """One number, on each table: it must be affine, and expose nobody with the others.

        A double shows its nearest double, which may hide what one person has: it is a function of
        the sum all the same, and the form is known only to within that.
        """
        if None in values:
            missing = self._finding("null", sql, "NULL in some tables", "and not in others")
            return missing if any(value is not None for value in values) else None
        nothing, *alone = (Fraction(value) for value in values[: len(PEOPLE) + 1])
        form = [(value - nothing) / UNIT for value in alone]
        for secrets, value in zip(self._tables[len(PEOPLE) + 1 :], values[-2:], strict=True):
            own = [Fraction(each or 0) for each in secrets.values]
            terms = [nothing, *(a * b for a, b in zip(form, own, strict=True))]
            expected = sum(terms, Fraction(0))
            size = max(Fraction(1), *map(abs, terms))
            hidden = sum(map(abs, own)) * max(map(abs, (nothing, *alone))) / 2**51
            if abs(Fraction(value) - expected) > size / 10**9 + hidden:
                return self._finding("not affine", sql, str(float(expected)), str(value))
        self._rows.append([each.limit_denominator(10**7) for each in form])
        person = exposed(self._rows)
        return None if person is None else self._finding("exposed", sql, PEOPLE[person], "nobody")

    def _finding(self, part: str, sql: str, one: str, two: str) -> Finding:
        return Finding("", part, sql, one, two, self._kind)


def _recorded(auditor: OnlineAuditor, sql: str) -> str:
    """Take note of extremes with answers that are the same for every table."""
    for count in range(1, 4):
        try:
            auditor.record(sql, [Fraction(7)] * count)
        except ValueError:  # another number of extremes
            continue
        except CasemateError as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return f"unexpected {type(error).__name__}"
        return "recorded"
    return "not recorded"


def _answered(auditor: OnlineAuditor, sql: str, keys: int) -> tuple[str, dict[Any, Any]]:
    """The shape of an answer, and its numbers by key."""
    try:
        answer = auditor.ask(sql)
    except CasemateError as error:
        return f"{type(error).__name__}: {error}", {}
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"unexpected {type(error).__name__}", {}
    shown = sorted(repr(row[:keys]) for row in answer.rows)
    numbers = {row[:keys]: row[keys] for row in answer.rows}
    finite = {key: _finite(value) for key, value in numbers.items()}
    return f"{answer.names} {shown}", finite


def _finite(value: Any) -> Any:
    if isinstance(value, float | Decimal) and not Decimal(value).is_finite():
        return None
    return value


def exposed(rows: Sequence[Sequence[Fraction]]) -> int | None:
    """Somebody whose unit vector is a combination of the rows, by elimination."""
    width = len(PEOPLE)
    reduced: list[list[Fraction]] = []
    for row in rows:
        left = list(row)
        for pivot in reduced:
            lead = next(i for i in range(width) if pivot[i])
            if left[lead]:
                left = [a - left[lead] * b for a, b in zip(left, pivot, strict=True)]
        lead_place = next((i for i in range(width) if left[i]), None)
        if lead_place is None:
            continue
        left = [each / left[lead_place] for each in left]
        reduced = [
            [a - pivot[lead_place] * b for a, b in zip(pivot, left, strict=True)]
            for pivot in reduced
        ]
        reduced.append(left)
    alone = [[i for i in range(width) if row[i]] for row in reduced]
    return next((places[0] for places in alone if len(places) == 1), None)
