"""The real generator understands every series of every experiment."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from synthetic import own_experiments

from citius_lab import paths
from citius_lab.definitions import certificate, contestants, wires
from citius_lab.definitions.workloads import contract
from citius_lab.errors import LoadError
from citius_lab.judge import analyse
from citius_lab.measure import drive
from citius_lab.measure.plan import Placement
from citius_lab.processes import launch, usage

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from socketserver import BaseServer

    from citius_lab.definitions.protocols import Series

HERE = Path(__file__).parent
SERIES = {
    f"{one.name}/{series.id}": series for one in own_experiments().values() for series in one.series
}

OWN_CONTESTANTS = {
    wires.WS: "citius-ws",
    wires.RPC_QUIC: "citius-quic",
    wires.WT_STREAMS: "citius-webtransport",
    wires.WT_DATAGRAMS: "citius-webtransport",
}
"""Wires that other contestants of Citius than ``citius`` speak."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[launch.Server]:
    fake = contestants.load([HERE / "contestants"])["fake"]
    log = tmp_path_factory.mktemp("drive") / "log"
    with launch.Server(fake, workers=1, cpus=(), log_path=log) as running:
        yield running


class Greeter(BaseHTTPRequestHandler):
    """Greets a hundred times on a connection, says that it closes it, and does."""

    protocol_version = "HTTP/1.1"
    # Head and body are two segments; Nagle's algorithm would hold the second back for 40 ms.
    disable_nagle_algorithm = True

    def __init__(self, connected: socket.socket, address: str, server: BaseServer) -> None:
        self.left = 100
        super().__init__(connected, address, server)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        (times,) = parse_qs(parts.query)["times"]
        body = json.dumps({"hello": [parts.path.removeprefix("/greet/")] * int(times)}).encode()
        self.left -= 1
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if not self.left:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_a_connection_that_the_server_ends_is_followed_by_another() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Greeter) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            case = contract().cases["greet-varied"]
            found = drive.mix_of(server.server_port, case, random.Random(1), wires.HTTP1)
        finally:
            server.shutdown()
            thread.join()
    assert len(found) == len(case.requests(random.Random(1))) > 100


@pytest.fixture(scope="module")
def driver() -> drive.Driver:
    try:
        command = drive.load_command()
    except LoadError as error:
        pytest.skip(str(error))
    return drive.Driver(command, placement=Placement((0,), ()), random=random.Random(1))


def small(series: Series) -> Series:
    """Return the series with fewer users and requests, so that it takes no time."""
    load = series.load
    few = replace(
        load,
        connections=min(load.connections, 16),
        users=load.users and 60,
        ramp_s=load.ramp_s and 0.1,
        requests=load.requests and 200,
        rate=load.rate and 200.0,
    )
    return replace(series, load=few, connections={})


@pytest.fixture(scope="module")
def citius(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], launch.Server]]:
    """Start Citius, in the manner that a wire takes: the fake speaks HTTP/1.1 alone."""
    found = contestants.load([paths.lab_root() / "contestants"])
    if (reason := found["citius"].missing()) is not None:
        pytest.skip(reason)
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here, which makes the certificate")
    certificate.make(found["citius"].build_root)
    log_path = tmp_path_factory.mktemp("citius") / "log"
    with contextlib.ExitStack() as stack:
        started: dict[str, launch.Server] = {}

        def start(wire: str) -> launch.Server:
            contestant = found[OWN_CONTESTANTS.get(wire, "citius")]
            manner = f"{contestant.name} {contestant.manner_of(wire)}"
            if manner not in started:
                server = launch.Server(
                    contestant,
                    workers=1,
                    cpus=(),
                    log_path=log_path,
                    manner=contestant.manner_of(wire),
                )
                started[manner] = stack.enter_context(server)
            return started[manner]

        yield start


@pytest.mark.parametrize("name", SERIES)
def test_every_series_is_understood(
    name: str,
    server: launch.Server,
    citius: Callable[[str], launch.Server],
    driver: drive.Driver,
) -> None:
    series = small(SERIES[name])
    if series.load.wire != wires.HTTP1:
        server = citius(series.load.wire)
    id = "hello"
    if series.load.ws:  # those that the contestant of WebSockets has
        own = [
            case
            for case in series.cases
            if contract().cases[case].workload in ("echo", "broadcast")
        ]
        id = (own or ["echo-16"])[0]
    if series.load.wt:
        id = series.cases[0]
    case = replace(contract().cases[id], connections=8)
    rate = 500.0 if series.load.fraction is not None else None
    load: dict[str, Any] = {}
    for window_s in (0.2, 2.0, 20.0):  # on a busy machine the first ones may be too short
        shot = drive.Shot.of(series, case, window_s=window_s, warmup_s=0.05, rate=rate)
        fields = driver.measure(server, shot)
        assert fields["fault"] is None
        load = fields["load"]
        if load["completed"]:
            break
    assert load["completed"] > 0
    options = load["options"]
    assert options["pace"] == series.load.pace
    assert options["pipeline"] == series.load.depth
    if series.load.users is None:
        assert options["keepalive"] == series.load.keep_alive
        assert options["connections"] == shot.connections
    if series.load.requests:
        assert load["completed"] == series.load.requests
    if series.load.is_open:
        assert load["schedule_lag_us"]["p99"] is not None
    assert fields["usage"]["server_cpu_s"] > 0
    assert fields["memory"]["pss_peak_kib"] >= fields["memory"]["pss_kib"] > 1000
    assert fields["net"]["listen_overflows"] >= 0  # of all servers of the machine
    assert fields["checked"] == ["before", "during", "after"]


def test_the_generators_cost_and_the_servers_are_told_apart(
    server: launch.Server, driver: drive.Driver
) -> None:
    shot = drive.Shot.of(
        SERIES["open/rate-2000"],
        replace(contract().cases["hello"], connections=8),
        window_s=0.5,
        warmup_s=0.1,
        rate=None,
    )
    fields = driver.measure(server, shot)
    cost = fields["usage"]
    assert 0 < cost["server_cpu_s"] < cost["elapsed_s"]
    assert 0 < cost["generator_cpu_s"] < cost["elapsed_s"]
    assert analyse.cpu_us(fields) == pytest.approx(
        cost["server_cpu_s"] * 1e6 / fields["load"]["completed"], rel=0.2
    )


def test_a_server_that_is_gone_is_said(driver: drive.Driver, tmp_path: Path) -> None:
    fake = contestants.load([HERE / "contestants"])["fake"]
    with launch.Server(fake, workers=1, cpus=(), log_path=tmp_path / "log") as running:
        pass
    shot = drive.Shot.of(
        SERIES["quick/closed"], contract().cases["hello"], window_s=0.2, warmup_s=0, rate=None
    )
    with pytest.raises(LoadError, match="nothing reachable"):
        driver.drive(running, shot, b"Welcome!\n")


@pytest.mark.parametrize(
    ("case", "first_us", "is_early"),
    [
        ("async", 300.0, True),
        ("async", 999.4, False),
        ("async", 2100.0, False),
        ("async", None, False),  # nothing was answered
        ("hello", 10.0, False),
    ],
)
def test_a_sleep_that_is_left_out_under_load_is_seen(
    case: str, first_us: float | None, is_early: bool
) -> None:
    """A contestant may sleep while it is asked alone, and not when many connections are open."""
    found = drive.too_early(contract().cases[case], {"latency_us": {"min": first_us}})
    assert (found is not None) is is_early


def test_network_counters_are_found_and_only_grow() -> None:
    first = usage.network()
    assert {"listen_overflows", "listen_drops"} <= set(first)
    assert all(grown >= 0 for grown in usage.network_between(first, usage.network()).values())
