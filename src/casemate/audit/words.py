"""How the fields of an audit are put into words: who is meant, and how a value follows.

Exposed values that follow from the same statements for the same reason are one group. Groups that
need nothing but published numbers come before those that also need bounds or whole numbers, which
somebody might not know; of these the largest is first, because it is most people at once.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casemate.audit.result import Proof
from casemate.report import Code, Link, Prose, count_of, plain, shorten, words_of

HIDDEN = "•"
NAMES_SHOWN = 100
STATEMENTS_NAMED = 4
STEPS_SHOWN = 12
TITLE_LETTERS = 60
REASONS = {
    Proof.RANK: "many numbers together",
    Proof.BOUNDS: "bounds and types",
    Proof.INTEGER: "bounds, and that numbers are whole",
    Proof.ORDER: "extremes, medians and comparisons",
    Proof.MISSING: "counts of values that are there",
    Proof.READ: "shown as it is",
}
ASSUMING = (Proof.BOUNDS, Proof.INTEGER)
"""Proofs that use more than published numbers."""

Fields = Mapping[str, Any]
"""An object inside `casemate.audit/1`."""


@dataclass(frozen=True)
class Words:
    """The words of one report: whether values are there, titles, and which statements it lists.

    `numbers` is how the numbers of statements are written that are counted in a log of their own.
    """

    revealed: bool = False
    titles: Mapping[int, str] = field(default_factory=dict)
    linked: Container[int] = ()
    numbers: Mapping[int, str] = field(default_factory=dict)

    def value(self, value: object) -> str:
        """A private value, if values are revealed."""
        return plain(value) if self.revealed else HIDDEN

    def query(self, query: int) -> str:
        """A statement by its number, for example query 2, or query 1 of last_year.sql."""
        return f"query {self.numbers.get(query, query)}"

    def statement(self, query: int) -> str:
        """A statement by its number, and its title where it has one."""
        title = self.titles.get(query)
        name = self.query(query)
        return f'{name} "{shorten(title, TITLE_LETTERS)}"' if title else name

    def place(self, query: int, cell: Fields | None) -> str:
        """A published number: its statement, and the cell of it."""
        return self.query(query) + cell_name(cell)

    def link(self, query: int, name: str) -> Prose:
        """A name that leads to a statement, where the report lists it."""
        return Link(name, f"query-{query:d}") if query in self.linked else name

    def combination(self, certificate: Fields) -> Code:
        """A certificate as arithmetic, for example query 1 - query 2, with links to statements."""
        parts: list[Prose] = []
        for term in certificate["terms"]:
            coefficient, query = term["coefficient"], term["query"]
            sign = "-" if coefficient < 0 else "+" if parts else ""
            size = "" if abs(coefficient) == 1 else f"{abs(coefficient)} * "
            parts += [
                f"{' ' if parts else ''}{sign}{' ' if sign else ''}{size}",
                self.link(query, self.place(query, term["cell"])),
            ]
        if certificate["divisor"] != 1:
            parts = ["(", *parts, f") / {certificate['divisor']}"]
        return Code(tuple(parts))

    def steps(self, derivation: Sequence[Fields]) -> list[Prose]:
        """A proof, a clause for each step."""
        shown: list[Prose] = [
            step["text"]
            if step["query"] is None
            else (
                self.link(step["query"], self.place(step["query"], step["cell"])),
                f": {step['text']}",
            )
            for step in derivation[:STEPS_SHOWN]
        ]
        more = len(derivation) - STEPS_SHOWN
        return [*shown, f"{count_of(more, 'more step')}, in the JSON"] if more > 0 else shown

    def how_it_follows(self, finding: Fields) -> Prose:
        """What a value follows from: a combination of numbers, numbers, or what else is known."""
        if finding.get("certificate") is not None:
            return self.combination(finding["certificate"])
        if _proof(finding) is Proof.READ:
            by = finding["by"]
            return (self.link(by, self.query(by)), ", which shows it as it is")
        if finding["derivation"]:
            return self.places([(q, self.query(q), cell) for q, cell in _cells(finding)])
        last = "" if finding["by"] is None else f", the last of them in {self.query(finding['by'])}"
        return REASONS[_proof(finding)] + last

    def in_words(self, finding: Fields) -> Prose:
        """The proof, step by step, or why a combination of numbers gives the value."""
        if finding.get("certificate") is not None:
            return reason_of(finding)
        steps = self.steps(finding["derivation"])
        return tuple(part for step in steps for part in ("; ", step))[1:]

    def places(self, named: Sequence[tuple[int, str, str]]) -> Prose:
        """Some published numbers: each a statement, what it is called here, and its cell."""
        parts: list[Prose] = []
        for query, name, cell in named[:STATEMENTS_NAMED]:
            parts += [" and " if parts else "", self.link(query, name), cell]
        more = len(named) - STATEMENTS_NAMED
        return (*parts, f" and {more:,} more" if more > 0 else "")


def whose(finding: Fields) -> str:
    """A record in words, with its person where that has another name, and how it is singled out."""
    said = f"record {finding['record']}"
    if finding.get("total"):
        said = f"person {finding['person']}, all rows together"
    elif finding["person"] not in (None, finding["record"]):
        said += f" (person {finding['person']})"
    return said + described(finding.get("described"))


def described(attributes: Fields | None) -> str:
    """The public attributes that nobody else has."""
    if not attributes:
        return ""
    *others, last = (
        f"no {name}" if value is None else f"{name} {plain(value)}"
        for name, value in attributes.items()
    )
    return f", the only one with {' and '.join([', '.join(others), last] if others else [last])}"


def records_named(records: Sequence[object]) -> str:
    """Some records in words."""
    names = ", ".join(map(str, records[:NAMES_SHOWN]))
    more = len(records) - NAMES_SHOWN
    word = "record" if len(records) == 1 else "records"
    return f"{word} {names}" + (f" and {more:,} more" if more > 0 else "")


def cell_name(cell: Fields | None) -> str:
    """The keys of a cell."""
    if cell is None:
        return ""
    return f" [{', '.join(f'{name} = {plain(value)}' for name, value in cell.items())}]"


# Groups of what follows in the same way -----------------------------------------------------------

Cells = tuple[tuple[int, str], ...]
"""Statements, and the names of their cells; empty where there is none, or not the same for all."""


@dataclass(frozen=True)
class FindingGroup:
    """Findings about one column that follow from the same statements for the same reason.

    `cells` are what all of them follow from.
    """

    column: str
    proof: Proof
    cells: Cells
    reason: str
    members: tuple[Fields, ...]

    @property
    def persons(self) -> frozenset[object]:
        """The people it is about; a record whose person is not known is one of its own."""
        return frozenset(
            ("record", each["record"]) if each["person"] is None else each["person"]
            for each in self.members
        )

    @property
    def people(self) -> int:
        """How many people it is about."""
        return len(self.persons)

    @property
    def who(self) -> str:
        """How many people it is about, and which column."""
        return f"{count_of(self.people, 'person', 'people')}: {self.column}"

    @property
    def derivation(self) -> Sequence[Fields]:
        """The proof that all of them share; none where each has its own."""
        first = self.members[0]
        return () if _has_its_own(first) else first["derivation"]

    @property
    def rank(self) -> tuple[bool, int]:
        """Which groups are read first."""
        return self.proof in ASSUMING, -self.people


def grouped(findings: Iterable[Fields]) -> list[FindingGroup]:
    """Findings in groups, those to be read first at the beginning."""
    groups: dict[tuple[str, Proof, str, Cells], list[Fields]] = {}
    for each in findings:
        cells = _cells(each)
        same = _statements(cells) if _has_its_own(each) else cells
        key = (each["column"], _proof(each), reason_of(each), same)
        groups.setdefault(key, []).append(each)
    found = []
    for (column, proof, reason, same), members in groups.items():
        ways = {_cells(each) for each in members}
        shared = ways.pop() if len(ways) == 1 else same
        found.append(FindingGroup(column, proof, shared, reason, tuple(members)))
    return sorted(found, key=lambda group: group.rank)


def _has_its_own(finding: Fields) -> bool:
    """Whether a value follows by arithmetic of its own, or is read off a row of its own."""
    return bool(finding.get("certificate")) or _proof(finding) is Proof.READ


def _statements(cells: Cells) -> Cells:
    return tuple((query, "") for query in sorted({query for query, _ in cells}))


def _cells(finding: Fields) -> Cells:
    """The published numbers that a finding follows from, as far as they are known one by one."""
    steps = [step for step in finding["derivation"] if step["query"] is not None]
    places = [(step["query"], cell_name(step["cell"])) for step in steps]
    if not places and finding["by"] is not None:
        places = [(finding["by"], "")]
    return tuple(dict.fromkeys(places))


def statements_behind(finding: Fields) -> frozenset[int]:
    """The statements that a finding follows from, as far as they are known one by one."""
    tipping = () if finding["by"] is None else (finding["by"],)
    return frozenset(query for query, _ in _cells(finding)).union(tipping)


def reason_of(finding: Fields) -> str:
    """Why it follows, in a few words."""
    certificate, proof = finding.get("certificate"), _proof(finding)
    if proof is Proof.READ:
        return REASONS[proof]
    if certificate is None:
        steps = finding["derivation"]
        return str(steps[-1]["text"]) if steps else REASONS[proof]
    if proof is Proof.INTEGER:
        return "rounded sums of whole numbers are exact"
    if len(certificate["terms"]) == 1:
        return "nobody else is in it"
    taken_away = any(term["coefficient"] < 0 for term in certificate["terms"])
    return "taken from each other, they leave one person" if taken_away else "added up"


def _proof(finding: Fields) -> Proof:
    return Proof(finding.get("proof", Proof.MISSING))


def group_words(group: FindingGroup, words: Words) -> Prose:
    """A group as one clause: how many people, which column, by what, and why."""
    if not group.cells:
        return f"{group.who} by {group.reason}"
    places = words.places([(query, words.statement(query), cell) for query, cell in group.cells])
    return (f"{group.who} by ", places, f" ({group.reason})")


def plain_reason(finding: Fields) -> str:
    """How a value follows, in plain words."""
    return words_of(Words().how_it_follows(finding))
