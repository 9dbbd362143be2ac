"""What a run knows from its own records: what is done, steady, settled, and what failed.

Fed by every record as it is written, or by those of an interrupted run, so that a resumed run
decides as the first would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius_lab.judge.statistics import interval
from citius_lab.judge.verdict import ERRORS_MAX, error_share
from citius_lab.measure.plan import ROUNDS_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.definitions.protocols import Series
    from citius_lab.measure.plan import Block, Cell, Part, Plan

Place = tuple[str, str, str]  # series, case, contestant


class History:
    """The records of a run so far, as far as they decide what is done next."""

    def __init__(self, plan: Plan, before: Iterable[dict[str, Any]] = ()) -> None:
        self._runs = {
            (part.experiment, series.id): series.discard + series.runs
            for part in plan.parts
            for series in part.series
        }
        self._done: set[tuple[Any, ...]] = set()
        self._rates: dict[tuple[str, Place], dict[int, float]] = {}
        self._rounds: dict[tuple[str, Place], set[int]] = {}
        self._failed: set[tuple[str, str]] = set()
        self._warm: dict[tuple[str, int, str], float] = {}
        self._spent_s: dict[str, float] = {}
        self._last_at: tuple[str, float] | None = None
        for record in before:
            self.note(record)
            self._spend(record)

    def _spend(self, record: dict[str, Any]) -> None:
        """Add up the time between the records of a run that was interrupted."""
        name = record.get("experiment")
        if name is None:
            self._last_at = None
            return
        if self._last_at is not None and self._last_at[0] == name:
            gap_s = max(0.0, record["at"] - self._last_at[1])
            self._spent_s[name] = self._spent_s.get(name, 0.0) + gap_s
        self._last_at = (name, record["at"])

    def note(self, record: dict[str, Any]) -> None:
        """Learn from one record."""
        kind = record["kind"]
        if kind == "measurement":
            self._note_measurement(record)
        elif kind == "fault":
            for series, case in record["cells"]:
                self._done.add(_key(record, series, case))
                self._note_failure(record, series, case)
        elif kind == "warm-up":
            self._note_warm_up(record)

    def _note_measurement(self, record: dict[str, Any]) -> None:
        experiment, series, case = record["experiment"], record["series"], record["case"]
        load = record.get("load")
        is_last = record["run"] + 1 >= self._runs.get((experiment, series), 1)
        if record["fault"] is not None or is_last:
            self._done.add(_key(record, series, case))
        if load is None or record["fault"] or error_share(load) > ERRORS_MAX:
            self._note_failure(record, series, case)
        elif not record["discarded"] and not record["again"] and load["completed"]:
            place = (experiment, (series, case, record["contestant"]))
            self._rates.setdefault(place, {})[record["round"]] = load["requests_per_s"]
        place = (experiment, (series, case, record["contestant"]))
        self._rounds.setdefault(place, set()).add(record["round"])

    def _note_failure(self, record: dict[str, Any], series: str, case: str) -> None:
        self._failed.add((record["experiment"], series))
        place = (record["experiment"], (series, case, record["contestant"]))
        self._rounds.setdefault(place, set()).add(record["round"])

    def _note_warm_up(self, record: dict[str, Any]) -> None:
        after_s = record["steady_after_s"]
        found_s = record["watched_s"] if after_s is None else after_s * WARM_MARGIN
        key = (record["contestant"], record["workers"], record["case"])
        self._warm[key] = max(WARM_MIN_S, min(WARM_MAX_S, found_s))

    def warmup_s(self, block: Block, cell: Cell) -> float | None:
        """Return how long this cell is warmed up on a fresh process, if that was found out."""
        return self._warm.get((block.contestant, block.workers, cell.case_id))

    def spent_s(self, experiment: str) -> float:
        """Return how long an earlier run worked on an experiment."""
        return self._spent_s.get(experiment, 0.0)

    def capacity(self, part: Part, block: Block, cell: Cell, series: Series) -> float | None:
        """Return what the same process did in the series that a fraction refers to."""
        place = (part.experiment, (series.load.of or "", cell.case_id, block.contestant))
        rates = self._rates.get(place, {})
        return rates.get(block.round)

    def wants(self, part: Part, block: Block, cell: Cell) -> bool:
        """Tell whether a cell is still to be measured."""
        series = part.series_of(cell)
        if _block_key(part, block, cell) in self._done:
            return False
        needed = series.only_if_failed
        if needed is not None and (part.experiment, needed) not in self._failed:
            return False
        return block.again or not self._is_settled(part, block, cell)

    def _is_settled(self, part: Part, block: Block, cell: Cell) -> bool:
        """Tell whether more restarts would not narrow what matters.

        A ratio needs both its sides in a round, so the baseline goes on while any contestant does.
        """
        if block.round < ROUNDS_MIN:
            return False
        names = [block.contestant]
        if block.contestant == part.baseline:
            names = part.contestants()
        places = [(part.experiment, (cell.series, cell.case_id, name)) for name in names]
        series = part.series_of(cell)
        others = [other for other in part.series if other.load.of == series.id]
        places += [
            (part.experiment, (other.id, cell.case_id, block.contestant)) for other in others
        ]
        return all(self._is_narrow(place) for place in places if place in self._rounds)

    def _is_narrow(self, place: tuple[str, Place]) -> bool:
        rates = self._rates.get(place, {})
        if len(rates) < ROUNDS_MIN:
            # Who fails in every round does so in the next.
            return not rates and len(self._rounds.get(place, ())) >= ROUNDS_MIN
        spread = interval(list(rates.values())).spread
        return spread is not None and spread <= SPREAD_TARGET


def _key(record: dict[str, Any], series: str, case: str) -> tuple[Any, ...]:
    return (
        record["experiment"],
        record["round"],
        record["contestant"],
        record["workers"],
        record["again"],
        series,
        case,
    )


def _block_key(part: Part, block: Block, cell: Cell) -> tuple[Any, ...]:
    return (
        part.experiment,
        block.round,
        block.contestant,
        block.workers,
        block.again,
        cell.series,
        cell.case_id,
    )


# More restarts are not spent on figures whose interval is within this share.
SPREAD_TARGET = 0.03
# How much longer than the steady state took the others are warmed up.
WARM_MARGIN = 1.25
WARM_MIN_S = 0.15
WARM_MAX_S = 8.0
