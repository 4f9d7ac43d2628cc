"""Claim: `auto` costs about as little as the better of windows and sampling, whatever the setting.

Words of a run over those of the better one, for 2 to 16,384 sites, five accuracies, four loads.
CASEMATE_BENCH_PROCESSES=16 spreads the runs over so many processes.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.claims import Claim, show
from casemate.track.setting import Setting
from casemate.track.simulate.runs import simulate

SITES = (2, 8, 64, 256, 1024, 4096, 16384)
DEMANDS = (  # alpha, delta and items
    (0.1, 0.05, 10**6),
    (0.05, 0.01, 10**7),
    (0.02, 0.001, 2 * 10**7),
    (0.01, 0.01, 10**6),
    (0.01, 0.01, 37 * 10**6),
    (0.003, 0.01, 10**7),
)
LOADS = ("uniform", "zipf:1", "zipf:1.5", "single-site")
ASKED = 1.05


@dataclass(frozen=True)
class Place:
    """One setting and one load."""

    setting: Setting
    load: str

    @property
    def shown(self) -> str:
        s = self.setting
        return f"k = {s.sites:,}, alpha = {s.alpha:g}, {s.items:.2g} items, {self.load}"


def places() -> list[Place]:
    """All of them, the longest runs first, so that no process ends long after the others."""
    settings = [Setting(sites, *demand) for sites in SITES for demand in DEMANDS]
    settings.sort(key=lambda setting: setting.items, reverse=True)
    return [Place(setting, load) for setting in settings for load in LOADS]


def ratio(place: Place) -> float:
    """The words of `auto` over those of the better one."""
    auto, *others = (
        simulate(place.setting, mode, place.load, seed=place.setting.sites).words
        for mode in ("auto", "deterministic", "sampled")
    )
    return auto / min(others)


def ratios(processes: int = 1) -> Mapping[Place, float]:
    asked = places()
    if processes == 1:
        return dict(zip(asked, map(ratio, asked), strict=True))
    with ProcessPoolExecutor(processes) as pool:
        return dict(zip(asked, pool.map(ratio, asked), strict=True))


def claims(found: Mapping[Place, float]) -> list[Claim]:
    """Each load's middle and worst, and every place where more was paid than asked."""
    shown = []
    for load in LOADS:
        those = [each for place, each in found.items() if place.load == load]
        measured = f"{np.median(those):.3f}; {max(those):.3f}"
        shown.append(Claim(f"{load}, {len(those)} settings: middle; worst", f"{ASKED}", measured))
    above = sorted(found.items(), key=lambda item: -item[1])
    return shown + [
        Claim(place.shown, f"{ASKED}", f"{each:.3f}") for place, each in above if each > ASKED
    ]


def main() -> None:
    show(claims(ratios(int(os.environ.get("CASEMATE_BENCH_PROCESSES", "1")))))


if __name__ == "__main__":
    main()
