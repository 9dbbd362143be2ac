"""How the time of a part is spent: what things cost, and how long the next window may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius_lab.definitions.protocols import Series
    from citius_lab.measure.plan import Block, Part


def cost_s(series: Series, window_s: float) -> float:
    """Return what one cell of a series costs on one process, with such a window."""
    if series.only_if_failed is not None:
        return 0.0
    run_s = series.load.fixed_s() or window_s
    outside_s = OUTSIDE_S * len(series.outside) / len(series.cases)
    return (series.discard + series.runs) * run_s + CELL_OVERHEAD_S + outside_s


class Clock:
    """Shares the time that is left in a part among the cells that are left.

    What a cell costs besides its window (checks, processes, a longer window for a slow server) and
    what a start costs is learnt from those that were done.
    """

    def __init__(self, part: Part, now: float, spent_s: float = 0.0) -> None:
        self._part = part
        self._ends_at = now + part.budget_s - spent_s
        self._overhead_s = CELL_OVERHEAD_S
        self._start_s = START_S
        self._warm_s = 0.0

    def window_s(self, left: Sequence[Block], now: float) -> float:
        """Return the fair window: how long to count, for a cell measured next.

        ``left`` is what is still to be measured, that cell included.
        """
        cells = [self._part.series_of(cell) for block in left for cell in block.cells]
        cells = [series for series in cells if series.only_if_failed is None]
        fixed_s = sum(cost_s(series, 0.0) - CELL_OVERHEAD_S for series in cells)
        n_timed = sum(series.runs for series in cells if series.load.is_timed)
        left_s = self._ends_at - now - fixed_s
        left_s -= len(cells) * self._overhead_s + len(left) * self._start_s
        left_s -= self._warm_s * sum(len(block.cells) for block in left if block.round == 0)
        return max(WINDOW_MIN_S, min(WINDOW_MAX_S, left_s / max(n_timed, 1)))

    def left_s(self, now: float) -> float:
        """Return the time left for the part."""
        return max(0.0, self._ends_at - now)

    def started(self, took_s: float) -> None:
        """Note what one start cost."""
        self._start_s += (took_s - self._start_s) / 4

    def warmed(self, took_s: float) -> None:
        """Note what it took to find out when one cell is steady."""
        self._warm_s += (took_s - self._warm_s) / 8

    def measured(self, took_s: float, planned_s: float) -> None:
        """Note what one cell cost in all, and what its window (or its fixed length) was to."""
        # One in thirty: cells of a round differ more than rounds do.
        self._overhead_s += (took_s - planned_s - self._overhead_s) / 30

    def affords(self, blocks: Sequence[Block], now: float) -> bool:
        """Tell whether there is time for these blocks, with the shortest windows."""
        cells = [self._part.series_of(cell) for block in blocks for cell in block.cells]
        needed_s = sum(
            cost_s(series, WINDOW_MIN_S) - CELL_OVERHEAD_S + self._overhead_s
            for series in cells
            if series.only_if_failed is None
        )
        return now + needed_s + len(blocks) * self._start_s <= self._ends_at


def stretched_s(fair_s: float, request_s: float) -> float:
    """Return how long to count on a server that takes ``request_s`` for one request.

    A slow one gets longer, so that its rate is not a matter of a handful of requests.
    """
    return max(fair_s, min(SLOW_WINDOW_MAX_S, REQUESTS_MIN * request_s))


WINDOW_MIN_S = 0.25
# The longest window of an article.
WINDOW_MAX_S = 15.0
# A slow server does not get more: that would cost the others their rounds.
SLOW_WINDOW_MAX_S = 2.5
# Requests a window should at least hold.
REQUESTS_MIN = 32
# First guesses; the clock learns the real ones.
CELL_OVERHEAD_S = 0.45
START_S = 1.5
# One run of another load generator: a second, and what its start takes.
OUTSIDE_S = 1.2
# What finding out when a cell is steady takes, once per contestant and cell.
WARM_GUESS_S = 0.7
