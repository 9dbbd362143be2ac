from __future__ import annotations

import random

import pytest

from citius_lab import contestants, plan
from citius_lab.plan import Clock, stretched_s


@pytest.fixture
def quick() -> plan.Plan:
    found = contestants.load([contestants.lab_root() / "contestants"])
    return plan.quick(
        contestants.choose(found, plan.QUICK),
        budget_s=270,
        server_cpus=[0],
        load_cpus=[1],
        random=random.Random(3),
        seed=3,
    )


def test_every_round_measures_the_same_cells_in_another_order(quick: plan.Plan) -> None:
    assert quick.rounds >= 3
    by_round = [
        [cell for block in quick.blocks if block.round == number for cell in block.cells]
        for number in range(quick.rounds)
    ]
    assert all(set(cells) == set(by_round[0]) for cells in by_round)
    assert len({tuple(cells) for cells in by_round}) == quick.rounds


def test_a_round_starts_every_contestant_once(quick: plan.Plan) -> None:
    for number in range(quick.rounds):
        names = [block.contestant for block in quick.blocks if block.round == number]
        assert sorted(names) == sorted(plan.QUICK)


def test_citius_async_is_shown_where_it_differs(quick: plan.Plan) -> None:
    cells = {
        cell for block in quick.blocks for cell in block.cells if cell.contestant == "citius-async"
    }
    assert {(cell.case_id, cell.pipeline) for cell in cells} == {
        ("hello", 1),
        ("hello", 24),
        ("async", 1),
    }


def test_pipelined_stands_beside_the_same_connections_unpipelined(quick: plan.Plan) -> None:
    hello = {cell for block in quick.blocks for cell in block.cells if cell.case_id == "hello"}
    assert {cell.connections for cell in hello} == {100}
    assert {cell.section for cell in hello} == {"closed loop", "pipelined"}


@pytest.mark.parametrize("overhead_s", [0.2, 0.45, 1.0])
def test_a_run_ends_when_it_should_whatever_a_cell_costs(
    quick: plan.Plan, overhead_s: float
) -> None:
    now = 1000.0
    clock = Clock(quick, now)
    n_rounds = 0
    for number, blocks in enumerate(quick.in_rounds()):
        if number >= plan.ROUNDS_MIN and not clock.affords(blocks, now):
            break
        n_rounds += 1
        for block in blocks:
            now += 1.0
            clock.started(1.0)
            for cell in block.cells:
                fair_s = clock.window_s(now)
                slow = cell.case_id == "million-loop"
                took_s = stretched_s(fair_s, 0.06 if slow else 0.0001) + overhead_s
                now += took_s
                clock.measured(took_s, fair_s)
    assert n_rounds >= plan.ROUNDS_MIN
    assert 0.8 * 270 <= now - 1000 <= 300


def test_a_slow_server_is_counted_longer() -> None:
    assert stretched_s(0.4, 0.06) == pytest.approx(0.06 * plan.REQUESTS_MIN)
    assert stretched_s(0.4, 0.0001) == 0.4
    assert stretched_s(0.4, 60.0) == plan.WINDOW_MAX_S
