import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from casemate.attack.extract.classifier import load_predict
from casemate.errors import Misconfigured

MODULE = """
import numpy as np
class Classifier:
    def predict(self, points):
        return np.where(points.sum(axis=1) > 0, "spam", "ham")
model = Classifier()
number = 3
def fails(points):
    raise KeyError("a secret")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stolen_model.py").write_text(MODULE)
    (tmp_path / "broken_model.py").write_text("def (")
    (tmp_path / "failing_model.py").write_text("1 / 0")
    (tmp_path / "needy_model.py").write_text("import no_such_package_at_all")
    yield tmp_path
    sys.modules.pop("stolen_model", None)


def test_a_method_of_a_module_in_this_folder_is_found(folder: Path) -> None:
    predict = load_predict("stolen_model:model.predict")
    assert predict(np.array([[1.0], [-1.0]])).tolist() == ["spam", "ham"]
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("stolen_model", "not module:function"),
        (":predict", "not module:function"),
        ("stolen_model:", "not module:function"),
        ("no_such_model:predict", "there is no module no_such_model"),
        ("no_such_model.inner:predict", "there is no module no_such_model.inner"),
        ("stolen_model:model.fit", "there is no fit in stolen_model"),
        ("stolen_model:number", "is not a function"),
        ("broken_model:predict", "importing broken_model failed with SyntaxError"),
        ("failing_model:predict", "importing failing_model failed with ZeroDivisionError"),
        ("needy_model:predict", "needy_model needs no_such_package_at_all; install it"),
    ],
)
def test_a_function_that_is_not_there_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        load_predict(name)


def test_a_function_that_fails_is_one_sentence_without_its_words() -> None:
    with pytest.raises(
        Misconfigured, match=r"failed with KeyError when .* 4 x 2 numbers"
    ) as caught:
        load_predict("stolen_model:fails")(np.zeros((4, 2)))
    assert "secret" not in str(caught.value)
