from __future__ import annotations

import json
import random
from typing import Any

import pytest
from synthetic import own_experiments

from citius_lab import paths
from citius_lab.definitions import contestants, experiments
from citius_lab.errors import LabError
from citius_lab.measure import budget, plan
from citius_lab.measure.budget import Clock, stretched_s
from citius_lab.measure.plan import Plan


def make(name: str, budget_s: float | None = None, **more: Any) -> Plan:
    found = contestants.load([paths.lab_root() / "contestants"])
    asked = experiments.named(name, own_experiments())
    return plan.make(
        name,
        asked,
        list(found.values()),
        budget_s=budget_s,
        random=random.Random(3),
        seed=3,
        **more,
    )


@pytest.fixture(scope="module")
def quick() -> plan.Part:
    (part,) = make("quick").parts
    return part


@pytest.mark.parametrize("name", [*own_experiments(), "all"])
def test_every_experiment_measures_the_same_cells_in_every_round(name: str) -> None:
    for part in make(name).parts:
        assert part.rounds >= 3
        rounds = [
            sorted(
                (block.contestant, block.workers, block.again, *sorted(map(str, block.cells)))
                for block in blocks
            )
            for blocks in part.in_rounds()
        ]
        assert all(blocks == rounds[0] for blocks in rounds)


def test_the_order_differs_from_round_to_round(quick: plan.Part) -> None:
    orders = {
        tuple((block.contestant, block.cells) for block in blocks) for blocks in quick.in_rounds()
    }
    assert len(orders) == quick.rounds


def test_a_round_starts_every_contestant_once_and_the_baseline_again(quick: plan.Part) -> None:
    for blocks in quick.in_rounds():
        names = [block.contestant for block in blocks if not block.again]
        assert sorted(names) == sorted(own_experiments()["quick"].contestants)
        (again,) = [block for block in blocks if block.again]
        assert again.contestant == quick.baseline
        assert sorted(cell.case.noise_class for cell in again.cells) == ["handler", "server"]


def test_citius_async_is_shown_where_it_differs(quick: plan.Part) -> None:
    cells = {
        cell for block in quick.blocks for cell in block.cells if block.contestant == "citius-async"
    }
    assert {(cell.series, cell.case_id) for cell in cells} == {
        ("closed", "hello"),
        ("pipelined", "hello"),
        ("closed", "async"),
    }


def test_pipelined_is_never_alone() -> None:
    for experiment in own_experiments().values():
        ids = {series.id: series for series in experiment.series}
        for series in experiment.series:
            if series.is_pipelined:
                beside = ids[series.beside or ""]
                assert set(series.cases) <= set(beside.cases)
                # The same connections, or as many as there are requests in flight.
                in_flight = series.load.connections * series.load.pipeline
                assert beside.load.connections in (0, series.load.connections, in_flight)


def test_rates_follow_the_capacities_they_are_fractions_of() -> None:
    (part,) = make("open").parts
    for block in part.blocks:
        order = [part.series_of(cell).load.fraction is not None for cell in block.cells]
        assert order == sorted(order)


def test_all_of_it_fits_into_an_hour_and_quick_into_five_minutes() -> None:
    # What is built and drawn comes on top.
    assert make("all").budget_s <= 55 * 60
    assert make("quick").budget_s <= 5 * 60


def test_a_budget_is_shared_by_the_experiments() -> None:
    whole, half = make("all"), make("all", budget_s=1000)
    assert half.budget_s == pytest.approx(1000)
    for one, other in zip(whole.parts, half.parts, strict=True):
        assert other.budget_s / one.budget_s == pytest.approx(1000 / whole.budget_s)


def test_chosen_contestants_take_part_in_everything_they_can() -> None:
    found = contestants.load([paths.lab_root() / "contestants"])
    asked = experiments.named("japronto", own_experiments())
    chosen = [found["fastpysgi"]]
    made = plan.make(
        "japronto", asked, chosen, budget_s=60, random=random.Random(1), seed=1, chosen=True
    )
    assert made.parts[0].contestants() == ["fastpysgi"]
    assert made.parts[0].baseline == "fastpysgi"


def test_a_plan_survives_its_record() -> None:
    whole = make("all")
    assert Plan.from_record(json.loads(json.dumps(whole.as_record()))) == whole


def test_every_name_of_an_experiment_or_article_is_a_contestant() -> None:
    found = set(contestants.load([paths.lab_root() / "contestants"]))
    for experiment in own_experiments().values():
        assert set(experiment.contestants) <= found
        assert experiment.baseline in experiment.contestants
        ids = {series.id for series in experiment.series}
        for figure in experiment.article.published if experiment.article else ():
            assert figure.contestant in experiment.contestants
            assert figure.series in ids


def test_says_which_experiments_there_are() -> None:
    with pytest.raises(LabError, match=r"'techempower'; there are quick, rest, .*, all"):
        experiments.named("techempower", own_experiments())


@pytest.mark.parametrize("overhead_s", [0.2, 0.45, 1.0])
@pytest.mark.parametrize("name", ["quick", "async"])
def test_a_run_ends_when_it_should_whatever_a_cell_costs(name: str, overhead_s: float) -> None:
    (part,) = make(name).parts
    now = 1000.0
    clock = Clock(part, now)
    n_rounds = 0
    for number, blocks in enumerate(part.in_rounds()):
        if number >= plan.ROUNDS_MIN and not clock.affords(blocks, now):
            break
        n_rounds += 1
        left = [block for block in part.blocks if block.round >= number]
        for block in blocks:
            now += 1.0
            clock.started(1.0)
            for index, cell in enumerate(block.cells):
                series = part.series_of(cell)
                rest = plan.Block(number, block.contestant, 1, block.cells[index:])
                fair_s = clock.window_s([rest, *left[left.index(block) + 1 :]], now)
                for _ in range(series.discard + series.runs):
                    fixed_s = series.load.fixed_s()
                    slow = 0.06 if cell.case_id == "million-loop" else 0.0001
                    took_s = (fixed_s or stretched_s(fair_s, slow)) + overhead_s
                    now += took_s
                    clock.measured(took_s, fixed_s or fair_s)
    assert n_rounds >= plan.ROUNDS_MIN
    assert 0.7 * part.budget_s <= now - 1000 <= 1.12 * part.budget_s


def test_a_slow_server_is_counted_longer() -> None:
    assert stretched_s(0.4, 0.06) == pytest.approx(0.06 * budget.REQUESTS_MIN)
    assert stretched_s(0.4, 0.0001) == 0.4
    assert stretched_s(0.4, 60.0) == budget.SLOW_WINDOW_MAX_S


def test_an_experiment_runs_with_as_many_workers_as_are_asked_for() -> None:
    """Series that say their own number keep it."""
    rest = own_experiments()["rest"].with_workers(8)
    assert {series.workers for series in rest.series} == {8}
    assert all(series.title.endswith(", 8 workers") for series in rest.series)
    both = own_experiments()["multicore"].with_workers(4)
    assert [series.workers for series in both.series] == [4, 0]
