"""Claim: one count over many sites, within alpha of the truth at all times, costs few words.

Words are counted in a simulation with instant messages, 1e8 items, alpha = delta = 0.01 and an even
load unless said otherwise; errors are the largest at any time, in units of alpha.
"""

from functools import cache

from scipy import stats

from benchmarks.claims import Claim, show
from casemate.track.setting import Setting
from casemate.track.simulate.runs import Simulation, simulate

ALPHA, DELTA, ITEMS = 0.01, 0.01, 10**8
LOADS = ("uniform", "zipf:1", "zipf:1.5", "single-site")
ATTACKS = ("stop-on-change", "group-hold-or-flush")
COVERAGE = Setting(sites=64, alpha=0.05, delta=0.05, items=10**6)
COVERAGE_RUNS = 400


@cache
def run(mode: str, sites: int, adversary: str = "uniform", runs: int = 1) -> Simulation:
    return simulate(Setting(sites, ALPHA, DELTA, ITEMS), mode, adversary, runs=runs, seed=sites)


def words(mode: str, sites: int, adversary: str = "uniform") -> float:
    return run(mode, sites, adversary).words


def ratio(mode: str, sites: int) -> float:
    return words(mode, sites) / words("deterministic", sites)


def deterministic() -> list[Claim]:
    paper, centred = words("deterministic-paper", 1024), words("deterministic", 1024)
    worst = max(
        run("deterministic", 1024, adversary).max_error_over_alpha
        for adversary in (*LOADS, *ATTACKS)
    )
    return [
        Claim("deterministic as in the source, k = 1,024", "766 k +-0.2 %", f"{paper:,.0f}"),
        Claim("centred", "417 k +-0.2 %", f"{centred:,.0f}"),
        Claim("its largest error, four loads and two attacks", "at most 1", f"{worst:.4f}"),
    ]


def sampled() -> list[Claim]:
    asked = {1024: "0.76", 4096: "0.38", 16384: "0.18"}
    claims = [
        Claim(f"sampled over centred, k = {k:,}", f"at most {a}", f"{ratio('sampled', k):.3f}")
        for k, a in asked.items()
    ]
    for adversary in ("uniform", "single-site", "stop-on-change"):
        found = simulate(COVERAGE, "sampled", adversary, runs=COVERAGE_RUNS, seed=1)
        chance = stats.binom.sf(found.violations - 1, COVERAGE_RUNS, COVERAGE.delta)
        shown = f"{found.violations} of {COVERAGE_RUNS} (probability {chance:.2g})"
        claims.append(Claim(f"runs ever off, delta = 0.05, {adversary}", "at most 0.05", shown))
    return claims


def robust() -> list[Claim]:
    literal = run("robust", 1024)
    claims = [
        Claim("robust as in the source, k = 1,024", "2.52 M +-1 %", f"{literal.words:,.0f}"),
        Claim("its largest error", "0.3 to 0.6", f"{literal.max_error_over_alpha:.3f}"),
    ]
    for mode in ("robust", "robust-tuned", "sampled"):
        worst = [f"{run(mode, 1024, each).max_error_over_alpha:.3f}" for each in ATTACKS]
        claims.append(Claim(f"{mode} under both attacks", "at most 1", ", ".join(worst)))
    asked = {1024: "1.07", 4096: "0.67", 16384: "0.45"}
    return claims + [
        Claim(f"tuned over centred, k = {k:,}", f"at most {a}", f"{ratio('robust-tuned', k):.3f}")
        for k, a in asked.items()
    ]


def broken() -> list[Claim]:
    claims = []
    for sites, asked in ((1024, 7), (4096, 13)):
        for mode in ("huang-yi-zhang", "block"):
            setting = Setting(sites, ALPHA, DELTA, 10**7)
            found = simulate(setting, mode, "stop-on-change", runs=20, seed=2)
            worst = sorted(each.max_error_over_alpha for each in found.runs)
            shown = f"{worst[0]:.2f} to {worst[-1]:.2f}, {found.violations} of 20 broken"
            claims.append(Claim(f"stop-on-change on {mode}, k = {sites:,}", f"past {asked}", shown))
    return claims


def auto() -> list[Claim]:
    claims = []
    for load in LOADS:
        centred, drawn = words("deterministic", 1024, load), words("sampled", 1024, load)
        found, allocated = words("auto", 1024, load), words("allocated", 1024, load)
        shown = (
            f"{found / min(centred, drawn):.3f} ({found:,.0f}; centred {centred:,.0f}, "
            f"sampled {drawn:,.0f}, allocated {allocated:,.0f})"
        )
        claims.append(Claim(f"auto over the better one, {load}", "at most 1.05", shown))
    return claims


def main() -> None:
    show([*deterministic(), *sampled(), *robust(), *broken(), *auto()])
    seconds = ", ".join(
        f"{mode} {run(mode, 1024).seconds:.1f} s"
        for mode in ("deterministic", "sampled", "robust", "robust-tuned", "auto")
    )
    print(f"one run of 1e8 items at k = 1,024: {seconds}")


if __name__ == "__main__":
    main()
