"""The page of an audit: well-formed, escaped, self-contained, and no values unless revealed."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from rendered import forms, words

from casemate.audit import Audit, Exposed
from casemate.audit.fields import certificate_fields
from casemate.audit.figures import MAP_COLUMNS, MAP_ROWS
from casemate.audit.report import audit_report
from casemate.audit.result import (
    Approximate,
    Audited,
    CertificateTerm,
    DerivationStep,
    ExposedIfExact,
    Group,
    InsiderExposed,
    MissingValue,
    OpenReason,
    Proof,
    PublishedCertificate,
    RemainingInterval,
    Repaired,
    SensitiveCell,
    Verdict,
    Withheld,
)
from casemate.audit.words import Words
from casemate.published import People, Place, RefusedQuery
from casemate.report import ROWS_ON_PAGE, number, plain, words_of
from casemate.table import Table

_text, _fields, as_html = forms(audit_report)

SECRET = 987654321
QUERIES = (
    'SELECT SUM("Blood sugar") FROM t',
    "SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Female'",
    "SELECT SUM(\"Blood sugar\") FROM t WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male'",
    'SELECT SUM("Blood sugar") FROM t WHERE Gender = "Male"',
)
HOSTILE = "</td></style><script>alert('x')</script>\" onload=\"&amp;"


@pytest.fixture(scope="module")
def hospital() -> Audited:
    with Table.open("hospital") as table:
        return Audit.of(QUERIES, table)


def combination(certificate: PublishedCertificate) -> str:
    return words_of(Words().combination(certificate_fields(certificate) or {}))


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)


@cache
def nothing() -> Audited:
    """An audit of a statement about nobody."""
    with Table.open("hospital") as table:
        return Audit.of(['SELECT SUM("Blood sugar") FROM t WHERE ZIP < 0'], table)


def empty(records: int = 3) -> Audited:
    """An audit of some records, named by text, that found nothing."""
    keys = np.array([f"key-{place}" for place in range(records)], dtype=object)
    people = People(keys, np.arange(records))
    return replace(nothing(), records=records, people=people, statements=())


def exposure(record: int, *queries: int, column: str = "pay", value: Any = SECRET) -> Exposed:
    terms = tuple(CertificateTerm(Place(query, "sum", None), 1) for query in queries)
    certificate = PublishedCertificate(terms, 1) if terms else None
    proof = Proof.RANK if terms else Proof.BOUNDS
    by = queries[-1] if queries else None
    return Exposed(f"key-{record}", f"key-{record}", column, value, certificate, by, proof)


def interval(record: int, low: int, high: int, column: str = "pay") -> RemainingInterval:
    ends = (Fraction(low), Fraction(high), Fraction(0), Fraction(2 * SECRET))
    return RemainingInterval(f"key-{record}", column, *ends)


@dataclass(frozen=True)
class SecondTables:
    """Second tables that cover one record of three."""

    tables: tuple[dict[tuple[int, str], Fraction], ...] = ({(0, "pay"): Fraction(SECRET)},)
    covered: int = 1
    narrow: tuple[str, ...] = ("key-0",)
    uncovered: tuple[str, ...] = ("key-2",)
    file: None = None

    def check(self) -> bool:
        return True


def _but_for_rounding(column: str) -> ExposedIfExact:
    found = exposure(2, 1, column=column)
    shown = (found.record, found.person, column, Fraction(SECRET), Fraction(1, 2))
    return ExposedIfExact(*shown, found.certificate, 1)


def everything(column: str = "pay", text: str = "SELECT 1", key: str = "x") -> Audited:
    """An audit in which every section has something secret to hide."""
    cell = CertificateTerm(Place(1, "sum", (("area", key),)), 2)
    step = DerivationStep(1, (("area", key),), f"COUNT of {column} is 0, so all are missing")
    shown = replace(exposure(0, 1, column=column), certificate=PublishedCertificate((cell,), 3))
    return replace(
        empty(),
        verdict=Verdict.EXPOSED,
        exposed=(shown, exposure(1, column=column, value="sentinel-text")),
        tight=(interval(2, SECRET - 1, SECRET, column),),
        groups=(Group(("key-0", "key-2"), column, Fraction(SECRET)),),
        exposed_if_exact=(_but_for_rounding(column),),
        approximate=(
            Approximate("key-2", column, ("key-1",), Fraction(SECRET - 2), Fraction(SECRET)),
            Approximate("key-2", column, (), Fraction(SECRET - 2), Fraction(SECRET)),
        ),
        sensitive_cells=(SensitiveCell(1, column, (("area", key),), ("p-percent",)),),
        witness=SecondTables(),
        repair=Repaired((Withheld(1, (("area", key),)),), (2,), text, nothing(), 3),
        insider_exposed=(InsiderExposed("key-1", column, ("key-0", "key-2")),),
        missing=(MissingValue("key-2", "key-2", column, 1, (step,)),),
        undecided=("key-1",),
        unchecked=("key-2",),
        reasons=(OpenReason("undecided", ("key-1",), f"{column} and sums of it"),),
        refused=(RefusedQuery(2, 3, 14, text, f"the column {column}: it is not linear"),),
        bounds=(
            interval(2, SECRET - 1, SECRET, column),
            interval(1, 0, SECRET, column),
            interval(3, 0, SECRET, column),
        ),
        assumptions=(f"{column} has no declared bounds",),
        consistent=False,
        statements=(text, text),
    )


# What it says -------------------------------------------------------------------------------------


def test_a_certificate_reads_as_in_the_text_and_leads_to_its_statements(hospital: Audited) -> None:
    root = parsed(as_html(hospital))
    (code,) = root.findall(".//section[@id='exposed']//code")
    (exposed,) = hospital.exposed
    assert exposed.certificate is not None
    assert "".join(code.itertext()) == combination(exposed.certificate)
    targets = [link.attrib["href"] for link in code.iter("a")]
    assert targets == ["#query-1", "#query-2", "#query-3"]
    rows = {row.attrib.get("id"): "".join(row.itertext()) for row in root.iter("tr")}
    assert all(QUERIES[n - 1] in rows[f"query-{n}"] for n in (1, 2, 3))


def test_a_certificate_reads_as_arithmetic() -> None:
    terms = (
        CertificateTerm(Place(1, "sum", None), -1),
        CertificateTerm(Place(2, "sum", (("sex", "f"), ("area", None))), 2),
        CertificateTerm(Place(3, "sum", None), -3),
    )
    whole = "- query 1 + 2 * query 2 [sex = f, area = NULL] - 3 * query 3"
    assert combination(PublishedCertificate(terms, 1)) == whole
    assert combination(PublishedCertificate(terms, 4)) == f"({whole}) / 4"


def test_numbers_stay_exact_or_become_text() -> None:
    assert [number(each) for each in (Fraction(6, 2), Fraction("5.2"), Fraction(1, 3))] == [
        3,
        5.2,
        "1/3",
    ]
    assert number(Decimal("4.50")) == 4.5
    assert number(date(2020, 2, 29)) == "2020-02-29"
    assert (plain(None), plain(Fraction("11.4")), plain("flu")) == ("NULL", "11.4", "flu")


def test_values_are_shown_when_they_are_revealed(hospital: Audited) -> None:
    shown = words(as_html(hospital, reveal=True))
    assert "5.2" in shown and "11.4" in shown and "15.5" in shown
    assert "•" not in shown


def test_the_map_marks_who_takes_part_and_who_tips() -> None:
    audit = replace(empty(), exposed=(exposure(0, 1, 3), exposure(1, 3)), statements=("",) * 3)
    (figure,) = parsed(as_html(audit)).findall(".//section[@id='map']//svg")
    dots = [(each.attrib["class"], each.findtext("title")) for each in figure.iter("circle")]
    assert dots == [
        ("soft", "record 1: query 1 takes part"),
        ("strong", "record 1: query 3 is the last one needed"),
        ("strong", "record 2: query 3 is the last one needed"),
    ]


def test_the_histogram_counts_everybody_once() -> None:
    ranges = tuple(interval(i, 0, high) for i, high in enumerate([2 * SECRET, SECRET, 1, 0]))
    audit = replace(empty(4), exposed=(exposure(3),), bounds=ranges)
    (figure,) = parsed(as_html(audit)).findall(".//section[@id='shrinkage']//svg")
    bars = [float(bar.attrib["height"]) > 0 for bar in figure.iter("rect")]
    assert [place for place, there in enumerate(bars) if there] == [0, 5, 9, 10]
    values = [each.text for each in figure.iter("text") if each.get("class") == "value"]
    assert values.count("1") == 4


def test_the_histogram_leaves_out_whoever_is_left_open() -> None:
    ranges = tuple(interval(i, 0, 2 * SECRET) for i in range(3))
    audit = replace(empty(3), bounds=ranges, undecided=("key-0",), unchecked=("key-1",))
    (section,) = parsed(as_html(audit)).findall(".//section[@id='shrinkage']")
    values = [each.text for each in section.iter("text") if each.get("class") == "value"]
    assert values[0] == "1"
    assert "2 of records that are left open are not in it" in "".join(section.itertext())
    nobody = replace(audit, undecided=("key-0", "key-1", "key-2"), unchecked=())
    assert not parsed(as_html(nobody)).findall(".//section[@id='shrinkage']")


@pytest.mark.parametrize(
    ("undeclared", "advice"),
    [
        (("bounds", "integer"), "--bounds LO:HI and --integer if they are known, else take them"),
        (("integer",), "another reason: --integer if that is known, else take them as exposed"),
        ((), "who is left open for another reason as exposed"),
    ],
)
def test_only_what_is_not_declared_yet_is_asked_for(
    undeclared: tuple[str, ...], advice: str
) -> None:
    reasons = (OpenReason("undecided", ("key-0",), "no proof was found"),)
    audit = replace(empty(3), undecided=("key-0",), reasons=reasons, undeclared=undeclared)
    said = "".join(parsed(as_html(audit)).itertext())
    assert advice in said and ("--bounds" in said) is ("bounds" in undeclared)


def test_refusals_say_where_and_why(hospital: Audited) -> None:
    (row,) = parsed(as_html(hospital)).findall(".//section[@id='refused']//tbody/tr")
    (refused,) = hospital.refused
    place = f"{refused.line}:{refused.column}"
    assert [each.text for each in row][:2] == ["query 4", place]
    assert "single quotation marks" in "".join(row.itertext())


def test_a_repair_is_shown_unless_it_exposes_somebody_itself(hospital: Audited) -> None:
    safe = Repaired((), (), "SELECT 5", nothing(), 3)
    assert "SELECT 5" in words(as_html(replace(empty(), repair=safe)))
    assert "SELECT 5" not in words(
        as_html(replace(empty(), repair=replace(safe, audited=hospital)))
    )


def test_an_audit_that_found_nothing_has_no_empty_sections() -> None:
    root = parsed(as_html(empty()))
    assert [each.attrib["id"] for each in root.iter("section")] == ["assumptions"]


def test_every_finding_has_its_section() -> None:
    root = parsed(as_html(everything()))
    assert {each.attrib["id"] for each in root.iter("section")} >= {
        "map",
        "shrinkage",
        "exposed",
        "missing",
        "tight",
        "groups",
        "rounded",
        "approximate",
        "cells",
        "repair",
        "witness",
        "insiders",
        "open",
        "refused",
        "statements",
        "assumptions",
    }
    assert "contradict each other" in words(as_html(everything()))


# What it never does -------------------------------------------------------------------------------


def test_nothing_secret_is_written_without_reveal() -> None:
    hidden, shown = as_html(everything()), as_html(everything(), reveal=True)
    for sentinel in (str(SECRET), str(SECRET - 1), "sentinel-text", "key-0", "key-1", "key-2"):
        assert sentinel in shown
        assert sentinel not in hidden


# Large audits -------------------------------------------------------------------------------------


def large() -> Audited:
    rng = np.random.default_rng(0)
    found = tuple(
        exposure(i, *(1 + rng.choice(700, 5, replace=False)).tolist()) for i in range(900)
    )
    return replace(empty(900), exposed=found, statements=("SELECT 1",) * 700)


def test_a_large_audit_stays_readable_and_counts_the_rest() -> None:
    page = as_html(large())
    root = parsed(page)
    dots = root.findall(".//section[@id='map']//circle")
    assert 0 < len(dots) <= MAP_ROWS * MAP_COLUMNS
    (caption,) = root.findall(".//section[@id='map']//figcaption")
    told = "".join(caption.itertext())
    assert f"And {900 - MAP_ROWS} more" in told and "more statements take part" in told
    assert len(root.findall(".//section[@id='exposed']//tbody/tr")) == ROWS_ON_PAGE
    assert f"and {900 - ROWS_ON_PAGE} more" in words(page)
    assert len(page) < 1_000_000
