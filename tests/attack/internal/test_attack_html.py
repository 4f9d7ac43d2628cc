"""The page of an attack: well-formed, escaped, self-contained, and no values unless revealed."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attack.attacks import HOSTILE, SECRETS, exact, judged, loose, outside, scored

from casemate.attack import Attack
from casemate.attack.attack import Attacked
from casemate.attack.noise_curve import NoisePoint, noise_curve
from casemate.attack.page import as_html
from casemate.attack.reconstruct.noise import NoiseLaw

CURVE = [NoisePoint(NoiseLaw("laplace", 2.0**i), 1 - i / 10) for i in range(5)]


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)


def words(page: str) -> str:
    return " ".join("".join(parsed(page).itertext()).split())


def sections(page: str) -> list[str]:
    return [each.attrib["id"] for each in parsed(page).iter("section")]


def whole(found: Attacked) -> Attacked:
    """The same attack as if its unknowns were whole, and its solver slow."""
    made = found.reconstruction
    history = tuple((i, 10.0**-i) for i in range(9))
    sure = np.linspace(0.4, 1.0, len(made.values))
    return replace(found, reconstruction=replace(made, history=history, probability=sure))


# What it says ---------------------------------------------------------------------------------


def test_the_headline_is_the_fraction() -> None:
    root = parsed(as_html(scored(exact(), {"pay": judged()})))
    assert root.findtext("body/main/header/h1") == "Recovered 75.0 % of 40 private values."


def test_every_finding_has_its_section() -> None:
    page = as_html(whole(scored(exact(), {"pay": judged()})), CURVE, reveal=True)
    assert sections(page) == [
        "baselines",
        "strata",
        "noise",
        "errors",
        "intervals",
        "certainty",
        "convergence",
        "values",
        "refused",
        "assumptions",
    ]


def test_an_outsiders_page_has_values_and_no_score() -> None:
    page = as_html(outside())
    assert not {"baselines", "strata", "noise", "errors"} & set(sections(page))
    assert "7654.12" in words(page) and "does not have the truth" in words(page)


def test_bars_are_the_attack_and_its_baselines_with_the_interval_beside() -> None:
    root = parsed(as_html(scored(exact(), {"pay": judged()})))
    (drawing,) = root.findall(".//section[@id='baselines']//svg")
    labels = [each.text for each in drawing.iter("text") if each.get("class") == "value"]
    assert labels == ["75.0", "37.5", "40.0", "30.0"]
    (line,) = drawing.iter("polyline")
    first, second = (point.split(",") for point in line.attrib["points"].split())
    assert first[0] == second[0] and float(first[1]) > float(second[1])


def test_the_noise_is_drawn_with_the_level_of_the_best_guess() -> None:
    root = parsed(as_html(scored(exact(), {"pay": judged()}), CURVE))
    (drawing,) = root.findall(".//section[@id='noise']//svg")
    assert len(drawing.findall(".//circle")) == len(CURVE)
    assert len(drawing.findall(".//polyline")) == 2
    assert "laplace:16: 60.0 %" in (drawing.findtext("desc") or "")


def test_the_histogram_counts_errors_in_tolerances() -> None:
    found, made = loose(), loose().reconstruction
    truth = found.evidence.truth
    assert truth is not None
    off = replace(made, values=truth + np.array([0.0, 0.5, 0.9, 4.0, 1000.0]))
    root = parsed(as_html(replace(found, reconstruction=off)))
    (drawing,) = root.findall(".//section[@id='errors']//svg")
    told = drawing.findtext("desc")
    assert told == "up to 1: 2, to 2: 1, to 5: 0, to 10: 1, to 20: 0, to 50: 0, above 50: 1."


def test_the_scatter_is_drawn_only_when_values_are_revealed() -> None:
    assert "Found against true values" not in as_html(exact())
    root = parsed(as_html(exact(), reveal=True))
    drawings = root.findall(".//section[@id='errors']//svg")
    assert len(drawings) == 2 and len(drawings[1].findall(".//circle")) == len(SECRETS)


def test_an_interrupted_attack_says_so() -> None:
    assert "this is the best so far" in words(as_html(replace(exact(), finished=False)))


def test_a_curve_of_the_attack_itself_can_be_drawn() -> None:
    page = as_html(loose(), noise_curve(loose(), random=np.random.default_rng(0)))
    assert "scale of gaussian noise" in words(page)


# What it never does ---------------------------------------------------------------------------


def test_nothing_secret_is_written_without_reveal() -> None:
    for found in (exact(), loose(), whole(exact())):
        hidden = as_html(found, CURVE)
        for secret in SECRETS:
            assert str(secret) not in hidden and f"{secret:.6g}" not in hidden
    shown = as_html(exact(), reveal=True)
    assert all(f"{secret:.6g}" in shown for secret in SECRETS)


@pytest.mark.parametrize("reveal", [False, True])
def test_hostile_names_stay_text(reveal: bool) -> None:
    root = parsed(as_html(exact(HOSTILE), CURVE, reveal=reveal))
    assert [each for each in root.iter() if each.tag == "script"] == []
    assert not any("onload" in each.attrib for each in root.iter())
    assert HOSTILE in "".join(root.itertext())


def test_it_refers_to_nothing_outside_itself_and_names_nothing_twice() -> None:
    page = as_html(whole(exact()), CURVE, reveal=True)
    assert not any(part in page for part in ("http://", "https://", "url(", "<script"))
    names = [each.attrib["id"] for each in parsed(page).iter() if "id" in each.attrib]
    assert len(names) == len(set(names))


def test_two_columns_have_two_figures(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,pay,ill\n1,10.5,0\n2,20.5,1\n3,40.5,1\n")
    statements = [f"SELECT SUM(pay), SUM(ill) FROM t WHERE id <= {i}" for i in (1, 2, 3)]
    found = Attack.of(
        statements, tmp_path / "t.csv", private=["pay", "ill"], random=np.random.default_rng(0)
    )
    root = parsed(as_html(found, CURVE, reveal=True))
    assert len(root.findall(".//section[@id='baselines']//svg")) == 2
    assert len(root.findall(".//section[@id='errors']//svg")) == 4
