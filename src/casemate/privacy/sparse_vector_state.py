"""What must survive a restart of a sparse vector: secrets, as plain values that no repr shows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, Self

from casemate.privacy.sparse_vector_calibration import Calibration


@dataclass(frozen=True)
class RunState:
    """All that a run is between two questions; keep it with the custodian's secrets."""

    calibration: Calibration
    noise: int | None = field(repr=False)  # on the threshold; gone once the run has halted
    positives: int = 0

    def as_secret(self) -> dict[str, Any]:
        """Plain values for JSON, the noise on the threshold among them."""
        return {**asdict(self), "calibration": _plain(self.calibration)}

    @classmethod
    def from_secret(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `as_secret` wrote."""
        return cls(**{**plain, "calibration": _calibration(plain["calibration"])})


@dataclass(frozen=True)
class SparseVectorState:
    """A sequence of runs between two questions; secret while a run is open."""

    calibration: Calibration
    runs: int
    opened: int = 0
    run: RunState | None = None

    def as_secret(self) -> dict[str, Any]:
        """Plain values for JSON, the open run's threshold noise among them."""
        run = self.run.as_secret() if self.run else None
        return {**asdict(self), "calibration": _plain(self.calibration), "run": run}

    @classmethod
    def from_secret(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `as_secret` wrote."""
        run = RunState.from_secret(plain["run"]) if plain["run"] else None
        return cls(**{**plain, "calibration": _calibration(plain["calibration"]), "run": run})


def _plain(calibration: Calibration) -> dict[str, Any]:
    scales = {"threshold": str(calibration.threshold), "query": str(calibration.query)}
    return {**asdict(calibration), **scales}


def _calibration(plain: Mapping[str, Any]) -> Calibration:
    scales = {name: Fraction(plain[name]) for name in ("threshold", "query")}
    return Calibration(**{**plain, **scales})
