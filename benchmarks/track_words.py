"""Claim: words grow with sites and accuracy as the theory says, and here is by how much.

Words are counted in simulations with instant messages, delta = 0.01 and an even load; the rate of a
protocol is its words for each factor e of the count between a tenth of the items and all of them.
CASEMATE_BENCH_PROCESSES=16 spreads the runs over so many processes, and
CASEMATE_BENCH_PLOT=docs/track_words.svg draws the words of whole runs into that file.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.claims import Claim, show
from casemate.report.plots import Margins, Markup, Plot, join, tag
from casemate.track.report import end_names, ratios
from casemate.track.setting import Setting
from casemate.track.simulate.runs import simulate

ITEMS, DELTA = 10**8, 0.01
SITES, ALPHA = (64, 256, 1024, 4096, 16384), 0.01
ALPHAS, K = (0.05, 0.02, 0.01, 0.005), 1024
ASKED = {  # the powers of k and of alpha that earlier measurements and the formulas gave
    "deterministic": ("1.00", "-1.00"),
    "deterministic-paper": ("0.99", "-0.99"),
    "sampled": ("0.36", "-1.25"),
    "robust": ("0.62", "-0.96"),
    "robust-tuned": ("0.60", "-0.87"),
    "auto": ("that of the better one", "that of the better one"),
    "huang-yi-zhang": ("0.59", "-0.75"),
    "block": ("0.5 to 1", "-1 to 0"),
}
MODES = tuple(ASKED)


@dataclass(frozen=True)
class Cell:
    """One protocol in one place of the sweep."""

    mode: str
    sites: int
    alpha: float


@dataclass(frozen=True)
class Words:
    """What a protocol sent for a tenth of the items, and for all of them."""

    tenth: float
    whole: float

    @property
    def rate(self) -> float:
        """Words for each factor e of the count, in the last factor of ten."""
        return (self.whole - self.tenth) / math.log(10)


Found = Mapping[Cell, Words]


def cells() -> list[Cell]:
    """All of them, the longest runs first, so that no process ends long after the others."""
    places = {(k, ALPHA) for k in SITES} | {(K, alpha) for alpha in ALPHAS}
    return [Cell(mode, *place) for place in sorted(places, reverse=True) for mode in MODES]


def _sent(cell: Cell, items: int) -> float:
    setting = Setting(cell.sites, cell.alpha, DELTA, items)
    return simulate(setting, cell.mode, seed=cell.sites).words


def _run(task: tuple[Cell, int]) -> Words:
    cell, items = task
    return Words(_sent(cell, items // 10), _sent(cell, items))


def sweep(items: int = ITEMS, processes: int = 1) -> Found:
    """The words of every cell."""
    asked = cells()
    tasks = [(cell, items) for cell in asked]
    if processes == 1:
        return dict(zip(asked, map(_run, tasks), strict=True))
    with ProcessPoolExecutor(processes) as pool:
        return dict(zip(asked, pool.map(_run, tasks), strict=True))


# Exponents ------------------------------------------------------------------------------------


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """The slope of a line through points on scales of ratios, by least squares."""
    x, y = np.log(np.array(list(points))).T
    return float(np.polyfit(x, y, 1)[0])


def by_sites(found: Found, mode: str, most: float = math.inf) -> float:
    """The power of k, from 256 sites on: below, calls and single items blur it."""
    sites = [k for k in SITES if 256 <= k <= most]
    return exponent((k, found[Cell(mode, k, ALPHA)].rate) for k in sites)


def by_alpha(found: Found, mode: str, most: float = math.inf) -> float:
    """The power of alpha, at the same number of sites."""
    return exponent((a, found[Cell(mode, K, a)].rate) for a in ALPHAS if a <= most)


def claims(found: Found) -> list[Claim]:
    """The powers, and those of sampled rounds where there are at most 1 / alpha^2 sites."""
    shown = [
        Claim(
            f"{mode}: powers of k and of alpha",
            ", ".join(ASKED[mode]),
            f"{by_sites(found, mode):.2f}, {by_alpha(found, mode):.2f}",
        )
        for mode in MODES
    ]
    inside = by_sites(found, "sampled", ALPHA**-2), by_alpha(found, "sampled", K**-0.5)
    return [
        *shown,
        Claim(
            "sampled, up to 1 / alpha^2 sites", "about 0.5, -1", f"{inside[0]:.2f}, {inside[1]:.2f}"
        ),
    ]


def table(found: Found) -> str:
    """The words of whole runs: a line for each place, a column for each protocol."""
    places = sorted({(cell.sites, cell.alpha) for cell in found})
    head = f"{'k':>6} {'alpha':>6} " + " ".join(f"{mode:>19}" for mode in MODES)
    rows = [
        f"{k:>6} {a:>6g} " + " ".join(f"{found[Cell(m, k, a)].whole:>19,.0f}" for m in MODES)
        for k, a in places
    ]
    return "\n".join([head, *rows])


# The plot -------------------------------------------------------------------------------------

WIDTH, HEIGHT = 560, 440
LIGHT = ("#2e6f9e", "#7aa6c4", "#c2410c", "#6b7a3a", "#a08a00", "#1d2530", "#8a4f9e", "#c76b98")
DARK = ("#74b3dd", "#4f86ab", "#ff9666", "#b4c46c", "#e0c84a", "#e7eaee", "#c99bdb", "#f0a3c5")


def _style() -> str:
    def colours(palette: Sequence[str]) -> str:
        return " ".join(
            f".line-{i} {{ stroke: {colour}; }} .name-{i}, .dot-{i} {{ fill: {colour}; }}"
            for i, colour in enumerate(palette)
        )

    return f"""
text {{ font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #586473; }}
.paper {{ fill: #fdfdfc; }} .grid {{ stroke: #e4e7ea; }} .axis {{ stroke: #586473; }}
polyline {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.broken {{ stroke-dasharray: 5 4; }}
{colours(LIGHT)}
@media (prefers-color-scheme: dark) {{
text {{ fill: #9aa5b1; }}
.paper {{ fill: #14181d; }} .grid {{ stroke: #2b323a; }} .axis {{ stroke: #9aa5b1; }}
{colours(DARK)}
}}
"""


def plot(found: Found, items: int = ITEMS) -> str:
    """Both panels as one file that needs nothing else."""
    by_k = {mode: [(float(k), found[Cell(mode, k, ALPHA)].whole) for k in SITES] for mode in MODES}
    accuracy = sorted(1 / a for a in ALPHAS)
    by_a = {mode: [(x, found[Cell(mode, K, _alpha(x))].whole) for x in accuracy] for mode in MODES}
    title = f"Words for {items:,} items, delta = {DELTA:g}, an even load"
    panels = [
        _panel(by_k, "sites", f"words, alpha = {ALPHA:g}"),
        tag("g", _panel(by_a, "1 / alpha", f"words, {K:,} sites"), transform=f"translate({WIDTH})"),
    ]
    drawn = tag(
        "svg",
        tag("title", title),
        tag("style", Markup(_style())),
        tag("rect", width=2 * WIDTH, height=HEIGHT + 30, class_="paper"),
        tag("text", f"{title}; dashed: can be broken by who adapts", x=16, y=20),
        tag("g", *panels, transform="translate(0 30)"),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {2 * WIDTH} {HEIGHT + 30}",
        width=2 * WIDTH,
        height=HEIGHT + 30,
    )
    return f"{drawn}\n"


def _alpha(inverse: float) -> float:
    return min(ALPHAS, key=lambda a: abs(1 / a - inverse))


def _panel(curves: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str) -> Markup:
    points = [point for curve in curves.values() for point in curve]
    area = Plot(
        ratios([px for px, _ in points], 1.05),
        ratios([py for _, py in points], 1.2),
        width=WIDTH,
        height=HEIGHT,
        margins=Margins(right=132),
    )
    lines = [_line(area, place, *each) for place, each in enumerate(curves.items())]
    ends = [(mode, c[-1], f"name-{place}") for place, (mode, c) in enumerate(curves.items())]
    return join([area.axes(x, y), *lines, end_names(area, ends)])


def _line(area: Plot, place: int, mode: str, points: Sequence[tuple[float, float]]) -> Markup:
    places = [(area.across(x), area.down(y)) for x, y in points]
    broken = " broken" if mode in ("huang-yi-zhang", "block") else ""
    along = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [tag("circle", cx=x, cy=y, r=2.5, class_=f"dot-{place}") for x, y in places]
    return join([tag("polyline", points=along, class_=f"line-{place}{broken}"), *dots])


def main() -> None:
    found = sweep(processes=int(os.environ.get("CASEMATE_BENCH_PROCESSES", "1")))
    show(claims(found))
    print(table(found))
    if path := os.environ.get("CASEMATE_BENCH_PLOT"):
        Path(path).write_text(plot(found), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
