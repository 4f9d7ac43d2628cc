import math
from pathlib import Path

import pytest

from casemate.attack.extract.extraction import read_truth
from casemate.errors import Misconfigured


@pytest.mark.parametrize(
    ("text", "intercept"),
    [
        ('{"weights": [1, -2], "intercept": 0.5}', 0.5),
        ('{"weights": [1, -2]}', math.nan),
        ('{"weights": [1, -2], "intercept": null}', math.nan),
        ("[1, -2]", math.nan),
        ("[1, -2, 3]", 3),
        ("1,-2\n", math.nan),
        ("\ufeff1\n-2\n0.5\n", 0.5),
        ("1 -2 5e-1", 0.5),
    ],
)
def test_weights_and_perhaps_an_intercept_are_read(
    text: str, intercept: float, tmp_path: Path
) -> None:
    (tmp_path / "truth").write_text(text, encoding="utf-8")
    found = read_truth(tmp_path / "truth", 2)
    assert found.weights.tolist() == [1, -2]
    assert found.intercept == pytest.approx(intercept, nan_ok=True)


def test_one_number_is_one_weight(tmp_path: Path) -> None:
    (tmp_path / "truth").write_text("-3")
    assert read_truth(tmp_path / "truth", 1).weights.tolist() == [-3]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1]", "has 1 numbers; expected 2 weights"),
        ("1,2,3,4", "has 4 numbers"),
        ("a,b", "neither numbers nor JSON"),
        ('"12"', "neither numbers nor JSON"),
        ("null", "neither numbers nor JSON"),
        ('{"weight": [1, 2]}', "neither numbers nor JSON"),
        ('{"weights": [1, [2]]}', "neither numbers nor JSON"),
        ("0,0", "not all 0"),
        ("1,inf", "must be finite"),
        ("", "has 0 numbers"),
    ],
)
def test_a_file_that_is_no_boundary_is_one_sentence(
    text: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "truth").write_text(text)
    with pytest.raises(Misconfigured, match=sentence):
        read_truth(tmp_path / "truth", 2)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be read"):
        read_truth(tmp_path / "gone", 2)
