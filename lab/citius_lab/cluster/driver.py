"""Load generators on the workers of a Dask cluster, against a contestant on this host.

Of each run: every worker gets its part of the connections, the rate and the requests; its clock is
compared with this host's by round trips; all begin at one instant; their records are joined
(``merging``). What limited any of them, or the network of any machine, is part of the record, and
the verdict says it. ``generator`` is the workers' side.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citius_lab.cluster import generator, merging, network
from citius_lab.errors import ClusterGone, LabError, LoadError
from citius_lab.judge.histogram import Histogram
from citius_lab.measure import drive
from citius_lab.processes import usage

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from citius_lab.measure.drive import Shot
    from citius_lab.measure.plan import Placement
    from citius_lab.processes.launch import Server


@dataclass(frozen=True, slots=True)
class Clock:
    """How a worker's clocks stand to this host's.

    Attributes:
        offset_ns: How far its monotonic clock is ahead.
        uncertainty_ns: Half of the shortest round trip: the offset is not further off.
        wall_offset_ns: The same of its wall clock.
    """

    offset_ns: int
    uncertainty_ns: int
    wall_offset_ns: int


@dataclass(slots=True)
class Worker:
    """A worker of the cluster, and what it said of itself."""

    address: str
    survey: dict[str, Any]

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.address} ({self.survey['host']})"


class Cluster:
    """The workers of a Dask cluster that can generate load; a context manager.

    Args:
        address: The scheduler's, such as ``tcp://scheduler:8786``.
        host: The address of this host at which workers reach it.
        link_mbit: What the links carry, where devices do not know.

    Raises:
        LabError: dask.distributed is not installed; no scheduler answers; it has no workers; one of
            them has no load generator, or another one than this host.
    """

    def __init__(self, address: str, host: str, *, link_mbit: float | None = None) -> None:
        try:
            import distributed
        except ImportError as error:
            raise LabError(
                "--cluster needs dask.distributed, which is not installed: "
                "pip install 'citius-lab[cluster]'"
            ) from error
        self.address = address
        self.host = host
        self.link_mbit = link_mbit
        self._listener = _listen(host)
        try:
            # Any: its methods are typed in part only.
            self.client: Any = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            self._listener.close()
            raise LabError(
                f"no Dask scheduler answers at {address} within {CONNECT_S} s: {error}; "
                "`dask scheduler` starts one"
            ) from error
        try:
            self.workers = self._survey()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; it goes on."""
        self._listener.close()
        with contextlib.suppress(Exception):  # a cluster that is gone cannot be left
            self.client.close(timeout=2)

    def addresses(self) -> set[str]:
        """Return the workers that the scheduler has now.

        Raises:
            ClusterGone: It does not answer.
        """
        try:
            if self.client.status != "running":
                raise OSError(f"the connection to it is {self.client.status}")
            # What scheduler_info returns a heartbeat may replace, without the workers.
            ask = self.client.scheduler.ncores
            return set(self.client.sync(ask, workers=None, callback_timeout=ANSWER_S))
        except (OSError, TimeoutError) as error:
            raise ClusterGone(f"the Dask scheduler at {self.address} is gone: {error}") from error

    def as_record(self) -> dict[str, Any]:
        """Return what ``run.json`` says of it."""
        workers = [{"address": one.address, **one.survey} for one in self.workers]
        return {"scheduler": self.address, "host": self.host, "link_mbit": self.link_mbit,
                "workers": workers}  # fmt: skip

    def _survey(self) -> list[Worker]:
        with contextlib.suppress(Exception):  # what came is looked at below
            self.client.wait_for_workers(1, timeout=WORKERS_S)
        addresses = sorted(self.addresses())
        if not addresses:
            raise LabError(
                f"the Dask scheduler at {self.address} has no workers; start one on each machine that shall "
                f"generate load: dask worker {self.address} --nthreads 1 --no-nanny"
            )
        own = generator.survey()
        if own["fault"] is not None:
            raise LoadError(own["fault"])
        futures = {
            address: self.client.submit(
                generator.survey, workers=[address], allow_other_workers=False, pure=False
            )
            for address in addresses
        }
        workers: list[Worker] = []
        deadline = time.monotonic() + SURVEY_S
        for address, future in futures.items():
            try:
                found = future.result(timeout=max(0.1, deadline - time.monotonic()))
            except TimeoutError as error:
                raise LabError(
                    f"worker {address} did not say within {SURVEY_S:g} s which load "
                    "generator it has: it is stuck, or "
                    "busy with other work"
                ) from error
            except Exception as error:
                raise LabError(
                    f"worker {address} cannot generate load: {type(error).__name__}: "
                    f"{error}; it needs the same "
                    "citius-lab as this host: pip install 'citius-lab[cluster]'"
                ) from error
            workers.append(_fit(Worker(address, found), own))
        return workers

    def call(self, jobs: dict[str, dict[str, Any]], shot: Shot, server: Server) -> Run:
        """Begin a run on some workers at one instant.

        Raises:
            LoadError: One of them does not begin.
        """
        token = secrets.token_hex(16)
        run = Run(self, token, shot, server)
        try:
            for address, job in jobs.items():
                own = {
                    "token": token,
                    "worker": address,
                    "coordinator": self._listener.getsockname(),
                }
                run.futures[address] = self.client.submit(
                    generator.generate,
                    job | own,
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
            run.accept(self._listener)
            run.compare_clocks()
        except BaseException:
            run.close()
            raise
        return run


class Run:
    """One run of generators on several workers: their lines, their clocks, their results."""

    def __init__(self, cluster: Cluster, token: str, shot: Shot, server: Server) -> None:
        self._cluster = cluster
        self._token = token
        self._shot = shot
        self._server = server
        self.futures: dict[str, Any] = {}
        self.lines: dict[str, socket.socket] = {}
        self.clocks: dict[str, Clock] = {}
        self.start_ns = 0

    def close(self) -> None:
        """Close the lines, which ends generators that still run, and forget the tasks."""
        for line in self.lines.values():
            line.close()
        with contextlib.suppress(Exception):  # the scheduler may be what is gone
            self._cluster.client.cancel(list(self.futures.values()), force=True)

    def accept(self, listener: socket.socket) -> None:
        """Wait for the line of each worker.

        Raises:
            LoadError: One does not come.
        """
        deadline = time.monotonic() + BEGIN_S
        while missing := [address for address in self.futures if address not in self.lines]:
            self._expect_alive(missing)
            if time.monotonic() > deadline:
                raise LoadError(
                    f"worker {missing[0]} did not begin within {BEGIN_S:g} s: it is busy "
                    "with other work, or does not "
                    f"reach this host at {self._cluster.host} (--host)"
                )
            listener.settimeout(STEP_S)
            try:
                line, _ = listener.accept()
            except TimeoutError:
                continue
            line.settimeout(HELLO_S)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            token, _, address = _line_of(line).partition(" ")
            if not secrets.compare_digest(token, self._token) or address not in missing:
                line.close()  # not of this run
                continue
            self.lines[address] = line

    def compare_clocks(self) -> None:
        """Compare the clock of each worker with this host's, one worker after the other.

        Raises:
            LoadError: A clock cannot be compared well enough, or is too far off.
        """
        for address, line in self.lines.items():
            clock = compare(line, address)
            self.clocks[address] = clock
            if clock.uncertainty_ns > UNCERTAINTY_MAX_MS * 1e6:
                raise LoadError(
                    f"the clock of worker {address} is known to "
                    f"±{clock.uncertainty_ns / 1e6:.1f} ms only, more than "
                    f"{UNCERTAINTY_MAX_MS:g} ms: the way to it is too slow for generators to begin together"
                )
            if abs(clock.wall_offset_ns) > WALL_OFFSET_MAX_S * 1e9:
                raise LoadError(
                    f"the wall clock of worker {address} is "
                    f"{clock.wall_offset_ns / 1e9:+.1f} s off this host's, more "
                    f"than {WALL_OFFSET_MAX_S:g} s: set it (NTP), or records cannot be put in order"
                )

    def start(self) -> None:
        """Tell all of them the same instant, each by its own clock.

        Raises:
            ClusterGone: A worker is gone.
        """
        self.start_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        for address, line in self.lines.items():
            try:
                line.sendall(f"start {self.start_ns + self.clocks[address].offset_ns}\n".encode())
            except OSError as error:
                raise ClusterGone(f"worker {address} is gone: {error}") from error

    def sleep_until(self, at_ns: int) -> bool:
        """Wait for an instant of this host's clock; return early, with ``True``, when all are done.

        Raises:
            LoadError: A worker failed.
            ClusterGone: A worker or the scheduler is gone.
        """
        while (left_s := (at_ns - time.monotonic_ns()) / 1e9) > 0:
            self._expect_alive(self.futures)
            if all(future.done() for future in self.futures.values()):
                return True
            time.sleep(min(left_s, STEP_S))
        return False

    def results(self, deadline_ns: int) -> dict[str, dict[str, Any]]:
        """Return what each worker found.

        Raises:
            LoadError: A worker failed, or does not end in time.
            ClusterGone: A worker or the scheduler is gone.
        """
        if not self.sleep_until(deadline_ns):
            late = [address for address, future in self.futures.items() if not future.done()]
            if late:
                raise LoadError(f"worker {late[0]} did not end in time: it stands still")
        self._expect_alive(self.futures)
        try:
            return {
                address: future.result(timeout=RESULT_S) for address, future in self.futures.items()
            }
        except Exception as error:
            raise LoadError(f"a worker did not hand its record over: {error}") from error

    def _expect_alive(self, addresses: Any) -> None:
        here = self._cluster.addresses()
        for address in addresses:
            future = self.futures[address]
            if future.status == "error":
                raise LoadError(f"worker {address}: {future.exception(timeout=RESULT_S)}")
            if future.status == "finished":
                fault = future.result(timeout=RESULT_S)["fault"]
                if fault is not None:
                    raise LoadError(f"worker {address}: {fault}")
            elif address not in here or future.status in ("lost", "cancelled"):
                raise ClusterGone(f"worker {address} is gone: it died, or left the cluster")
            elif address in self.lines and _is_closed(self.lines[address]):
                # Its result may be on its way; a worker without one is gone.
                deadline = time.monotonic() + RESULT_S
                while not future.done() and time.monotonic() < deadline:
                    time.sleep(STEP_S / 10)
                if not future.done():
                    raise ClusterGone(f"worker {address} is gone: it died during the run")


class ClusterDriver(drive.Driver):
    """Drives generators on the workers of a cluster, in the place of one on this host."""

    def __init__(
        self, command: list[str], *, placement: Placement, random: random.Random, cluster: Cluster
    ) -> None:
        super().__init__(command, placement=placement, random=random)
        self._cluster = cluster

    def drive(
        self, server: Server, shot: Shot, body: bytes, mix: Sequence[dict[str, Any]] = ()
    ) -> dict[str, Any]:
        """Run generators on all workers at once; return the joined record and what the run cost.

        Raises:
            LoadError: One of them failed.
            ClusterGone: One of them, or the scheduler, is gone.
        """
        if shot.load.rtt_ms or shot.load.loss:
            raise LoadError("over a cluster packets take as long as they take: no delay is added")
        parts = split(shot, len(self._cluster.workers))
        target = f"{shot.scheme}://{self._cluster.host}:{server.port}{shot.target}"
        with tempfile.TemporaryDirectory(prefix="citius-lab-") as folder:
            words = drive.files_of(Path(folder), shot.case, body, mix)
            words = [word.replace(folder, "{folder}") for word in words]
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        span_s = shot.warmup_s + shot.window_s + (shot.load.ramp_s or 0.0)
        longest_s = span_s + LEAD_S + 2 * drive.TIMEOUT_S
        jobs: dict[str, dict[str, Any]] = {}
        for number, (worker, part) in enumerate(zip(self._cluster.workers, parts, strict=False)):
            own = [*part.words(()), *part.request_words(), *words, "--seed", str(number + 1)]
            jobs[worker.address] = {
                "words": own, "files": files, "target": target, "longest_s": longest_s
            }  # fmt: skip
        run = self._cluster.call(jobs, shot, server)
        try:
            net_before = usage.network()
            run.start()
            run.sleep_until(run.start_ns + int(shot.warmup_s * 1e9))
            begin, net_begin = usage.Snapshot.take(server, server.service_pids), network.read()
            if shot.load.is_timed and shot.load.users is None:
                run.sleep_until(run.start_ns + int((shot.warmup_s + shot.window_s) * 1e9))
                end, net_end = usage.Snapshot.take(server, server.service_pids), network.read()
                memory = usage.memory(server.pids())
                found = run.results(run.start_ns + int(longest_s * 1e9))
            else:
                found = run.results(run.start_ns + int(longest_s * 1e9))
                end, net_end = usage.Snapshot.take(server, server.service_pids), network.read()
                memory = usage.memory(server.pids())
        finally:
            run.close()
        clocks = [run.clocks[address] for address in found]
        load = merging.joined(
            [one["load"] for one in found.values()], [clock.offset_ns for clock in clocks]
        )
        here = network.between(net_begin, net_end)
        return {
            "window_s": shot.window_s,
            "warmup_s": shot.warmup_s,
            "rate": shot.rate,
            "command": [*self._command, *next(iter(jobs.values()))["words"], target],
            "load": load,
            "usage": self._usage(begin, end, load, found),
            "net": usage.network_between(net_before, usage.network()),
            "memory": memory,
            "generators": [self._generator(run, worker, found) for worker in self._cluster.workers
                           if worker.address in found],
            "network": here,
            "network_limits": self._network_limits(here, found),
        }  # fmt: skip

    def _usage(
        self,
        begin: usage.Snapshot,
        end: usage.Snapshot,
        load: dict[str, Any],
        found: dict[str, dict[str, Any]],
    ) -> dict[str, float]:
        """Return what the window cost; the generators' CPUs are other machines' ones."""
        elsewhere = {"cpu_s": {"user": 0.0, "system": 0.0}}
        cost = usage.between(begin, end, elsewhere, self._placement.server_cpus)
        # Nothing of the lab competes with a generator here.
        cost["lab_share"] = 0.0
        cost["generator_cpu_s"] = load["cpu_s"]["user"] + load["cpu_s"]["system"]
        cost["generator_share"] = max(share_of(one["load"]) for one in found.values())
        return cost

    def _generator(
        self, run: Run, worker: Worker, found: dict[str, dict[str, Any]]
    ) -> dict[str, Any]:
        one, clock = found[worker.address], run.clocks[worker.address]
        load = one["load"]
        lags: dict[str, Any] = load.get("schedule_lag_us") or {}
        latency = Histogram.decode(load["latency_histogram"]).percentile(99)
        begun_ns = load["begin_ns"] - clock.offset_ns - int(warmup_ns_of(load))
        return {
            "worker": worker.address,
            "host": worker.survey["host"],
            "offset_us": clock.offset_ns / 1e3,
            "uncertainty_us": clock.uncertainty_ns / 1e3,
            "wall_offset_us": clock.wall_offset_ns / 1e3,
            "late_us": (begun_ns - run.start_ns) / 1e3,
            "requests_per_s": load["requests_per_s"],
            "completed": load["completed"],
            "cpu_share": share_of(load),
            "cpu_idle_share": one["cpu_idle_share"],
            "steal_share": one["steal_share"],
            "lag_p99_us": lags.get("p99"),
            "latency_p99_us": None if latency is None else latency / 1e3,
            "network": one["network"],
        }

    def _network_limits(self, here: dict[str, Any], found: dict[str, dict[str, Any]]) -> list[str]:
        link = self._cluster.link_mbit
        said = [f"the contestants' host: {one}" for one in network.limits(here, link_mbit=link)]
        for address, result in found.items():
            said += [
                f"{address}: {one}" for one in network.limits(result["network"], link_mbit=link)
            ]
        return said


def own_address(scheduler: str) -> str:
    """Return this host's address on the way to a scheduler.

    Raises:
        LabError: The scheduler's address is none, or there is no way to it.
    """
    protocol, _, rest = scheduler.rpartition("://")
    host, _, port = rest.rpartition(":")
    if protocol not in ("", "tcp", "tls") or not host or not port.isdecimal():
        raise LabError(
            f"--cluster: expected an address such as tcp://scheduler:8786, got {scheduler!r}"
        )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, int(port)))
        except (OSError, OverflowError) as error:
            raise LabError(f"--cluster {scheduler}: there is no way to {host}: {error}") from error
        found: str = probe.getsockname()[0]
        return found


def split(shot: Shot, n: int) -> list[Shot]:
    """Return the parts of a shot for up to ``n`` generators; together they are the shot.

    A broadcast is one generator's: it alone knows when the messages were due that it receives.
    """
    load = shot.load
    places = load.users or shot.connections
    n = 1 if load.senders else max(1, min(n, places))
    parts: list[Shot] = []
    for number in range(n):
        share = _share(places, n, number) / places
        own = replace(
            load,
            users=None if load.users is None else _share(load.users, n, number),
            requests=None if load.requests is None else max(1, _share(load.requests, n, number)),
            rate=None if load.rate is None else load.rate * share,
        )
        parts.append(
            replace(
                shot,
                load=own,
                connections=max(1, _share(shot.connections, n, number)),
                rate=None if shot.rate is None else shot.rate * share,
            )
        )
    return parts


def compare(line: socket.socket, address: str) -> Clock:
    """Read the clocks at the other end of a line in round trips; the shortest tells most.

    Raises:
        LoadError: The other end does not answer.
    """
    best: Clock | None = None
    for _ in range(ROUND_TRIPS):
        sent_ns, sent_wall_ns = time.monotonic_ns(), time.time_ns()
        try:
            line.sendall(b"clock\n")
            mono, _, wall = _line_of(line).partition(" ")
            came_ns = time.monotonic_ns()
            half_ns = (came_ns - sent_ns) // 2
            clock = Clock(
                int(mono) - sent_ns - half_ns, half_ns, int(wall) - sent_wall_ns - half_ns
            )
        except (OSError, ValueError) as error:
            raise LoadError(f"worker {address} does not say what its clock is: {error}") from error
        if best is None or clock.uncertainty_ns < best.uncertainty_ns:
            best = clock
    assert best is not None
    return best


def share_of(load: dict[str, Any]) -> float:
    """Return what a generator used of each of its threads' CPUs, 0 to 1."""
    cpu_s = load["cpu_s"]["user"] + load["cpu_s"]["system"]
    return float(cpu_s / max(load["elapsed_s"], 1e-9) / max(load["options"]["threads"], 1))


def warmup_ns_of(load: dict[str, Any]) -> float:
    """Return how long a generator sent before it counted."""
    return float((load["options"].get("warmup_s") or 0.0) * 1e9)


def _share(total: int, n: int, number: int) -> int:
    return total // n + (number < total % n)


def _fit(worker: Worker, own: dict[str, Any]) -> Worker:
    """Return the worker if its generator is this host's.

    Raises:
        LabError: It has none, or another.
    """
    found = worker.survey
    if found["fault"] is not None:
        raise LabError(f"worker {worker.name} cannot generate load: {found['fault']}")
    is_same = (found["version"], found["load_schema"]) == (own["version"], own["load_schema"])
    if is_same and found["machine"] == own["machine"]:
        is_same = found["sha256"] == own["sha256"]
    if not is_same:
        raise LabError(
            f"worker {worker.name} has another load generator ({found['version']}, "
            f"{found['sha256'][:12]}) than this "
            f"host ({own['version']}, {own['sha256'][:12]}): install the same citius-lab on both"
        )
    return worker


def _listen(host: str) -> socket.socket:
    try:
        return socket.create_server((host, 0))
    except OSError as error:
        raise LabError(
            f"--host {host}: expected an address of this host that workers reach: {error.strerror or error}"
        ) from error


def _line_of(line: socket.socket) -> str:
    """Read a line, byte by byte at most: nothing else is under way."""
    found = b""
    while not found.endswith(b"\n") and len(found) < LINE_BYTES_MAX:
        try:
            piece = line.recv(LINE_BYTES_MAX)
        except OSError:
            piece = b""
        if not piece:
            return ""
        found += piece
    return found.decode(errors="replace").strip()


def _is_closed(line: socket.socket) -> bool:
    """Tell whether the other end closed it; workers say nothing after the start."""
    line.setblocking(False)
    try:
        return line.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        with contextlib.suppress(OSError):
            line.settimeout(HELLO_S)


CONNECT_S = 10
ANSWER_S = 5.0
WORKERS_S = 5.0
SURVEY_S = 20.0
BEGIN_S = 20.0
HELLO_S = 5.0
RESULT_S = 10.0
STEP_S = 0.05
# Between the word to begin and the first request: the generator starts meanwhile.
LEAD_S = 1.0
ROUND_TRIPS = 32
UNCERTAINTY_MAX_MS = 5.0
WALL_OFFSET_MAX_S = 1.0
LINE_BYTES_MAX = 256
