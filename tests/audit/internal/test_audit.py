"""Certificates and values in words."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

from casemate.audit.report import combination
from casemate.audit.result import CertificateTerm, PublishedCertificate
from casemate.published import Place
from casemate.report import number, plain


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
