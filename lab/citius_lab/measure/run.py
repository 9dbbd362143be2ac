"""Carries out a plan: starts, measures, records, and leaves no process behind.

What goes wrong with one contestant is a record and a line on the terminal; the run goes on with the
others. Ctrl-C, SIGTERM and SIGHUP end it at any moment with the records kept, and ``resume`` goes on
after them.
"""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from citius_lab.definitions import wires
from citius_lab.definitions.workloads import WrongResponse, contract
from citius_lab.errors import ClusterGone, LaunchError, LoadError
from citius_lab.measure import outside, repetition, steady
from citius_lab.measure.budget import Clock
from citius_lab.measure.drive import NO_ANSWER, WARMUP_S, Driver, Shot, load_command
from citius_lab.measure.history import History
from citius_lab.measure.plan import ROUNDS_MIN, Block, Cell, Part, Plan
from citius_lab.processes import launch, usage
from citius_lab.processes.services import Services
from citius_lab.verify import session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from citius_lab.cluster.driver import Cluster
    from citius_lab.definitions.contestants import Contestant
    from citius_lab.definitions.protocols import Series
    from citius_lab.definitions.workloads import Case
    from citius_lab.measure.plan import Placement
    from citius_lab.processes.launch import Server
    from citius_lab.record import Recorder


class Watcher(Protocol):
    """Is told how a run goes; the terminal's progress display is one."""

    def going(self, part: Part, block: Block, cell: Cell | None, left_s: float) -> None:
        """Tell what is done next; no cell while the contestant starts."""

    def done(self, n_cells: int) -> None:
        """Tell that cells are finished with, one way or another."""

    def say(self, message: str) -> None:
        """Tell the person something that stays on the screen."""


class Run:
    """One run of a plan.

    Args:
        before: Records of the same plan that an earlier, interrupted run left.
        cluster: Whose workers generate the load; this host does without one.

    Raises:
        LoadError: There is no load generator.
    """

    def __init__(
        self,
        plan: Plan,
        contestants: dict[str, Contestant],
        recorder: Recorder,
        watcher: Watcher,
        before: Sequence[dict[str, Any]] = (),
        cluster: Cluster | None = None,
    ) -> None:
        self._plan = plan
        self._contestants = contestants
        self._recorder = recorder
        self._watcher = watcher
        self._command = load_command()
        self._cluster = cluster
        self._random = random.Random(plan.seed)
        self._history = History(plan, before)
        self._clock = Clock(plan.parts[0], 0.0)
        self._services = Services(plan.service_cpus)
        self._left: list[Block] = []
        self._hung: set[str] = set()
        """Contestants that did not accept or answer the last time they were asked."""

    def carry_out(self) -> bool:
        """Do what is left of the plan; return whether it came to its end.

        Raises:
            RecordError: The result folder cannot be written.
            ClusterGone: No load can be generated any more; the run is recorded as interrupted.
        """
        interrupted = False
        with self._services:
            try:
                for part in self._plan.parts:
                    self._part(part)
            except KeyboardInterrupt:
                interrupted = True
            except ClusterGone:
                self._recorder.write("end", interrupted=True)
                raise
        self._recorder.write("end", interrupted=interrupted)
        return not interrupted

    def _part(self, part: Part) -> None:
        started_at = time.monotonic()
        spent_s = self._history.spent_s(part.experiment)
        self._clock = Clock(part, started_at, spent_s)
        for number, blocks in enumerate(part.in_rounds()):
            blocks = [block for block in self._wanted(part, blocks) if block.cells]
            if number >= ROUNDS_MIN:
                if not any(not block.again for block in blocks):
                    self._watcher.say(f"{part.experiment}: every interval is narrow enough")
                    break
                if not self._clock.affords(blocks, time.monotonic()):
                    self._watcher.say(
                        f"{part.experiment}: no time is left for round {number + 1} of {part.rounds}"
                    )
                    break
            later = [block for block in part.blocks if block.round > number]
            for index, block in enumerate(blocks):
                self._left = [*blocks[index:], *later]
                self._block(part, block)
        self._watcher.done(0)

    def _wanted(self, part: Part, blocks: Iterable[Block]) -> Iterator[Block]:
        """Leave out what is recorded, what is settled, and what no failure called for."""
        for block in blocks:
            cells = tuple(cell for cell in block.cells if self._history.wants(part, block, cell))
            self._watcher.done(len(block.cells) - len(cells))
            yield replace(block, cells=cells)

    def _block(self, part: Part, block: Block) -> None:
        contestant = self._contestants[block.contestant]
        placement = self._plan.placement(block.workers)
        self._going(part, block, None)
        started_at = time.monotonic()
        n_done = 0
        try:
            self._give_up_if_hung(block)
            with launch.Server(
                contestant,
                workers=block.workers,
                cpus=placement.server_cpus,
                log_path=self._recorder.log_path(contestant.name, block.round),
                manner=block.manner,
                services=self._services,
                host=None if self._cluster is None else self._cluster.host,
                ready_s=max(READY_MIN_S, min(READY_MAX_S, self._clock.left_s(started_at))),
            ) as server:
                conduct = self._start_record(server, part, block)
                self._clock.started(time.monotonic() - started_at)
                driver = self._driver(placement)
                asked_again: set[str] = set()
                for cell in block.cells:
                    self._give_up_if_hung(block)
                    self._going(part, block, cell)
                    self._cell(server, part, block, cell, conduct, driver)
                    if cell.case_id not in asked_again:
                        asked_again.add(cell.case_id)
                        self._ask_again(server, part, block, cell.case)
                    n_done += 1
                    self._left[0] = _without(self._left[0], cell)
                    self._watcher.done(1)
        except (LaunchError, OSError) as error:
            self._write(
                "fault",
                **_of(part, block),
                cells=[[cell.series, cell.case_id] for cell in block.cells[n_done:]],
                message=str(error),
            )
            self._watcher.say(f"{part.experiment}, round {block.round + 1}: {error}")
            self._watcher.done(len(block.cells) - n_done)

    def _driver(self, placement: Placement) -> Driver:
        if self._cluster is None:
            return Driver(self._command, placement=placement, random=self._random)
        from citius_lab.cluster.driver import ClusterDriver

        return ClusterDriver(
            self._command, placement=placement, random=self._random, cluster=self._cluster
        )

    def _give_up_if_hung(self, block: Block) -> None:
        """Ask a contestant that does not answer no more once the budget is spent.

        Raises:
            LaunchError: It is one.
        """
        if block.contestant in self._hung and self._clock.left_s(time.monotonic()) <= 0:
            raise LaunchError(f"{block.contestant} does not answer, and its time is over")

    def _going(self, part: Part, block: Block, cell: Cell | None) -> None:
        index = self._plan.parts.index(part)
        later_s = sum(other.budget_s for other in self._plan.parts[index + 1 :])
        left_s = self._clock.left_s(time.monotonic()) + later_s
        self._watcher.going(part, block, cell, left_s)

    def _start_record(self, server: Server, part: Part, block: Block) -> dict[str, str]:
        """Check the HTTP conformance of a fresh server, record its start, and return what was wrong."""
        contestant = self._contestants[block.contestant]
        cases = contract().cases_of(contestant.workloads)
        wire = wires.probe_wire(contestant.wires, is_encrypted=block.manner == "tls")
        # HTTP/2 and RPC have framing of their own; there is nothing to cut or to pipeline.
        is_http1 = wire is not None and not wires.is_http2(wire) and block.manner != "rpc"
        asked = cases and is_http1
        faults = session.verify_conduct(server.port, cases, wire=wire).faults() if asked else {}
        memory = usage.memory(server.pids())
        self._write(
            "start",
            **_of(part, block),
            command=server.command,
            manner=block.manner,
            ready_after_s=server.ready_after_s,
            conduct_faults={
                name: fault for name, fault in faults.items() if name not in contestant.lacks
            },
            pss_idle_kib=memory["pss_kib"],
            processes=memory["processes"],
        )
        return faults

    def _ask_again(self, server: Server, part: Part, block: Block, case: Case) -> None:
        """Find out, once for each contestant, whether answers to repeated requests are remembered.

        It is asked when the case was measured: a server may remember what it was asked a thousand times.
        """
        wires_spoken = self._contestants[block.contestant].wires
        wire = wires.probe_wire(wires_spoken, is_encrypted=block.manner == "tls")
        if block.round > 0 or block.again or wire is None or block.manner == "rpc":
            return
        if block.contestant in self._hung:
            return
        # What is wrong with an answer, the measurement has said.
        with contextlib.suppress(OSError, WrongResponse):
            found = repetition.ratios(server, case, self._random, wire)
            if found:
                self._write("repetition", **_of(part, block), case=case.id, ratios=found)

    def _cell(
        self,
        server: Server,
        part: Part,
        block: Block,
        cell: Cell,
        conduct: dict[str, str],
        driver: Driver,
    ) -> None:
        series = part.series_of(cell)
        names = {**_of(part, block), "series": cell.series, "case": cell.case_id}
        names["protocol"] = series.protocol
        empty = {"connections": series.load.connections, "pipeline": series.load.depth}
        if series.is_pipelined and "pipelined" in conduct:
            fault = f"does not answer pipelined requests: {conduct['pipelined']}"
            self._write("measurement", **names, run=0, discarded=False, fault=fault, **empty)
            return
        rate = None
        if series.load.fraction is not None:
            capacity = self._history.capacity(part, block, cell, series)
            if capacity is None:
                fault = f"no capacity was found in the series {series.load.of}"
                self._write("measurement", **names, run=0, discarded=False, fault=fault, **empty)
                return
            rate = max(1.0, capacity * series.load.fraction)
        warmup_s = self._warmed(server, part, block, cell, names, driver)
        for number in range(series.discard + series.runs):
            started_at = time.monotonic()
            fair_s = self._clock.window_s(self._left, started_at)
            shot = Shot.of(series, cell.case, window_s=fair_s, warmup_s=warmup_s, rate=rate)
            fields = driver.measure(server, shot)
            self._note_hang(block, fields["fault"])
            self._give_up_if_hung(block)
            discarded = number < series.discard
            self._write("measurement", **names, run=number, discarded=discarded, **fields)
            planned_s = fair_s if series.load.is_timed else series.load.fixed_s()
            self._clock.measured(time.monotonic() - started_at, planned_s)
        # The others run on this host only.
        if self._cluster is None and not block.again and cell.case_id == series.cases[0]:
            self._ask_outside(server, block, cell, series, names)

    def _ask_outside(
        self, server: Server, block: Block, cell: Cell, series: Series, names: dict[str, Any]
    ) -> None:
        """Run other load generators on the same process, for what the lab's own has just measured."""
        shot = Shot.of(series, cell.case, window_s=0.0, warmup_s=0.0, rate=None)
        for tool in series.outside:
            cpus = self._plan.placement(block.workers).load_cpus
            if (fields := outside.ask(tool, shot, server, cpus)) is not None:
                self._write("outside", **names, **fields)

    def _note_hang(self, block: Block, fault: str | None) -> None:
        if fault is not None and fault.startswith(NO_ANSWER):
            self._hung.add(block.contestant)
        else:
            self._hung.discard(block.contestant)

    def _warmed(
        self,
        server: Server,
        part: Part,
        block: Block,
        cell: Cell,
        names: dict[str, Any],
        driver: Driver,
    ) -> float:
        """Return how long to warm this cell up; the first time, find out by watching it."""
        known = self._history.warmup_s(block, cell)
        if known is not None or not part.series_of(cell).load.is_timed:
            return WARMUP_S if known is None else known
        started_at = time.monotonic()
        found = self._watch_warm_up(server, part, cell, driver)
        if found is None:
            return WARMUP_S
        self._write("warm-up", **names, **found)
        self._clock.warmed(time.monotonic() - started_at)
        return self._history.warmup_s(block, cell) or WARMUP_S

    def _watch_warm_up(
        self, server: Server, part: Part, cell: Cell, driver: Driver
    ) -> dict[str, Any] | None:
        """Ask the closed loop in short runs until its rate is steady, or patience ends."""
        patience_s = max(WATCH_MIN_S, min(WATCH_MAX_S, part.budget_s / 60))
        series = part.series_of(cell)
        counts: list[int] = []
        found = steady.find(counts, STEP_S)
        while found.steady_after_s is None and len(counts) * STEP_S < patience_s:
            try:
                wire = series.load.wire
                answer = session.verify_case(server.port, cell.case, self._random, wire=wire)
                request_s = answer.elapsed_s
                shot = Shot.closed(series, cell.case, window_s=WATCH_RUN_S, request_s=request_s)
                load = driver.drive(server, shot, answer.body)["load"]
            except (LoadError, WrongResponse, OSError):
                # The measurement that follows will say what is wrong.
                return None
            n_steps = round(WATCH_RUN_S / STEP_S)
            steps = [int(step["completed"]) for step in load.get("intervals", ())][:n_steps]
            if not steps:
                return None
            counts += steps + [0] * (n_steps - len(steps))
            found = _find(counts)
        if not found.is_decided:
            return None
        return {**found.as_record(), "step_s": STEP_S, "counts": counts}

    def _write(self, kind: str, **fields: Any) -> None:
        self._history.note(self._recorder.write(kind, **fields))


def _find(counts: list[int]) -> steady.WarmUp:
    """Look for the steady state in steps long enough to hold some requests each."""
    mean = sum(counts) / len(counts)
    n_joined = max(1, -(-STEP_REQUESTS_MIN // max(1, round(mean))))
    joined = [
        sum(counts[at : at + n_joined]) for at in range(0, len(counts) - n_joined + 1, n_joined)
    ]
    return steady.find(joined, STEP_S * n_joined)


def _of(part: Part, block: Block) -> dict[str, Any]:
    """Return the names that every record of a block carries."""
    return {
        "experiment": part.experiment,
        "contestant": block.contestant,
        "round": block.round,
        "workers": block.workers,
        "again": block.again,
    }


def _without(block: Block, cell: Cell) -> Block:
    cells = tuple(other for other in block.cells if other != cell)
    return replace(block, cells=cells)


# The generator's series has this resolution in runs of less than five seconds.
STEP_S = 0.1
STEP_REQUESTS_MIN = 6
WATCH_RUN_S = 0.6
WATCH_MIN_S = 1.2
WATCH_MAX_S = 8.0
# How long a start may take, as far as the budget goes; handlers may be compiled in it.
READY_MIN_S = 15.0
READY_MAX_S = 30.0
