"""Nothing that leaves depends on the data except through a door: tried on neighbouring tables."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from neighbours import attack
from neighbours.attack import (
    BATCH,
    SHARES,
    Pair,
    Tally,
    Task,
    batch_of,
    done,
    session_statements,
    tasks,
)
from neighbours.statements import statements
from neighbours.tables import FIXED, GATED, STRATEGIES, World, random_world
from servers import PostgresServer

from casemate import Session

BY_DEFAULT, IN_CI = 100, 2_000
TRIED = tasks(IN_CI, "")


def differences(tally: Tally) -> str:
    return "\n\n".join(map(str, tally.found[:5]))


def about(world: World, mode: str, rng: Random, folder: Path) -> Tally:
    asked_for = statements(rng, world.columns, BATCH, world.joined)
    pair = Pair(world.written(folder), Session.simulated, 1)
    return session_statements(mode, world, asked_for, pair)


@pytest.mark.parametrize("mode", SHARES)
def test_neighbours_differ_in_noised_numbers_alone(mode: str, seed: int, tmp_path: Path) -> None:
    count = max(1, round(BY_DEFAULT * SHARES[mode] / sum(SHARES.values())))
    size = min(12, count)  # more tables, fewer statements about each
    for number in range(-(-count // size)):
        _, tally = done(Task(mode, number, str(seed), size))
        assert not tally.found, differences(tally)


@pytest.mark.slow
@pytest.mark.parametrize("task", TRIED, ids=lambda task: f"{task.mode} {task.number}")
def test_neighbours_differ_in_noised_numbers_alone_in_many_more_statements(
    task: Task, seed: int
) -> None:
    _, tally = done(replace(task, seed=f"slow {seed}"))
    assert not tally.found, differences(tally)


@pytest.mark.parametrize("mode", ["laplace", "cold", "command line"])
def test_a_table_is_no_neighbour_that_differs_from_itself(
    mode: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the comparison calls a difference is one: of equal tables it finds none."""

    def same(rng: Random, *given: list[str]) -> World:
        world = random_world(rng, *given)
        return replace(world, tables=(world.tables[0], world.tables[0]))

    monkeypatch.setattr(attack, "random_world", same)
    tally = batch_of(mode)(mode, Random(f"same {seed}"), 8, tmp_path)
    assert not [each for each in tally.found if each.part != "unexpected"], differences(tally)


def test_most_statements_are_accepted_and_most_are_grouped(seed: int, tmp_path: Path) -> None:
    """Refused ones are compared too, but what is answered is what can give somebody away."""
    tally, rng = Tally(), Random(f"accepted {seed}")
    for number in range(2):
        world = random_world(rng, ["cold"], ["db"])  # without misfits
        folder = tmp_path / str(number)
        tally.add(about(world, "cold", rng, folder))
    assert tally.accepted >= 0.4 * tally.tried
    assert tally.kinds["grouped"] >= 0.3 * tally.accepted


def test_every_strategy_is_tried() -> None:
    assert {*STRATEGIES, "measure", "online", "online scan", "command line"} == {*SHARES}
    assert {*FIXED, *GATED} < {*SHARES}
    assert sum(task.count for task in TRIED) >= IN_CI
    assert sum(task.count for task in tasks(20_000, "")) >= 20_000


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["laplace", "measure", "tables", "cold"])
def test_neighbours_in_postgresql_differ_in_noised_numbers_alone(
    mode: str, seed: int, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    for number in range(3):
        rng = Random(f"postgres {seed} {mode} {number}")
        world = random_world(rng, ["cold" if mode == "measure" else mode], ["postgres"])
        if mode == "measure":
            world = replace(world, epsilon="1000000", surprises=20_000)
        with postgres_server.database() as one, postgres_server.database() as two:
            world = replace(world, urls=(one, two))
            folder = tmp_path / str(number)
            tally = about(world, mode, rng, folder)
        assert not tally.found, differences(tally)
