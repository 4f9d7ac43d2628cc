"""A fitted stand-in in a file beside the ledger, so that a new process need not fit it again.

It holds nothing that the transcript does not lead to: it is named by the head of the newest entry
that was learnt, by the edition, the grid and the code that fitted it, and what was measured is read
from the transcript all the same. Where anything of that differs, or the file is torn, it is as if
there were none, and the stand-in is fitted again. It is public, and for its owner alone like the
files beside it: whoever can change it can change the ledger too. `casemate replay` compares it.
"""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from casemate.errors import Misconfigured
from casemate.grid import Floats
from casemate.privacy.book import open_private

SUFFIX = "-stand-in"
FORMAT = "casemate.stand-in/1"

MAX_KEPT_NUMBERS = 2**24
"""A stand-in of more numbers (128 megabytes) is fitted again by each process."""

FITTED_BY = ("dense", "histogram", "mixture", "mixture_residuals", "projection", "stand_in")
"""The modules of this room whose code decides the bits of a fit."""

FitState = Mapping[str, Floats]
"""The numbers that a fit arrived at, by name."""


@cache
def fitting_code() -> str:
    """A digest of the code that fits: another one may come to other bits."""
    digest = hashlib.sha256(np.__version__.encode())
    for name in FITTED_BY:
        module = import_module(f"casemate.surrogate.{name}")
        loader: Any = module.__spec__ and module.__spec__.loader
        digest.update(loader.get_source(module.__name__).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class FitName:
    """What a fit depends on beside the entries before its head."""

    policy: str
    data: str
    names: tuple[str, ...]
    shape: tuple[int, ...]

    def header(self, head: str, arrays: FitState) -> dict[str, Any]:
        """What stands before the numbers of a file."""
        return {
            "format": FORMAT,
            "code": fitting_code(),
            "edition": [self.policy, self.data],
            "names": list(self.names),
            "shape": list(self.shape),
            "head": head,
            "arrays": list(arrays),
        }


@dataclass(frozen=True)
class KeptFit:
    """The file in which the newest fit is kept."""

    path: Path

    @classmethod
    def beside(cls, ledger: Path) -> Self:
        """The file that belongs to the ledger in this file."""
        return cls(ledger.with_name(ledger.name + SUFFIX))

    def read(self, name: FitName) -> tuple[str, FitState] | None:
        """The head and the numbers of the fit; None where there is none of this name."""
        if not os.path.lexists(self.path):
            return None
        try:
            with os.fdopen(open_private(self.path, os.O_RDONLY), "rb") as file:
                written = file.read()
        except FileNotFoundError:
            return None
        except OSError as reason:
            raise Misconfigured(
                f"the kept stand-in {self.path} cannot be opened ({reason.strerror}); delete it: "
                f"it is made again"
            ) from reason
        return _parse(written, name)

    def write(self, name: FitName, head: str, arrays: FitState) -> None:
        """Replace the file as a whole; one that cannot be written is done without."""
        if sum(each.size for each in arrays.values()) > MAX_KEPT_NUMBERS:
            return
        body = io.BytesIO()
        body.write(json.dumps(name.header(head, arrays)).encode() + b"\n")
        for each in arrays.values():
            np.lib.format.write_array(body, np.ascontiguousarray(each), allow_pickle=False)
        whole = body.getbuffer()
        new = self.path.with_name(self.path.name + ".new")
        with suppress(OSError):
            new.unlink(missing_ok=True)  # of a crash
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(open_private(new, flags), "wb") as file:
                file.write(hashlib.sha256(whole).hexdigest().encode() + b"\n")
                file.write(whole)
            new.replace(self.path)


def _parse(written: bytes, name: FitName) -> tuple[str, FitState] | None:
    """What a file holds, if it is whole and of this name."""
    digest, _, whole = written.partition(b"\n")
    if digest.decode(errors="replace") != hashlib.sha256(whole).hexdigest():
        return None
    try:
        body = io.BytesIO(whole)
        found = json.loads(body.readline())
        arrays = {each: _array(body) for each in found["arrays"]}
        same = found == name.header(str(found["head"]), arrays)
    except (ValueError, LookupError, TypeError):
        return None
    return (str(found["head"]), arrays) if same else None


def _array(body: io.BytesIO) -> Floats:
    found: Floats = np.lib.format.read_array(body, allow_pickle=False)
    if found.dtype != np.float64:
        raise ValueError("a fit is made of floats")
    return found
