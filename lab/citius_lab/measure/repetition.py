"""Does a server do the work again when it is asked the same again, or does it remember the answer?

The load generator asks one request many times, so a contestant that keeps answers would be measured
without its work. Requests of equal work that the server has not seen are asked beside repeated ones, in
turns, and their CPU times compared: work that is done each time costs the same on both sides.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from citius_lab.processes import launch
from citius_lab.verify import session

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Case
    from citius_lab.processes.launch import Server


def ratios(server: Server, case: Case, random: random.Random, wire: str) -> list[float]:
    """Return the CPU time of repeated requests over that of fresh ones, a value for each pair of turns.

    Nothing where the case has no other requests of equal work.

    Raises:
        OSError: The connection failed.
        WrongResponse: An answer is wrong.
    """
    if case.equal_work(random) in (None, case.target):
        return []
    with contextlib.closing(session.connection(server.port, wire=wire)) as peer:
        first = peer.ask(case.target, case)
        case.check(first)
        n_requests = max(1, min(REQUESTS_MAX, int(TURN_S / max(first.elapsed_s, 1e-6))))

        def cost_s(targets: list[str]) -> float:
            begin = _clocks_s(server)
            answers = [peer.ask(target, case) for target in targets]
            end = _clocks_s(server)
            for answer, target in zip(answers, targets, strict=True):
                case.check(answer, target)
            return sum(clock_s - begin.get(own, 0.0) for own, clock_s in end.items())

        found: list[float] = []
        for _ in range(TURNS):
            fresh = [case.equal_work(random) or case.target for _ in range(n_requests)]
            fresh_s, repeated_s = cost_s(fresh), cost_s([case.target] * n_requests)
            if fresh_s > 0 and repeated_s > 0:
                found.append(repeated_s / fresh_s)
        return found


def _clocks_s(server: Server) -> dict[int, float]:
    """Read the clocks when the server has come to rest: that of a running process lags by a tick."""
    time.sleep(SETTLE_S)
    return launch.cpu_clocks_s(server.pids())


TURNS = 5
SETTLE_S = 0.005
TURN_S = 0.02
REQUESTS_MAX = 40
