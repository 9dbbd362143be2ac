"""The command ``citius lab count``: instructions per request of what a result folder has measured.

CPU time per request is noisy and of one machine; instructions are nearly the same at each count, on a busy
machine, too. Each contestant is started once more, under callgrind with one worker, and asked over one
connection, with as many requests in flight as in the series, each turn of the server's loop by itself. Every
count is made twice, or a few times more where the two differ; then the figure says so. They are appended to
the folder's ``instructions.jsonl``, beside its records.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citius_lab import record
from citius_lab.commands import options
from citius_lab.commands.base import Lab, build_all, lab, split_names
from citius_lab.commands.results import draw
from citius_lab.definitions import certificate, contestants, wires
from citius_lab.definitions.protocols import Series
from citius_lab.definitions.workloads import Case, WrongResponse, contract
from citius_lab.errors import LabError, LaunchError, LoadError
from citius_lab.judge import analyse
from citius_lab.judge.figures import COUNTS_DIFFER_MAX
from citius_lab.measure.drive import Driver, Shot, load_command, mix_of
from citius_lab.measure.plan import Placement
from citius_lab.processes import callgrind, environment, exclusive, launch
from citius_lab.processes.services import Services
from citius_lab.report import words
from citius_lab.verify import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from citius_lab.definitions.contestants import Contestant
    from citius_lab.record import Results


@dataclass(frozen=True, slots=True)
class Wanted:
    """One figure whose instructions are to be counted."""

    experiment: str
    series: Series
    case: Case
    contestant: str

    @property
    def key(self) -> record.CountKey:
        """What tells it from the others of a folder."""
        return self.experiment, self.series.id, self.case.id, self.contestant

    def same(self) -> tuple[object, ...]:
        """Return what is equal for figures that have one count, whatever their numbers of connections."""
        return self.case.id, Shot.counted(self.series, self.case, 1, timeout_s=PATIENCE_S).load


@lab.command("count")
@options.folder
@options.only("Only these contestants.")
@click.option("--again", is_flag=True, help="Count also what has been counted.")
@options.budget("Start no further contestant after so long; another call goes on.")
@click.pass_obj
def count_(
    lab: Lab, folder: Path, names: tuple[str, ...], again: bool, budget_s: float | None
) -> None:
    """Count the instructions per request of what FOLDER has measured, and draw its report again.

    Under valgrind a server takes some fifty times as long: expect 20 to 60 seconds for each contestant.
    The machine need not be quiet.
    """
    count(lab, folder, names=split_names(names), again=again, budget_s=budget_s)
    draw(lab, folder, None, tables=False)


def count(
    lab: Lab,
    folder: Path,
    *,
    names: Sequence[str] = (),
    again: bool = False,
    budget_s: float | None = None,
) -> None:
    """Count what is not counted yet, and append it to the folder.

    Raises:
        LabError: There is no valgrind, or a contestant is not here or does not build.
    """
    if (reason := callgrind.missing()) is not None:
        raise LabError(reason)
    results = record.load(folder)
    wanted = wanted_of(results, () if again else [record.count_key(one) for one in results.counts])
    by_name: dict[str, list[Wanted]] = {}
    for one in wanted:
        if not names or one.contestant in names:
            by_name.setdefault(one.contestant, []).append(one)
    if not by_name:
        lab.console.print("nothing is left to count")
        return
    chosen = contestants.choose(lab.found(), list(by_name))
    left_out = build_all(lab, [one for one in chosen if not one.uncounted])
    begun_at = time.monotonic()
    counter = Counter(folder / record.COUNTS)
    # It would disturb a measurement, and not the other way round.
    with exclusive.measuring(folder):
        for contestant in chosen:
            if contestant.name in left_out:
                continue
            if budget_s is not None and time.monotonic() - begun_at > budget_s:
                lab.console.print("no time is left; the same command goes on")
                return
            for line in counter.count(contestant, by_name[contestant.name]):
                lab.console.print(line, soft_wrap=True, markup=False)
            if again:
                drop_former(folder / record.COUNTS)


def drop_former(path: Path) -> None:
    """Leave the last count of each figure in the file; those that were counted again are of no use."""
    lines = path.read_text().splitlines(keepends=True)
    last = {record.count_key(json.loads(line)): line for line in lines}
    new = path.with_suffix(".new")
    new.write_text("".join(last.values()))
    new.replace(path)


def wanted_of(results: Results, known: Sequence[record.CountKey]) -> list[Wanted]:
    """Return the figures of a run that a count makes sense of, without those that are ``known``.

    A rate or an arrival of its own has the instructions of the closed loop beside it; where requests wait
    for each other, or a message goes to all connections, one connection does not do the same work.
    """
    series_of = {
        (entry["name"], series["id"]): Series.from_record(series)
        for entry in results.run["experiments"]
        for series in entry["series"]
    }
    found: list[Wanted] = []
    for figure in analyse.analyse(results).figures.values():
        experiment = figure.section.partition("/")[0]
        series = series_of[experiment, figure.section.partition("/")[2]]
        case = contract().cases.get(figure.case)
        is_rate = series.load.is_open and series.load.users is None
        if case is None or is_rate or case.has_background or series.load.senders:
            continue
        one = Wanted(experiment, series, case, figure.contestant)
        if series.workers == 1 and words.is_shown(figure) and one.key not in known:
            found.append(one)
    return found


class Counter:
    """Counts contestant by contestant, and writes each count as it is made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._common = {
            "commit": environment.commit(),
            "python": contestants.python_text(),
            "valgrind": callgrind.version(),
        }
        cpus = tuple(sorted(os.sched_getaffinity(0)))
        self._random = random.Random(0)
        self._driver = Driver(load_command(), placement=Placement(cpus, cpus), random=self._random)

    def count(self, contestant: Contestant, wanted: Sequence[Wanted]) -> Iterator[str]:
        """Count one contestant's figures; yield a line for each of them."""
        by_manner: dict[str, list[Wanted]] = {}
        for one in wanted:
            manner = contestant.manner_of(one.series.load.wire)
            by_manner.setdefault(manner, []).append(one)
        for manner, own in by_manner.items():
            if manner == "tls":
                certificate.make(contestant.build_root)
            for one, fields in self._counted(contestant, manner, own):
                self._write(one, fields)
                yield _line(one, fields)

    def _counted(
        self, contestant: Contestant, manner: str, wanted: Sequence[Wanted]
    ) -> Iterator[tuple[Wanted, dict[str, Any]]]:
        """Start it, and yield what was counted of each figure, or why there is nothing."""
        if contestant.uncounted:
            yield from ((one, _fault(contestant.uncounted)) for one in wanted)
            return
        by_same: dict[tuple[object, ...], dict[str, Any]] = {}
        left = list(wanted)
        try:
            with (
                tempfile.TemporaryDirectory(prefix="citius-lab-") as name,
                Services(()) as services,
            ):
                folder = Path(name)
                counts = callgrind.Callgrind(folder)
                with launch.Server(
                    contestant,
                    workers=1,
                    cpus=(),
                    log_path=folder / "log",
                    ready_s=READY_S,
                    manner=manner,
                    services=services,
                    prefix=counts.words(),
                ) as server:
                    while left:
                        same = left[0].same()
                        if same not in by_same:
                            by_same[same] = self._case(server, counts, left[0])
                            if by_same[same]["fault"]:  # it may have been a moment's
                                by_same[same] = self._case(server, counts, left[0])
                        yield left.pop(0), by_same[same]
        except (LaunchError, OSError) as error:
            fault = _fault(analyse.in_a_line(str(error)))
            yield from ((one, by_same.get(one.same(), fault)) for one in left)

    def _case(
        self, server: launch.Server, counts: callgrind.Callgrind, one: Wanted
    ) -> dict[str, Any]:
        """Count one case, at least twice.

        Raises:
            LaunchError: The server died, or callgrind does not answer.
        """
        try:
            wire = one.series.load.wire
            check = functools.partial(
                session.verify_case,
                server.port, one.case, self._random, timeout_s=PATIENCE_S, wire=wire,
            )  # fmt: skip
            check()  # then all its processes are there
            counts.begin(server.pids())
            answer = check()
            body = answer.encoded or answer.body
            by_turns = has_turns(one.series)
            mix = [] if by_turns else mix_of(server.port, one.case, self._random, wire)

            def ask(requests: int) -> int:
                """Return the instructions of so many requests, their connection's included."""
                if by_turns:
                    turns(server, one, requests)
                    return counts.taken(server.pids())
                shot = Shot.counted(one.series, one.case, requests, timeout_s=PATIENCE_S)
                load = self._driver.drive(server, shot, body, mix)["load"]
                if load["completed"] != requests:
                    raise LoadError(f"{load['completed']} of {requests} requests were answered")
                return counts.taken(server.pids())

            fitting = int(BATCH_S / max(answer.elapsed_s, 1e-6))
            depth = one.series.load.depth
            requests = max(1, min(REQUESTS_MAX, fitting) // depth) * depth
            ask(requests)  # warms up
            each = [_of_one(ask, requests) for _ in range(2)]
            while requests >= FEW and len(each) < COUNTS_MAX and _differ(each):
                each.append(_of_one(ask, requests))
        except (WrongResponse, LoadError, OSError) as error:
            if (how := server.ended(END_S)) is not None:
                raise LaunchError(callgrind.crash(server.log_path) or how) from error
            return _fault(analyse.in_a_line(str(error)))
        return {"requests": requests, "per_request": each, "fault": None}

    def _write(self, one: Wanted, fields: Mapping[str, Any]) -> None:
        """Append a count.

        Raises:
            LabError: The folder cannot be written.
        """
        entry = {
            "kind": "instructions",
            "at": time.time(),
            "experiment": one.experiment,
            "series": one.series.id,
            "case": one.case.id,
            "contestant": one.contestant,
            **self._common,
            **fields,
        }
        try:
            with self._path.open("a") as file:
                file.write(record.line_of(entry) + "\n")
        except OSError as error:
            raise LabError(f"{self._path} cannot be written: {error}") from error


def has_turns(series: Series) -> bool:
    """Tell whether a series can be asked turn by turn: HTTP/1.1, where no session of TLS is resumed."""
    resumes = series.load.tls and series.load.requests_per_connection > 0
    return series.load.wire in (wires.HTTP1, wires.HTTPS) and not resumes


def turns(server: launch.Server, one: Wanted, requests: int) -> None:
    """Ask so many requests, as many at once as the series has in flight, when the server sleeps.

    A generator's next request comes while the server still works, or a moment later, as the machine has it:
    the server would do the former at once and wait for the latter, which takes it more instructions.

    Raises:
        OSError: The connection failed, or the server does not come to rest.
        WrongResponse: A response has another status.
    """
    load, case = one.series.load, one.case
    chance, pids = random.Random(0), server.pids()
    mix = [kind for kind in case.requests(chance) if kind.weight > 0]
    kinds = [(kind.target, kind.within(case)) for kind in mix] or [(case.target, case)]
    weights = [kind.weight for kind in mix] or None
    keep_alive = load.keep_alive and load.users is None
    per_connection = load.requests_per_connection if keep_alive else 1
    left, served = requests, 0
    with contextlib.ExitStack() as stack:
        peer: session.Connection | None = None
        while left:
            if peer is None:
                peer = session.Connection(server.port, timeout_s=PATIENCE_S, wire=load.wire)
                stack.callback(peer.close)
            chosen = chance.choices(kinds, weights, k=min(left, load.depth))
            peer.send(b"".join(peer.request(*kind) for kind in chosen))
            for _, own in chosen:
                if (status := peer.receive().status) != own.status:
                    raise WrongResponse(f"{case.id}: expected status {own.status}, got {status}")
            left, served = left - len(chosen), served + len(chosen)
            if peer.is_over or (per_connection and served >= per_connection):
                peer.close()
                peer, served = None, 0
            launch.wait_until_asleep(pids, PATIENCE_S)


def _of_one(ask: Callable[[int], int], requests: int) -> float:
    """Return the instructions of one request.

    What a connection and the ends of a batch take cancels in the difference of two batches. Where a batch
    is a few long requests that is nothing beside them, and a second batch would take minutes.
    """
    if requests < FEW:
        return float(ask(requests)) / requests
    short = ask(requests)
    return float(ask(2 * requests) - short) / requests


def _differ(each: Sequence[float]) -> bool:
    """Tell whether counts of one figure differ by more than a change that matters."""
    return max(each) > (1 + COUNTS_DIFFER_MAX) * min(each)


def _fault(message: str) -> dict[str, Any]:
    return {"requests": 0, "per_request": [], "fault": message[:FAULT_CHARS]}


def _line(one: Wanted, fields: Mapping[str, Any]) -> str:
    said = fields["fault"] or ", ".join(f"{value:,.0f}" for value in fields["per_request"])
    return f"{one.contestant}, {one.series.id}, {one.case.id}: {said}"


# Under valgrind a server takes some fifty times as long.
READY_S = 180.0
PATIENCE_S = 60
# Its sockets are closed a moment before its end is known; valgrind may still write where it was.
END_S = 5.0
# How long the shorter of two batches takes, and how many requests it has at most.
BATCH_S = 0.5
# The longer one has twice as many, on one connection, and servers may end one after a thousand.
REQUESTS_MAX = 400
FEW = 8
# A collector that runs once in thousands of requests is in one batch and not in the next: the mean of more
# counts is nearer to its share.
COUNTS_MAX = 6
# Of a fault; what a server printed may be long.
FAULT_CHARS = 200
