"""Who answers what, in which order, for how long: the only place where a run is decided.

A run has parts, one per experiment. A part is rounds; a round starts every contestant once (once
for each number of workers), in random order, and measures all its cells, in random order, on that
one process. The restart is the unit of repetition. One more block per round starts the baseline
again, for the noise floor: what two equal contestants seem to differ by.

A plan is plain data (``as_record``, ``from_record``), so that an interrupted run can be resumed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citius_lab.definitions.protocols import Series
from citius_lab.definitions.workloads import Case, contract
from citius_lab.measure.budget import START_S, WARM_GUESS_S, cost_s

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence

    from citius_lab.definitions.contestants import Contestant
    from citius_lab.definitions.experiments import Experiment


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing to measure: a case of a series, on one contestant."""

    series: str
    case_id: str

    @property
    def case(self) -> Case:
        """The request that is measured."""
        return contract().case_named(self.case_id)


# Contestant, workers, which of its starts, and what is measured on one such process.
Start = tuple[str, int, str, list[Cell]]


@dataclass(frozen=True, slots=True)
class Block:
    """One start of one contestant, and what is measured on that process, in order.

    Attributes:
        again: Whether this is the baseline's second start, for the noise floor alone.
        manner: Which of the contestant's starts it is: ``plain``, ``h2c``, ``tls`` or ``rpc``.
    """

    round: int
    contestant: str
    workers: int
    cells: tuple[Cell, ...]
    again: bool = False
    manner: str = "plain"


@dataclass(frozen=True, slots=True)
class Placement:
    """Which CPUs the server and the load generator get."""

    server_cpus: tuple[int, ...]
    load_cpus: tuple[int, ...]

    @property
    def is_shared(self) -> bool:
        """Whether they compete."""
        return bool(set(self.server_cpus) & set(self.load_cpus))


@dataclass(frozen=True, slots=True)
class Part:
    """One experiment of a run.

    Attributes:
        rounds: At most so many; fewer where intervals are narrow or time is short.
        budget_s: Seconds it may take, starts and checks included.
    """

    experiment: str
    series: tuple[Series, ...]
    baseline: str
    rounds: int
    budget_s: float
    blocks: tuple[Block, ...]

    def series_of(self, cell: Cell) -> Series:
        """Return the series a cell belongs to."""
        return next(series for series in self.series if series.id == cell.series)

    def in_rounds(self) -> list[list[Block]]:
        """Return the blocks of each round."""
        rounds: list[list[Block]] = [[] for _ in range(self.rounds)]
        for block in self.blocks:
            rounds[block.round].append(block)
        return rounds

    def contestants(self) -> list[str]:
        """Return who takes part, each once."""
        return list(dict.fromkeys(block.contestant for block in self.blocks))

    def cells_per_round(self) -> int:
        """Return how many cells a round measures, conditional ones left out."""
        return sum(
            self.series_of(cell).only_if_failed is None
            for block in self.blocks
            if block.round == 0
            for cell in block.cells
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run: ``name`` is what the person asked for, an experiment's name or ``all``."""

    name: str
    seed: int
    parts: tuple[Part, ...]
    placements: Mapping[int, Placement]

    @property
    def budget_s(self) -> float:
        """Seconds the run may take."""
        return sum(part.budget_s for part in self.parts)

    @property
    def service_cpus(self) -> tuple[int, ...]:
        """The CPUs of databases: the load generator's, so that the servers have theirs alone."""
        return next((place.load_cpus for place in self.placements.values()), ())

    def placement(self, workers: int) -> Placement:
        """Return where a server with so many workers runs, and the generator beside it."""
        return self.placements[workers]

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "seed": self.seed,
            "budget_s": self.budget_s,
            "placements": {
                str(workers): {
                    "server_cpus": place.server_cpus,
                    "load_cpus": place.load_cpus,
                    "is_shared": place.is_shared,
                }
                for workers, place in self.placements.items()
            },
            "parts": [_part_record(part) for part in self.parts],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Plan:
        """Read what ``as_record`` wrote."""
        places = {
            int(workers): Placement(tuple(place["server_cpus"]), tuple(place["load_cpus"]))
            for workers, place in record["placements"].items()
        }
        parts = tuple(_part(part) for part in record["parts"])
        return cls(record["name"], record["seed"], parts, places)


def _part_record(part: Part) -> dict[str, Any]:
    return {
        "experiment": part.experiment,
        "series": [series.as_record() for series in part.series],
        "baseline": part.baseline,
        "rounds": part.rounds,
        "budget_s": part.budget_s,
        "blocks": [
            {
                "round": block.round,
                "contestant": block.contestant,
                "workers": block.workers,
                "again": block.again,
                "manner": block.manner,
                "cells": [[cell.series, cell.case_id] for cell in block.cells],
            }
            for block in part.blocks
        ],
    }


def _part(record: Mapping[str, Any]) -> Part:
    blocks = tuple(
        Block(
            block["round"],
            block["contestant"],
            block["workers"],
            tuple(Cell(series, case) for series, case in block["cells"]),
            block["again"],
            block.get("manner", "plain"),
        )
        for block in record["blocks"]
    )
    series = tuple(map(Series.from_record, record["series"]))
    return Part(
        record["experiment"],
        series,
        record["baseline"],
        record["rounds"],
        record["budget_s"],
        blocks,
    )


def make(
    name: str,
    experiments: Iterable[Experiment],
    contestants: Sequence[Contestant],
    *,
    budget_s: float | None,
    random: random.Random,
    seed: int,
    chosen: bool = False,
    baseline: str | None = None,
) -> Plan:
    """Plan the experiments for those contestants that are ready.

    ``budget_s`` is for all of them, and each gets its share; ``None`` leaves them their own. With
    ``chosen`` the person named the contestants: all of them take part in everything, else those
    that the experiment names. ``baseline`` is what ratios refer to, where it takes part.
    """
    experiments = list(experiments)
    scale = 1.0
    if budget_s is not None:
        scale = budget_s / sum(experiment.budget_s for experiment in experiments)
    parts: list[Part] = []
    places: dict[int, Placement] = {}
    for experiment in experiments:
        ready = [one for one in contestants if chosen or one.name in experiment.contestants]
        names = [one.name for one in ready]
        wanted = baseline if baseline in names else experiment.baseline
        wanted = wanted if wanted in names else (names or [""])[0]
        part_s = experiment.budget_s * scale
        part = _plan_part(experiment, ready, part_s, random, places, wanted)
        if part.blocks:
            parts.append(part)
    return Plan(name, seed, tuple(parts), places)


def _plan_part(
    experiment: Experiment,
    contestants: Sequence[Contestant],
    budget_s: float,
    random: random.Random,
    places: dict[int, Placement],
    baseline: str,
) -> Part:
    """Rounds are worth more than longer windows; there are as many as leave the window it wants."""
    starts = _starts(experiment, contestants, places)
    again = _again(experiment, starts, baseline)
    series_of = {series.id: series for series in experiment.series}
    round_s = sum(
        START_S + sum(cost_s(series_of[cell.series], experiment.window_s) for cell in cells)
        for *_, cells in [*starts, *again]
    )
    usable_s = budget_s - sum(WARM_GUESS_S * len(cells) for *_, cells in starts)
    rounds = max(ROUNDS_MIN, min(ROUNDS_MAX, int(usable_s / max(round_s, 1e-9))))
    blocks: list[Block] = []
    for number in range(rounds):
        shuffled = [(*start, False) for start in starts] + [(*start, True) for start in again]
        random.shuffle(shuffled)
        for name, workers, manner, cells, is_again in shuffled:
            order = _in_order(cells, series_of, random)
            blocks.append(Block(number, name, workers, order, is_again, manner))
    return Part(experiment.name, experiment.series, baseline, rounds, budget_s, tuple(blocks))


def _starts(
    experiment: Experiment, contestants: Sequence[Contestant], places: dict[int, Placement]
) -> list[Start]:
    """Return what each start measures: contestant, workers, manner, cells."""
    only = experiment.cases_of
    starts: list[Start] = []
    for contestant in contestants:
        by_manner: dict[tuple[int, str], list[Cell]] = {}
        for series in experiment.series:
            if series.load.wire not in contestant.wires:
                continue
            placement, workers = place(series.workers)
            for case_id in series.cases:
                case = contract().case_named(case_id)
                wanted = case_id in only.get(contestant.name, series.cases)
                if wanted and case.workload in contestant.workloads:
                    places[workers] = placement
                    manner = (workers, contestant.manner_of(series.load.wire))
                    by_manner.setdefault(manner, []).append(Cell(series.id, case_id))
        starts += [(contestant.name, *manner, cells) for manner, cells in by_manner.items()]
    return starts


def _again(experiment: Experiment, starts: list[Start], baseline: str) -> list[Start]:
    """Return the baseline's second start: its first closed-loop cell of each class of cases."""
    closed = [series.id for series in experiment.series if series.load == _as_closed(series)]
    for name, workers, manner, cells in starts:
        repeated: dict[str, Cell] = {}
        for cell in cells:
            if cell.series in closed:
                repeated.setdefault(cell.case.noise_class, cell)
        if name == baseline and repeated:
            return [(name, workers, manner, list(repeated.values()))]
    return []


def _as_closed(series: Series) -> object:
    """Return the series' load if it is a timed closed loop, else ``None``."""
    load = series.load
    return load if not load.is_open and load.is_timed and series.only_if_failed is None else None


def _in_order(
    cells: list[Cell], series_of: Mapping[str, Series], random: random.Random
) -> tuple[Cell, ...]:
    """Shuffle, but capacities come before the rates that are fractions of them."""
    order = list(cells)
    random.shuffle(order)
    order.sort(key=lambda cell: series_of[cell.series].load.fraction is not None)
    return tuple(order)


def place(workers: int) -> tuple[Placement, int]:
    """Return CPUs for a server with so many workers (0: as many as the machine gives it).

    They are disjoint where there are enough CPUs; else both compete, and the report says so.
    """
    cpus = sorted(os.sched_getaffinity(0))
    if workers == 0:
        n_load = len(cpus) // 4
        server = cpus[: len(cpus) - n_load]
        return Placement(tuple(server), tuple(cpus[-max(n_load, 1) :])), len(server)
    if len(cpus) <= workers:
        return Placement(tuple(cpus), tuple(cpus)), workers
    return Placement(tuple(cpus[:workers]), tuple(cpus[workers : workers + 1])), workers


ROUNDS_MIN = 3
ROUNDS_MAX = 8
