"""Drives the load generator against one server: one run, its record, and what it cost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from citius_lab.definitions.workloads import WrongResponse, contract
from citius_lab.errors import LaunchError, LoadError
from citius_lab.measure.budget import stretched_s
from citius_lab.paths import PACKAGE, lab_root
from citius_lab.processes import launch, relay, usage
from citius_lab.verify import session

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from citius_lab.definitions.protocols import Load, Series
    from citius_lab.definitions.workloads import Case, Mixed, Response
    from citius_lab.measure.plan import Placement
    from citius_lab.processes.launch import Server


# How long a response may take.
TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Shot:
    """One run of the generator, all decided.

    Attributes:
        connections: The load's, or the case's where the load leaves it open.
        rate: Requests per second of an open pace; fractions are resolved.
        window_s: How long to count, or how long at most where a count ends it.
        timeout_s: How long a response may take.
    """

    load: Load
    case: Case
    connections: int
    window_s: float
    warmup_s: float
    rate: float | None = None
    timeout_s: int = TIMEOUT_S

    @classmethod
    def of(
        cls, series: Series, case: Case, *, window_s: float, warmup_s: float, rate: float | None
    ) -> Shot:
        """Resolve what a series leaves to the case."""
        load = series.load
        own = series.connections.get(case.id, load.connections or case.connections)
        if not load.is_timed:
            window_s, warmup_s = COUNT_MAX_S, 0.0
        elif load.duration_s is not None:
            window_s = min(window_s, load.duration_s)
        window_s = max(window_s, load.window_min_s)
        if case.has_background:
            warmup_s = max(warmup_s, BACKGROUND_WARMUP_S)
        return cls(load, case, own, window_s, warmup_s, rate if rate is not None else load.rate)

    @classmethod
    def closed(cls, series: Series, case: Case, *, window_s: float, request_s: float) -> Shot:
        """Return the closed loop over the series' connections, whatever its pace and stop.

        Of a slow case fewer are used: what one run leaves in the server's queue is worked off
        before the next can begin.
        """
        load = replace(series.load, pace="closed", rate=None, fraction=None, of=None, threads=1)
        own = series.connections.get(case.id, load.connections or case.connections)
        queue_max = max(1, int(QUEUE_MAX_S / max(request_s, 1e-6)))
        return cls(load, case, min(own, queue_max), window_s, 0.0)

    @classmethod
    def counted(cls, series: Series, case: Case, requests: int, *, timeout_s: int) -> Shot:
        """Return so many requests in a closed loop over one connection, as deep as the series'.

        Users, who have a connection each, become a connection for each request.
        """
        load = replace(
            series.load,
            pace="closed",
            connections=1,
            threads=1,
            keep_alive=series.load.keep_alive and series.load.users is None,
            rate=None,
            fraction=None,
            of=None,
            users=None,
            ramp_s=None,
            requests=requests,
            duration_s=None,
            rtt_ms=0.0,
            loss=0.0,
        )
        return cls(load, case, 1, float(timeout_s), 0.0, timeout_s=timeout_s)

    def words(self, cpus: tuple[int, ...]) -> list[str]:
        """Return the generator's options, without the target."""
        load = self.load
        threads = min(load.threads, load.users or self.connections)
        words = ["--threads", str(threads), "--timeout", f"{self.timeout_s}s"]
        if load.users is not None:
            words += ["--users", str(load.users), "--ramp", f"{load.ramp_s or 0:g}s"]
        else:
            words += ["--connections", str(self.connections)]
            if load.http == "2":
                words += ["--http2", "--streams", str(load.streams)]
            elif load.http == "3":
                words += ["--http3", "--streams", str(load.streams)]
            elif load.rpc or load.has_messages:
                words += ["--pipeline", str(load.streams)]
            elif load.keep_alive:
                words += ["--pipeline", str(load.pipeline)]
            else:
                words += ["--no-keepalive", *(["--no-resumption"] if load.tls else [])]
            words += ["--broadcast", "--senders", str(load.senders)] if load.senders else []
            if load.requests_per_connection:
                words += ["--requests-per-connection", str(load.requests_per_connection)]
            words += ["--warmup", f"{self.warmup_s:.3f}s", "--duration", f"{self.window_s:.3f}s"]
        if load.requests is not None:
            words += ["--requests", str(load.requests)]
        if self.rate is not None:
            words += ["--rate", f"{self.rate:.3f}"]
            words += ["--poisson"] if load.pace == "poisson" else []
        if cpus:
            words += ["--cpus", ",".join(map(str, cpus))]
        words += ["--datagrams"] if load.wt == "datagrams" else []
        if not load.has_messages:  # a message has no status
            words += ["--expect-status", str(self.case.status)]
        return [*words, "--check-every", str(self.case.check_every)]

    @property
    def scheme(self) -> str:
        """What the generator's URL begins with."""
        if self.load.rpc:
            return "quic" if self.load.quic else "rpc"
        if self.load.ws:
            return "ws"
        if self.load.wt:
            return "wt"
        return "https" if self.load.tls else "http"

    @property
    def target(self) -> str:
        """What it ends with; a procedure has its workload's name."""
        return f"/{self.case.workload}" if self.load.rpc else self.case.target

    def request_words(self) -> list[str]:
        """Return the options that say what is asked, where it is more than a GET."""
        words = [] if self.case.method == "GET" else ["--method", self.case.method]
        for name, value in self.case.headers:
            words += ["--header", f"{name}: {value}"]
        return words


class Driver:
    """Runs load generators against servers of one placement.

    Args:
        command: The generator's own words.
    """

    def __init__(self, command: list[str], *, placement: Placement, random: random.Random) -> None:
        self._command = command
        self._placement = placement
        self._random = random

    def measure(self, server: Server, shot: Shot) -> dict[str, Any]:
        """Check, load, check again; return the fields of a record.

        Wrong answers and a generator that fails are part of the record (``fault``); the caller
        decides what becomes of the rest of the block.

        Raises:
            LaunchError: The server died.
        """
        fields: dict[str, Any] = {"connections": shot.connections, "fault": None}
        fields["pipeline"] = shot.load.depth
        try:
            wire = shot.load.wire
            answer = session.verify_case(server.port, shot.case, self._random, wire=wire)
            mix = mix_of(server.port, shot.case, self._random, wire)
            fields["checked"] = ["before"]
            fields["body_bytes"] = len(answer.body)
            if shot.load.is_timed:
                shot = _stretched(shot, answer.elapsed_s)
            fields |= self.drive(server, shot, answer.encoded or answer.body, mix)
            if (early := too_early(shot.case, fields["load"])) is not None:
                raise WrongResponse(early)
            # Answers of requests that were cut off at the end may still be in the server's work.
            patience_s = VERIFY_S + shot.connections * answer.elapsed_s
            session.verify_case(
                server.port, shot.case, self._random, timeout_s=patience_s, wire=wire
            )
            fields["checked"] = ["before", "during", "after"]
        except WrongResponse as error:
            fields["fault"] = f"wrong answer: {error}"
        except LoadError as error:
            fields["fault"] = str(error)
        except OSError as error:
            fields["fault"] = f"{NO_ANSWER}: {error}"
        if (how := server.ended(END_S if fields["fault"] else 0.0)) is not None:
            raise LaunchError(how)
        return fields

    def drive(
        self, server: Server, shot: Shot, body: bytes, mix: Sequence[dict[str, Any]] = ()
    ) -> dict[str, Any]:
        """Run the generator once; return its record and what the run cost.

        ``body`` is what a response is compared with; ``mix`` is requested instead of the target.

        Raises:
            LoadError: It failed.
        """
        words = [*self._command, *shot.words(self._placement.load_cpus), *shot.request_words()]
        with (
            tempfile.TemporaryDirectory(prefix="citius-lab-") as folder,
            relay.to(
                server.port, shot.load.rtt_ms, shot.load.loss, self._placement.load_cpus
            ) as address,
        ):
            target = f"{shot.scheme}://{address}{shot.target}"
            files = files_of(Path(folder), shot.case, body, mix)
            output = Path(folder, "load.json")
            net_before = usage.network()
            process = launch.Guarded(
                [*words, *files, "--json", str(output), "--events", target],
                cpus=self._placement.load_cpus,
                stderr=subprocess.PIPE,
            )
            try:
                begin, end, memory = _watch(process, server, shot)
                code = process.wait(shot.timeout_s)
            finally:
                process.stop()
            if code is None:
                raise LoadError(f"{self._command[0]} wrote its end and did not end")
            net = usage.network_between(net_before, usage.network())
            load = read_record(output, code)
        return {
            "window_s": shot.window_s,
            "warmup_s": shot.warmup_s,
            "rate": shot.rate,
            "command": [*words, target],
            "load": load,
            "usage": usage.between(begin, end, load, self._placement.server_cpus),
            "net": net,
            "memory": memory,
        }


def _stretched(shot: Shot, request_s: float) -> Shot:
    return replace(shot, window_s=stretched_s(shot.window_s, request_s))


def mix_of(port: int, case: Case, random: random.Random, wire: str) -> list[dict[str, Any]]:
    """Ask each request of a case's mix once, check the response, and return the generator's list.

    Raises:
        OSError: The connection failed.
        WrongResponse: A response is wrong.
    """
    requests = case.requests(random)
    if not requests:
        return []
    found: list[dict[str, Any]] = []
    with contextlib.ExitStack() as connections:
        peer = connections.enter_context(contextlib.closing(session.connection(port, wire=wire)))
        for one in requests:
            # A server may serve so many requests on a connection and no more: hypercorn 1 000.
            if isinstance(peer, session.Connection) and peer.is_over:
                peer = connections.enter_context(
                    contextlib.closing(session.connection(port, wire=wire))
                )
            own = one.within(case)
            answer = peer.ask(one.target, own)
            case.check_mixed(answer, one)
            found.append(
                {
                    "method": own.method,
                    "path": one.target,
                    "weight": one.weight,
                    "headers": dict(one.headers),
                    "body": own.body,
                    "chunked": own.is_chunked,
                    "background": one.is_background,
                    "expect_status": answer.status,
                    **_expected(answer, one),
                }
            )
    return [one for one in found if one["weight"] > 0]


def _expected(answer: Response, one: Mixed) -> dict[str, Any]:
    """Return what the generator compares the content of a response with."""
    if one.is_stable:
        return {"expect_body": answer.body}
    return {"expect_length": len(answer.body)}


def files_of(folder: Path, case: Case, body: bytes, mix: Sequence[dict[str, Any]]) -> list[str]:
    """Write what the generator compares with and what it sends; return the options."""
    words: list[str] = []
    if mix:
        lines = [_in_files(folder, number, one) for number, one in enumerate(mix)]
        (folder / "mix.json").write_text(json.dumps(lines))
        words += ["--mix", str(folder / "mix.json")]
    if case.is_stable:
        (folder / "expected").write_bytes(body)
        words += ["--expect-body-file", str(folder / "expected")]
    if case.body:
        (folder / "body").write_bytes(case.body)
        words += ["--body-file", str(folder / "body")]
    return words


def too_early(case: Case, load: dict[str, Any]) -> str | None:
    """Return what is wrong where a response under load came before the work can be done, else ``None``."""
    least_s = contract().workloads[case.workload].expect.elapsed_s_min
    first_us = load.get("latency_us", {}).get("min")
    if first_us is None or first_us >= EARLY * least_s * 1e6:
        return None
    return (
        f"{case.id}: under load a response came after {first_us / 1e3:.2f} ms, "
        f"and none can before {least_s * 1e3:g} ms"
    )


def _in_files(folder: Path, number: int, one: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of the generator's list with its bytes as texts, or in files where that is shorter."""
    found = dict(one)
    for name in ("body", "expect_body"):
        content = one.get(name)
        if not isinstance(content, bytes):
            continue
        if len(content) <= INLINE_BYTES_MAX and content.isascii():
            found[name] = content.decode()
        else:
            path = folder / f"{name}-{number}"
            path.write_bytes(content)
            del found[name]
            found[f"{name}_file"] = path.name
    return found


def _watch(
    process: launch.Guarded, server: Server, shot: Shot
) -> tuple[usage.Snapshot, usage.Snapshot, dict[str, int]]:
    """Take a snapshot at each of the two events."""
    begin = end = None
    memory: dict[str, int] = {}
    messages: list[str] = []
    longest_s = shot.window_s + shot.warmup_s + (shot.load.ramp_s or 0.0) + 2 * shot.timeout_s
    watchdog = threading.Timer(longest_s, process.stop)
    watchdog.start()
    try:
        for line in lines_of(process.stderr):
            event = _event(line)
            if event == "begin":
                begin = usage.Snapshot.take(server, server.service_pids)
            elif event == "end":
                end = usage.Snapshot.take(server, server.service_pids)
                memory = usage.memory(server.pids())
            elif event is None:
                messages.append(line.strip())
    finally:
        watchdog.cancel()
    if begin is None or end is None:
        said = " / ".join(messages[-3:]) or "nothing"
        raise LoadError(f"the load generator did not finish its window; it said: {said}")
    return begin, end, memory


def read_record(path: Path, code: int) -> dict[str, Any]:
    """Read what a generator wrote that ended with ``code``.

    Raises:
        LoadError: It wrote none, or one of another schema.
    """
    try:
        load: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LoadError(
            f"the load generator ended with code {code} and left no record: {error}"
        ) from error
    if load.get("schema") != LOAD_SCHEMA:
        raise LoadError(
            f"the load generator writes schema {load.get('schema')}, this lab reads {LOAD_SCHEMA}"
        )
    return load


def load_command() -> list[str]:
    """Return the load generator's command: that of CITIUS_LOAD, the package's, the checkout's, PATH's.

    Raises:
        LoadError: There is none.
    """
    if named := os.environ.get("CITIUS_LOAD"):
        if shutil.which(named) is None:
            raise LoadError(f"CITIUS_LOAD is {named!r}, which is not a command")
        return [named]
    root = lab_root()
    places = [
        PACKAGE / "bin" / "citius-load",
        root / "load" / "target" / "release" / "citius-load",
    ]
    if built := [place for place in places if place.exists()]:
        return [str(max(built, key=lambda place: place.stat().st_mtime))]
    if found := shutil.which("citius-load"):
        return [found]
    raise LoadError("no load generator: citius-load is not built; `make build` builds it")


def lines_of(stream: IO[bytes]) -> Iterator[str]:
    """Yield the lines of a stream until it ends, also when it is closed underneath."""
    with contextlib.suppress(ValueError, OSError):
        for line in stream:
            yield line.decode(errors="replace")


def _event(line: str) -> str | None:
    with contextlib.suppress(ValueError, AttributeError):
        event: str | None = json.loads(line).get("event")
        return event
    return None


LOAD_SCHEMA = 1
# Longer contents of a mix are files beside it.
INLINE_BYTES_MAX = 4096
# Sent and not counted before every window, whatever the search for the steady state says.
WARMUP_S = 0.15
# Until requests that take a second are under way at every stage of theirs.
BACKGROUND_WARMUP_S = 1.0
# What the fault of a measurement without an answer begins with.
NO_ANSWER = "the server does not answer"
VERIFY_S = 10.0
# The sockets of a server are closed a moment before its end is known.
END_S = 0.2
# What a run that looks for the steady state may leave in a server's queue.
QUEUE_MAX_S = 1.0
# Latencies are kept to three digits.
EARLY = 0.99
# A count that takes longer is cut off there.
COUNT_MAX_S = 15.0
