"""An attack through yes/no answers as text, JSON and a page: what is said, and what is hidden."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from attack.one_bit_streams import two_humps
from rendered import forms, sections, words

from casemate.attack.one_bit import OneBitAttack, parse_law
from casemate.attack.one_bit.attack import OneBitFound
from casemate.attack.one_bit.laws import Gaussian, Law
from casemate.attack.one_bit.report import (
    defence,
    digits,
    one_bit_report,
    pays_after,
    price,
    size,
)

as_text, as_json, as_html = forms(one_bit_report)

CONTRACT = (
    "error limit kind ratio baseline van_trees root_mean_square queries learner values noise "
    "dimensions seconds curve"
)


@cache
def found(noise: str | Law = "laplace:200", queries: int = 2_000) -> OneBitFound:
    """An attack on four people, one a group, whose values are easy to recognise."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        path.write_text("id,pay\n1,7654.125\n2,8765.375\n3,6543.625\n4,9876.875\n")
        return OneBitAttack.of(
            path,
            private="pay",
            noise=noise,
            queries=queries,
            dimensions=4,
            bounds=(0.0, 10_000.0),
            random=np.random.default_rng(7),
        )


def said(noise: str) -> str:
    law = parse_law(noise)
    return " ".join(defence(replace(found(queries=100), law=law)))


def test_the_object_has_the_fields_of_the_contract() -> None:
    fields = as_json(found(), reveal=True)
    assert fields["schema"] == "casemate.one-bit/1" and set(fields) >= set(CONTRACT.split())
    assert (fields["queries"], fields["dimensions"], fields["records"]) == (2_000, 4, 4)
    assert [fields[each] for each in ("noise", "learner", "kind")] == [
        *("laplace:200", "kalman", "median")
    ]
    assert fields["ratio"] == pytest.approx(fields["error"] / fields["limit"], rel=1e-9)
    assert fields["root_mean_square"] > fields["error"] and fields["van_trees"] > 0
    assert fields["curve"][-1]["error"] == fields["error"]
    assert [each["group"] for each in fields["values"]] == [
        f"id = {place}" for place in (1, 2, 3, 4)
    ]
    assert all(0 <= each["lo"] <= each["value"] <= each["hi"] for each in fields["values"])
    json.dumps(fields, allow_nan=False)


def test_without_reveal_there_are_no_values_and_errors_are_rounded() -> None:
    hidden, shown = as_json(found()), as_json(found(), reveal=True)
    assert hidden["values"] is None
    for name in ("error", "baseline", "root_mean_square", "ratio", "late_ratio"):
        assert hidden[name] == float(f"{shown[name]:.3g}") != shown[name]
    pairs = zip(hidden["curve"], shown["curve"], strict=True)
    assert all(one["error"] == float(f"{other['error']:.2g}") for one, other in pairs)
    assert "mean" not in as_text(found()).split("intervals")[0].replace("root mean", "")
    assert "id = 3" not in as_text(found()) and "id = 3: mean" in as_text(found(), reveal=True)
    page, revealed = words(as_html(found())), words(as_html(found(), reveal=True))
    assert "No values are written" in page and "id = 3" not in page
    values = [f"{each.value:.6g}" for each in found().values]
    assert all(each in revealed and each not in page for each in values)


def test_the_text_says_error_limit_ratio_and_one_half() -> None:
    lines = as_text(found()).splitlines()
    errors = found().errors
    assert lines[0] == (
        f"after 2,000 yes/no answers totals of pay were off by {size(errors.error)} on average; "
        f"one half of everything would be off by {size(errors.baseline)}"
    )
    assert lines[1] == (
        "4 groups of 4 records by public columns, even weights; noise laplace:200 on every total; "
        "learner kalman, told its law"
    )
    assert f"ratio {errors.ratio:.2f} of error to limit" in lines[3]
    assert "van Trees' bound" in lines[4]
    assert [line.split()[0] for line in lines[7:12]] == ["1", "10", "100", "1,000", "2,000"]


def test_a_stream_that_is_too_short_has_no_ratio() -> None:
    short = found(queries=2)
    assert as_json(short)["ratio"] is None and as_json(short)["width"] is None
    assert "ratio: none" in as_text(short)
    assert "0 of 4 groups can be told apart" in as_text(short)


def test_an_interrupted_attack_says_so() -> None:
    stopped = replace(found(), finished=False)
    assert as_json(stopped)["finished"] is False
    assert "interrupted: this is the best so far" in as_text(stopped)
    assert "Interrupted: this is the best so far." in words(as_html(stopped))


def test_every_finding_has_its_section_and_one_query_is_a_page_too() -> None:
    for page in (as_html(found()), as_html(found(queries=1))):
        assert sections(page) == ["error", "certainty", "defence", "assumptions"]


def test_error_limit_and_one_half_are_drawn_on_logarithmic_axes() -> None:
    page = ET.fromstring(as_html(found()))
    curves = {each.attrib["class"]: each.attrib["points"].split() for each in page.iter("polyline")}
    assert list(curves) == ["curve soft", "curve other", "curve plain"]
    assert len(curves["curve other"]) == len(curves["curve plain"]) == len(found().curve)
    labels = [each.text for each in page.iter("text")]
    assert {"1", "10", "100", "1,000", "queries"} <= set(labels)


# The defence ----------------------------------------------------------------------------------


def test_an_edge_is_named_with_when_it_pays() -> None:
    told = said("uniform:50")
    assert "bounded noise is a gift to the attacker: this one ends abruptly at -50 and 50" in told
    assert "from about 34 queries on" in told and "never uniform or clipped noise" in told
    assert pays_after(parse_law("uniform:50"), 4) == 34
    assert "ends abruptly at -6.931," in said("exponential:10")
    fields = as_json(found("uniform:200"))
    assert fields["edge_pays_after"] == 34
    assert fields["van_trees"] is None and fields["full_limit"] is None
    page = words(as_html(found("uniform:200")))
    assert "Bounded noise is a gift to the attacker" in page
    assert "A bit is as good as an answer" in page


@pytest.mark.parametrize("noise", ["cosine:50", "triangular:50"])
def test_a_bounded_law_that_comes_in_flat_has_no_such_edge(noise: str) -> None:
    told = said(noise)
    assert "bounded, by -50 and 50, but its density comes down to nothing there" in told
    assert "gift" not in told and pays_after(parse_law(noise), 4) is None


def test_a_bit_is_as_good_as_an_answer_and_exactly_so_for_laplace_noise() -> None:
    assert price(parse_law("laplace:3")) == pytest.approx(1, abs=1e-6)
    assert "errors are no larger than with whole noisy answers" in said("laplace:3")
    assert "errors are 1.25 times those with whole" in said("gaussian:3")
    for noise in ("laplace:3", "gaussian:3", "uniform:3", "triangular:3", "cauchy:3"):
        assert "a bit is as good as an answer, so charge it as one" in said(noise)
    assert price(parse_law("uniform:3")) is None and price(parse_law("triangular:3")) is None
    assert "this noise has no edge" in said("gaussian:3")


def test_a_law_with_two_humps_has_its_better_threshold_named() -> None:
    told = " ".join(as_json(found(two_humps(Gaussian(400), 1000), 500))["defence"])
    assert "the median is not the best threshold for this noise: one 1,180 away from it" in told
    assert "tells 194 times as much" in told


# Numbers --------------------------------------------------------------------------------------


def test_numbers_have_three_digits() -> None:
    assert [size(each) for each in (0.012345, 12.345, 123456.0)] == ["0.0123", "12.3", "123,000"]
    assert digits(1234.5, 2) == 1200 and digits(None, 2) is None and digits(float("inf"), 2) is None
