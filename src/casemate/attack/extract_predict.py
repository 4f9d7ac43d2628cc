"""A classifier that is a Python function, named as `module:function`."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from casemate.attack.extract_asking import Predict
from casemate.attack.extract_boundary import Floats
from casemate.errors import Misconfigured

FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What goes wrong in somebody else's code; its message may quote what nobody should read."""


def load_predict(name: str) -> Predict:
    """The function behind `module:function`, looked for in the current folder as well."""
    module, separator, path = name.partition(":")
    if not (module and separator and path):
        raise Misconfigured(
            f"--predict {name} is not module:function; write for example model:classifier.predict"
        )
    found = _imported(module, name)
    for part in path.split("."):
        if not hasattr(found, part):
            raise Misconfigured(f"--predict {name}: there is no {part} in {module}")
        found = getattr(found, part)
    if not callable(found):
        raise Misconfigured(f"--predict {name} is not a function")
    return guarded(found, f"--predict {name}")


def _imported(module: str, name: str) -> Any:
    try:
        with _current_folder():
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name if error.name != module else None
        if missing and not module.startswith(f"{missing}."):
            raise Misconfigured(f"--predict {name}: {module} needs {missing}; install it") from None
        raise Misconfigured(
            f"--predict {name}: there is no module {module}, neither installed nor in this folder"
        ) from None
    except FAULTS as error:
        raise Misconfigured(
            f"--predict {name}: importing {module} failed with {type(error).__name__}"
        ) from error


@contextmanager
def _current_folder() -> Iterator[None]:
    """Inside, modules of the current folder are found, as `python -m` finds them."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def guarded(predict: Predict, name: str) -> Predict:
    """The same classifier, whose own failures are one sentence."""

    def asked(points: Floats) -> Any:
        try:
            return predict(points)
        except FAULTS as error:
            rows, columns = points.shape
            raise Misconfigured(
                f"{name} failed with {type(error).__name__} when it was given an array of "
                f"{rows} x {columns} numbers; it has to return a label for each row"
            ) from error

    return asked
