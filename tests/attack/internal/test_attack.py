"""An attack from SQL to its score: the custodian's experiment and the outsider's view."""

import csv
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most

from casemate.attack import Attack
from casemate.attack.attack import Attacked, AttackOptions, noise_curve, recovered_fraction
from casemate.attack.reconstruct.problem import NoiseLaw
from casemate.attack.reconstruct.reconstruction import Solver
from casemate.exact import Floats
from casemate.published import Knowledge
from casemate.query.parse import Queries

HOSPITAL = [
    'SELECT SUM("Blood sugar") FROM t',
    "SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Female'",
    "SELECT SUM(\"Blood sugar\") FROM t WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male'",
]
BITS = Knowledge(Fraction(0), Fraction(1), integer=True)
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
POWERS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.1, 1.2, 1.3, 1.4, 1.6, 1.7)
OFFSETS = (5, 10, 50, 100, 500, 1000, 5000, 10000, 50000, 100000)


def attack(
    statements: Queries = HOSPITAL,
    table: str | Path = "hospital",
    options: AttackOptions | None = None,
    **given: Any,
) -> Attacked:
    wanted = options or AttackOptions(targets=20)
    return Attack.of(statements, table, options=wanted, random=np.random.default_rng(0), **given)


# A table that knows the truth -----------------------------------------------------------------


@pytest.mark.theorem("002: least squares through SQL")
def test_the_documents_sums_give_the_documents_values() -> None:
    found = attack(options=AttackOptions(solver=Solver.LEAST_SQUARES))
    third = 31 / 6
    values = [each.value for each in found.secrets]
    assert values == pytest.approx([5.7, 5.2, third, third, 5.7, third], abs=1e-6)
    for each in found.secrets:
        assert isinstance(each.value, float) and each.low is not None and each.high is not None
        assert each.low <= each.value + 1e-6 and each.value <= each.high + 1e-6
    assert (found.records, found.queries) == (6, 3)
    (score,) = found.scores.values()
    assert score.recovered == pytest.approx(1 / 6) and score.coverage == 1


def test_the_answers_may_be_given_beside_the_truth(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("query,answer\n1,32.1\n2,15.5\n3,11.4\n")
    found = attack(answers=tmp_path / "a.csv")
    assert not found.evidence.own and found.scores["Blood sugar"].recovered == pytest.approx(1 / 6)
    assert noise_curve(found, random=np.random.default_rng(0)) == []


def test_without_a_known_range_the_tolerance_is_a_round_number(tmp_path: Path) -> None:
    rows = [f"{i},{value}" for i, value in enumerate([430.25, 512.5, 380.0, 611.75], start=1)]
    (tmp_path / "t.csv").write_text("\n".join(["id,pay", *rows, ""]))
    statements = [f"SELECT SUM(pay) FROM t WHERE id <= {i}" for i in (1, 2, 3, 4)]
    score = attack(statements, tmp_path / "t.csv", private="pay").scores["pay"]
    assert score.tolerance == 2 and score.recovered == 1  # a hundredth of about 480


def test_several_private_columns_have_a_score_each(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,pay,ill\n1,100,0\n2,200,1\n3,400,1\n")
    statements = [f"SELECT SUM(pay), SUM(ill) FROM t WHERE id <= {i}" for i in (1, 2, 3)]
    found = attack(statements, tmp_path / "t.csv", private=["pay", "ill"])
    assert {name: score.recovered for name, score in found.scores.items()} == {"pay": 1, "ill": 1}


# A noisy system, seen from outside ------------------------------------------------------------


@dataclass(frozen=True)
class System:
    """People with a bit each behind an id, and noisy sums over strange sets of ids."""

    ids: Floats
    bits: Floats
    statements: tuple[str, ...]
    answers: tuple[int, ...]

    @classmethod
    def drawn(cls, queries: int, form: str, random: np.random.Generator) -> "System":
        ids = np.sort(random.choice(np.arange(2000, 3000), 100, replace=False)).astype(float)
        bits = random.integers(0, 2, 100).astype(float)
        grid = [(p, m, o) for p in POWERS for m in PRIMES for o in OFFSETS]
        asked = [grid[i] for i in random.permutation(len(grid))[:queries]]
        statements, answers = [], []
        for power, times, offset in asked:
            value = offset * np.power(ids * times, power)
            inside = np.floor(value + 0.5) == np.floor(value)
            text = f"{offset} * pow(client_id * {times}, {power})"
            statements.append(form.format(f"floor({text} + 0.5) = floor({text})"))
            answers.append(round(float(bits[inside].sum() + random.normal(0, 2.4))))
        return cls(ids, bits, tuple(statements), tuple(answers))

    def write(self, folder: Path) -> None:
        (folder / "public.csv").write_text(
            "\n".join(["client_id", *(f"{each:.0f}" for each in self.ids), ""])
        )
        with (folder / "log.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["sql", "answer"])
            writer.writerows(zip(self.statements, self.answers, strict=True))


SUM = "SELECT SUM(status) FROM loans WHERE {} AND client_id BETWEEN 2000 AND 3000"
COUNT = "SELECT COUNT(DISTINCT client_id) FROM loans WHERE {} AND status = 'C'"


def outside(folder: Path, knowledge: Knowledge | None = None) -> Attacked:
    options = AttackOptions(noise=NoiseLaw("gaussian", 2.42))
    log, seen = folder / "log.csv", folder / "public.csv"
    return attack(log, seen, options, private="status", knowledge=knowledge)


def wrong(found: Attacked, system: System) -> int:
    values = [each.value in (1, "C") for each in found.secrets]
    return int(np.sum(values != (system.bits == 1)))


def test_an_outsider_gets_the_bits_from_noisy_sums(tmp_path: Path, seed: int) -> None:
    """By least squares alone one in 25 would be wrong: 2 * 2.42 / sqrt(300) of deviation."""
    system = System.drawn(300, SUM, np.random.default_rng(seed))
    system.write(tmp_path)
    found = outside(tmp_path, BITS)
    assert_rate_at_most(wrong(found, system), 100, rate=0.04)
    assert found.scores == {} and found.evidence.truth is None
    with pytest.raises(AssertionError):  # an attack that learned nothing
        assert_rate_at_most(int(system.bits.sum()), 100, rate=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("form", [SUM, COUNT])
def test_an_outsider_gets_every_bit_from_many_noisy_answers(
    form: str, tmp_path: Path, seed: int
) -> None:
    """With 1,500 answers one bit in 30,000 would be wrong by least squares alone."""
    system = System.drawn(1500, form, np.random.default_rng(seed))
    system.write(tmp_path)
    found = outside(tmp_path, BITS if form == SUM else None)
    assert_rate_at_most(wrong(found, system), 100, rate=1 / 30_000)


def test_a_category_by_number_and_by_key(tmp_path: Path) -> None:
    """The text that queries compare with is all that an outsider knows of the column."""
    (tmp_path / "public.csv").write_text("id,area\n1,5\n2,5\n3,7\n")
    statements = [
        "SELECT area, COUNT(*) FROM t WHERE status = 'C' GROUP BY area",
        "SELECT COUNT(DISTINCT id) FROM t WHERE status = 'C' AND id > 1",
    ]
    for lines in (["1,5,1", "1,7,1", "2,,1"], ["1,1,1", "1,2,1", "2,1,1"]):
        (tmp_path / "a.csv").write_text("\n".join(["query,cell,answer", *lines, ""]))
        answers, seen = tmp_path / "a.csv", tmp_path / "public.csv"
        found = attack(statements, seen, private="status", answers=answers)
        assert [each.value for each in found.secrets] == ["C", None, "C"]


# More and less noise --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    """Sixty people with a bit each, and 120 sums over random intervals of their places."""
    folder, random = tmp_path_factory.mktemp("study"), np.random.default_rng(5)
    rows = [f"{i},{bit}" for i, bit in enumerate(random.integers(0, 2, 60), start=1)]
    (folder / "t.csv").write_text("\n".join(["id,ill", *rows, ""]))
    pairs = np.sort(random.integers(1, 61, (120, 2)), axis=1).tolist()
    return Attack.of(
        [f"SELECT SUM(ill) FROM t WHERE id BETWEEN {low} AND {high}" for low, high in pairs],
        folder / "t.csv",
        private="ill",
        knowledge=BITS,
        options=AttackOptions(noise=NoiseLaw("laplace", 0.5), targets=20),
        random=random,
    )


def test_the_rule_of_the_curve_is_that_of_the_score(study: Attacked) -> None:
    truth, values = study.evidence.truth, study.reconstruction.values
    assert truth is not None
    assert recovered_fraction(study, truth, values) == study.scores["ill"].recovered
    assert recovered_fraction(study, truth, truth) == 1
    assert recovered_fraction(study, truth, 1 - truth) == 0


def test_less_noise_recovers_all_and_much_more_does_not(study: Attacked) -> None:
    points = noise_curve(study, random=np.random.default_rng(0), factors=(0.01, 40.0))
    assert [str(point.law) for point in points] == ["laplace:0.005", "laplace:20"]
    assert points[0].recovered == 1 and points[1].recovered < 0.9


# Interrupted ----------------------------------------------------------------------------------


def _stop(steps: int, _: float, __: Floats) -> None:
    if steps >= 2:
        raise KeyboardInterrupt


def test_an_interrupted_attack_has_the_best_so_far_and_a_cheap_score() -> None:
    found = attack(options=AttackOptions(solver=Solver.KACZMARZ), progress=_stop)
    assert not found.finished and not found.reconstruction.finished
    assert len(list(found.secrets)) == 6 and found.scores["Blood sugar"].records == 6


def test_an_interrupt_of_the_score_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("casemate.attack.attack.score", interrupted)
    found = attack()
    assert found.reconstruction.finished and not found.finished and found.scores == {}
