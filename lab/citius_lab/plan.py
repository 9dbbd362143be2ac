"""Who answers what, in which order, for how long: the only place where a run is decided.

A run is rounds; a round starts every contestant once, in random order, and measures all its cases,
in random order, on that one process. The restart is the unit of repetition. Window lengths come
from the time that is left, and a round beyond the third is left out when there is none, so a run
ends when it should on a slow machine too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from citius_lab.workloads import CASE_BY_ID, Case, cases_of

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from citius_lab.contestants import Contestant


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing to measure: a case under a protocol, on one contestant.

    Attributes:
        pipeline: Requests in flight on each connection; 1 means none waits behind another.
    """

    contestant: str
    case_id: str
    connections: int
    pipeline: int = 1

    @property
    def case(self) -> Case:
        """The request that is measured."""
        return CASE_BY_ID[self.case_id]

    @property
    def section(self) -> str:
        """Which part of the report it belongs to."""
        return "pipelined" if self.pipeline > 1 else "closed loop"


@dataclass(frozen=True, slots=True)
class Block:
    """One start of one contestant, and what is measured on that process, in order."""

    round: int
    contestant: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run.

    Attributes:
        budget_s: Seconds the run may take, starts and checks included.
    """

    scenario: str
    seed: int
    rounds: int
    budget_s: float
    workers: int
    server_cpus: tuple[int, ...]
    load_cpus: tuple[int, ...]
    blocks: tuple[Block, ...]

    def in_rounds(self) -> list[list[Block]]:
        """Return the blocks of each round."""
        rounds: list[list[Block]] = [[] for _ in range(self.rounds)]
        for block in self.blocks:
            rounds[block.round].append(block)
        return rounds

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def quick(
    contestants: Iterable[Contestant],
    *,
    budget_s: float,
    server_cpus: list[int],
    load_cpus: list[int],
    random: random.Random,
    seed: int,
) -> Plan:
    """Plan every case that each contestant can do, and the pipelined greeting.

    Rounds are the unit of repetition, so more of them are worth more than longer windows; there
    are as many as leave ``WINDOW_S`` for each.
    """
    cells = {contestant.name: _cells(contestant) for contestant in contestants}
    n_cells = sum(map(len, cells.values()))
    round_s = n_cells * (WINDOW_S + CELL_OVERHEAD_S) + len(cells) * START_S
    rounds = max(ROUNDS_MIN, min(ROUNDS_MAX, int(budget_s / max(round_s, 1e-9))))
    blocks = []
    for number in range(rounds):
        names = list(cells)
        random.shuffle(names)
        for name in names:
            order = list(cells[name])
            random.shuffle(order)
            blocks.append(Block(number, name, tuple(order)))
    return Plan(
        "quick", seed, rounds, budget_s, 1, tuple(server_cpus), tuple(load_cpus), tuple(blocks)
    )


def _cells(contestant: Contestant) -> list[Cell]:
    workloads = ASYNC_ONLY.get(contestant.name, contestant.workloads)
    cells = [Cell(contestant.name, case.id, case.connections) for case in cases_of(workloads)]
    if "hello" in workloads:
        cells.append(Cell(contestant.name, "hello", CASE_BY_ID["hello"].connections, PIPELINE))
    return cells


class Clock:
    """Shares the time that is left among the cells that are left.

    What a cell costs besides its fair window (checks, warm-up, processes, a longer window for a
    slow server) and what a start costs is learnt from those that were done.
    """

    def __init__(self, plan: Plan, now: float) -> None:
        self._ends_at = now + plan.budget_s
        self._cells_left = sum(len(block.cells) for block in plan.blocks)
        self._starts_left = len(plan.blocks)
        self._overhead_s = CELL_OVERHEAD_S
        self._start_s = START_S

    def window_s(self, now: float) -> float:
        """Return the fair window: how long to count, for a cell measured next."""
        left_s = self._ends_at - now
        left_s -= self._cells_left * self._overhead_s + self._starts_left * self._start_s
        return max(WINDOW_MIN_S, min(WINDOW_MAX_S, left_s / max(self._cells_left, 1)))

    def started(self, took_s: float) -> None:
        """Note what one start cost."""
        self._starts_left -= 1
        self._start_s += (took_s - self._start_s) / 4

    def measured(self, took_s: float, fair_s: float) -> None:
        """Note what one cell cost in all, and its fair window."""
        self._cells_left -= 1
        # One in thirty: cells of a round differ more than rounds do.
        self._overhead_s += (took_s - fair_s - self._overhead_s) / 30

    def skipped(self, n_cells: int) -> None:
        """Note that cells will not be measured."""
        self._cells_left -= n_cells

    def affords(self, blocks: Sequence[Block], now: float) -> bool:
        """Tell whether there is time for these blocks, with the shortest windows."""
        n_cells = sum(len(block.cells) for block in blocks)
        cost_s = n_cells * (self._overhead_s + WINDOW_MIN_S) + len(blocks) * self._start_s
        return now + cost_s <= self._ends_at


def stretched_s(fair_s: float, request_s: float) -> float:
    """Return how long to count on a server that takes ``request_s`` for one request.

    A slow one gets longer, so that its rate is not a matter of a handful of requests.
    """
    return max(fair_s, min(WINDOW_MAX_S, REQUESTS_MIN * request_s))


# The `quick` scenario shows of citius-async what differs from citius; `verify` asks all of it.
ASYNC_ONLY = {"citius-async": ("hello", "async")}
QUICK = (
    "citius",
    "citius-async",
    "uvicorn",
    "granian-rsgi",
    "go-net-http",
    "rust-axum",
    "rust-floor",
)
PIPELINE = 24
BUDGET_S = 270.0
ROUNDS_MIN = 3
ROUNDS_MAX = 6
# A window of half a second is 5000 requests or more of everything but the slow cases.
WINDOW_S = 0.45
WINDOW_MIN_S = 0.25
WINDOW_MAX_S = 2.5
# Requests a window should at least hold.
REQUESTS_MIN = 32
# First guesses; the clock learns the real ones.
CELL_OVERHEAD_S = 0.45
START_S = 1.5
