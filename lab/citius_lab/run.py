"""Carries out a plan: starts, measures, records, and leaves no process behind.

What goes wrong with one contestant is a record and a line on the terminal; the run goes on with the
others. Ctrl-C, SIGTERM and SIGHUP end it at any moment with the records kept.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from typing import TYPE_CHECKING, Any, Protocol

from citius_lab import launch, verify
from citius_lab.drive import Driver, load_command
from citius_lab.errors import LaunchError
from citius_lab.plan import ROUNDS_MIN, Block, Cell, Clock, Plan
from citius_lab.workloads import cases_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from citius_lab.contestants import Contestant
    from citius_lab.launch import Server
    from citius_lab.record import Recorder


class Watcher(Protocol):
    """Is told how a run goes; the terminal's progress display is one."""

    def going(self, block: Block, cell: Cell | None) -> None:
        """Tell what is done next; no cell while the contestant starts."""

    def done(self, n_cells: int) -> None:
        """Tell that cells are finished with, one way or another."""

    def say(self, message: str) -> None:
        """Tell the person something that stays on the screen."""


def run(
    plan: Plan, contestants: dict[str, Contestant], recorder: Recorder, watcher: Watcher
) -> bool:
    """Carry out ``plan``; return whether it came to its end.

    Raises:
        LoadError: There is no load generator.
    """
    driver = Driver(
        load_command(),
        load_cpus=plan.load_cpus,
        server_cpus=plan.server_cpus,
        random=random.Random(plan.seed),
    )
    clock = Clock(plan, time.monotonic())
    interrupted = False
    with _signals_as_interrupts():
        try:
            for number, blocks in enumerate(plan.in_rounds()):
                if number >= ROUNDS_MIN and not clock.affords(blocks, time.monotonic()):
                    watcher.say(f"no time is left for round {number + 1} of {plan.rounds}")
                    break
                for block in blocks:
                    contestant = contestants[block.contestant]
                    _run_block(plan, block, contestant, driver, clock, recorder, watcher)
        except KeyboardInterrupt:
            interrupted = True
        recorder.write("end", interrupted=interrupted)
    return not interrupted


def _run_block(
    plan: Plan,
    block: Block,
    contestant: Contestant,
    driver: Driver,
    clock: Clock,
    recorder: Recorder,
    watcher: Watcher,
) -> None:
    watcher.going(block, None)
    started_at = time.monotonic()
    n_done = 0
    try:
        with launch.Server(
            contestant,
            workers=plan.workers,
            cpus=plan.server_cpus,
            log_path=recorder.log_path(contestant.name, block.round),
        ) as server:
            conduct = _start_record(server, block, contestant, recorder)
            clock.started(time.monotonic() - started_at)
            for cell in block.cells:
                watcher.going(block, cell)
                _measure(server, block, cell, conduct, driver, clock, recorder)
                n_done += 1
                watcher.done(1)
    except (LaunchError, OSError) as error:
        n_left = len(block.cells) - n_done
        recorder.write(
            "fault",
            contestant=contestant.name,
            round=block.round,
            cases=[[cell.case_id, cell.section] for cell in block.cells[n_done:]],
            message=str(error),
        )
        watcher.say(f"round {block.round + 1}: {error}")
        clock.skipped(n_left)
        watcher.done(n_left)


def _start_record(
    server: Server, block: Block, contestant: Contestant, recorder: Recorder
) -> dict[str, str]:
    """Try the manners of a fresh server, record its start, and return what was wrong."""
    cases = cases_of(contestant.workloads)
    faults = verify.verify_conduct(server.port, cases).faults()
    pids = launch.tree(server.pid)
    recorder.write(
        "start",
        contestant=contestant.name,
        round=block.round,
        command=server.command,
        ready_after_s=server.ready_after_s,
        conduct_faults=faults,
        pss_idle_kib=launch.pss_kib(pids),
        processes=len(pids),
    )
    return faults


def _measure(
    server: Server,
    block: Block,
    cell: Cell,
    conduct: dict[str, str],
    driver: Driver,
    clock: Clock,
    recorder: Recorder,
) -> None:
    started_at = time.monotonic()
    fair_s = clock.window_s(started_at)
    fields: dict[str, Any]
    if cell.pipeline > 1 and "pipelined" in conduct:
        fields = {
            "contestant": cell.contestant,
            "case": cell.case_id,
            "section": cell.section,
            "connections": cell.connections,
            "pipeline": cell.pipeline,
            "fault": f"does not answer pipelined requests: {conduct['pipelined']}",
        }
    else:
        fields = driver.measure(server, cell, fair_s)
    recorder.write("measurement", round=block.round, **fields)
    clock.measured(time.monotonic() - started_at, fair_s)


@contextlib.contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt, so that all cleaning up is one path."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    previous = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
