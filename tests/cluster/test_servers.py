"""Two servers that are one service by way of an engine, and several workers by way of none."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from citius import App, ConfigError
from citius.cluster import Cluster
from citius.redis import Redis as OwnClient
from citius.testing import Client
from engines_rig import REDIS_KINDS, Nats, Redis, certificates, redis_over_tls
from rig import Server, application, wait_for
from wspeer import RawSocket

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

APP = application("cluster_app")
Serve = Callable[..., Server]


@pytest.fixture
def redis(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Redis]:
    made: Redis = getattr(request, "param", Redis)(tmp_path / "redis")
    yield made
    made.close()


@pytest.fixture
def nodes(serve: Serve, redis: Redis) -> list[Server]:
    return [serve(APP, env={"CLUSTER": redis.url, "CLUSTER_SECRET": "s3cret"}) for _ in range(2)]


def post(server: Server, path: str, body: str = "") -> None:
    with server.connect() as peer:
        assert peer.request("POST", path, body.encode()).status in (200, 204)


class Follower:
    """A stream of events."""

    def __init__(self, server: Server, known: str = "") -> None:
        self.peer = server.connect()
        said = f"Last-Event-ID: {known}\r\n" if known else ""
        self.peer.send(f"GET /news HTTP/1.1\r\nHost: a\r\n{said}\r\n".encode())
        self.peer.read_until(b"\r\n\r\n")
        self.last_id = known

    def next(self) -> str:
        lines = self.peer.read_until(b"\n\n").decode().split("\n")
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        for line in lines:
            if line.startswith("id: "):
                self.last_id = line.removeprefix("id: ")
        return data[0] if data else self.next()


def test_rooms_reach_members_on_all_nodes(nodes: list[Server]) -> None:
    one, two, three = (RawSocket(nodes[n], "/lobby").accepted() for n in (0, 1, 1))
    one.text("hello")
    assert two.message() == three.message() == "hello"
    for number in range(50):
        two.text(str(number))
    # The sender is left out.
    assert [one.message() for _ in range(50)] == [str(number) for number in range(50)]
    assert [three.message() for _ in range(50)] == [str(number) for number in range(50)]
    one.text("last")
    assert two.message() == "last"


def test_a_member_resumes_on_another_node(nodes: list[Server]) -> None:
    one, two = (RawSocket(node, "/log").accepted() for node in nodes)
    sent = [f"message-{number}" for number in range(20)]
    for text in sent[:10]:
        one.text(text)
    got = [str(two.message()).partition("\n") for _ in range(10)]
    assert [text for _, _, text in got] == sent[:10]
    last = got[4][0]
    two.peer.close()
    for text in sent[10:]:
        one.text(text)
    for _ in range(20):
        one.message()
    again = RawSocket(nodes[0], f"/log?after={last}").accepted()
    assert [str(again.message()).partition("\n")[2] for _ in range(15)] == sent[5:]
    elsewhere = RawSocket(nodes[1], f"/log?after={last}").accepted()
    assert [str(elsewhere.message()).partition("\n")[2] for _ in range(15)] == sent[5:]
    one.text("new")
    assert str(again.message()).endswith("\nnew")
    assert str(elsewhere.message()).endswith("\nnew")


def test_events_resume_on_another_node_and_on_one_that_begins_later(
    nodes: list[Server], serve: Serve, redis: Redis
) -> None:
    follower = Follower(nodes[0])
    for number in range(10):
        post(nodes[number % 2], "/news", str(number))
    assert sorted(follower.next() for _ in range(4)) != []
    known = follower.last_id
    rest = [follower.next() for _ in range(6)]
    elsewhere = Follower(nodes[1], known)
    assert [elsewhere.next() for _ in range(6)] == rest
    late = serve(APP, env={"CLUSTER": redis.url, "CLUSTER_SECRET": "s3cret"})
    later = Follower(late, known)
    assert [later.next() for _ in range(6)] == rest
    post(late, "/news", "new")
    assert follower.next() == elsewhere.next() == later.next() == "new"
    assert follower.last_id == elsewhere.last_id == later.last_id


def _everything_is_shared(nodes: list[Server]) -> None:
    """Of several nodes, or of one server with several workers."""
    with ThreadPoolExecutor(8) as pool:
        cached = set(pool.map(lambda n: nodes[n % len(nodes)].get("/cached/a").body, range(40)))
        assert len(cached) == 1
        post(nodes[0], "/invalidate")
        again = set(pool.map(lambda n: nodes[n % len(nodes)].get("/cached/a").body, range(40)))
        assert len(again) == 1
        assert cached != again
        fences = list(pool.map(lambda n: int(nodes[n % len(nodes)].get("/once").body), range(30)))
        assert len(set(fences)) == 30
    cookie = nodes[0].get("/count").headers["set-cookie"].partition(";")[0]
    counts = [nodes[n % len(nodes)].get("/count", cookie=cookie).body for n in range(10)]
    assert counts == [b"%d" % n for n in range(2, 12)]
    ann = RawSocket(nodes[0], "/lobby?name=ann").accepted()
    bob = RawSocket(nodes[-1], "/lobby?name=bob").accepted()
    for node in nodes * 4:
        wait_for(lambda node=node: json.loads(node.get("/online").body) == ["ann", "bob"], "both")
    bob.peer.close()
    for node in nodes * 4:
        wait_for(lambda node=node: json.loads(node.get("/online").body) == ["ann"], "one")
    ann.peer.close()


@pytest.mark.parametrize(
    "redis", REDIS_KINDS, indirect=True, ids=lambda kind: kind.__name__.lower()
)
def test_everything_is_shared_over_redis(nodes: list[Server]) -> None:
    _everything_is_shared(nodes)


@pytest.fixture
def own_nodes(serve: Serve, redis: Redis) -> list[Server]:
    """Nodes whose cluster is given a client of citius.redis."""
    return [serve(APP, env={"CLUSTER": redis.url, "OWN_CLIENT": "1"}) for _ in range(2)]


def test_everything_is_shared_over_a_client_of_citius_redis(own_nodes: list[Server]) -> None:
    _everything_is_shared(own_nodes)


def test_rooms_and_events_go_over_a_client_of_citius_redis(own_nodes: list[Server]) -> None:
    test_rooms_reach_members_on_all_nodes(own_nodes)
    test_a_member_resumes_on_another_node(own_nodes)


def test_a_service_on_a_client_of_citius_redis_goes_on_while_redis_is_away(
    own_nodes: list[Server], redis: Redis
) -> None:
    test_a_service_goes_on_while_redis_is_away(own_nodes, redis)


def test_a_node_on_a_client_of_citius_redis_starts_without_its_engine(
    serve: Serve, redis: Redis
) -> None:
    test_a_node_starts_without_its_engine(serve, redis, OWN_CLIENT="1")


def test_handlers_use_the_client_of_their_cluster_each_time_that_it_starts(redis: Redis) -> None:
    own = OwnClient(redis.url)
    app = App(cluster=Cluster(own))
    room = app.room("lobby")

    @app.post("/count")
    async def count() -> int:
        room.send("counted")
        return await own.incr("count")

    for number in (1, 2):
        assert not own.is_open
        with Client(app) as client:
            assert client.post("/count").json() == number
            assert own.is_open
    assert not own.is_open


def test_a_client_that_decodes_is_refused() -> None:
    with pytest.raises(ConfigError, match="decode_responses"):
        Cluster(OwnClient("redis://localhost", decode_responses=True))  # type: ignore[arg-type]


def test_everything_is_shared_over_tls_by_those_that_know_the_authority(
    serve: Serve, tmp_path: Path
) -> None:
    files = certificates(tmp_path)
    engine, port = redis_over_tls(tmp_path / "redis", files, "--requirepass", "hunter2")

    def node(authority: str) -> Server:
        url = f"rediss://:hunter2@localhost:{port}?ssl_ca_certs={files[authority]}"
        return serve(APP, env={"CLUSTER": url})

    try:
        nodes = [node("ca"), node("ca")]
        one, two = (RawSocket(each, "/lobby").accepted() for each in nodes)
        one.text("hello")
        assert two.message() == "hello"
        for socket in (one, two):  # a stop would wait for them
            socket.peer.close()
        _everything_is_shared(nodes)
        stranger = node("other")
        assert stranger.get("/count").status == 503
        wait_for(lambda: "certificate" in stranger.err, "the reason")
        assert not json.loads(stranger.get("/stats").body)["is_connected"]
        _expect_no_credentials(*nodes, stranger)
    finally:
        engine.close()


def test_everything_is_shared_by_the_workers_of_one_machine(serve: Serve) -> None:
    """Without an engine."""
    _everything_is_shared([serve(APP, "--workers", "3")])


def test_members_of_a_node_that_is_killed_vanish(nodes: list[Server]) -> None:
    RawSocket(nodes[0], "/lobby?name=ann").accepted()
    RawSocket(nodes[1], "/lobby?name=bob").accepted()
    wait_for(lambda: json.loads(nodes[1].get("/online").body) == ["ann", "bob"], "both")
    nodes[0].process.kill()
    wait_for(lambda: json.loads(nodes[1].get("/online").body) == ["bob"], "one")


def test_a_service_goes_on_while_redis_is_away(nodes: list[Server], redis: Redis) -> None:
    one, two = (RawSocket(node, "/lobby").accepted() for node in nodes)
    one.text("1")
    assert two.message() == "1"
    redis.kill()
    one.text("2")
    for node in nodes:
        assert node.get("/cached/x").status == 200
        assert node.get("/limited").status == 200
        assert node.get("/online").status == 200
        assert node.get("/count").status == 503
    redis.empty()
    redis.start()
    one.text("3")
    assert two.message() == "2"
    assert two.message() == "3"
    wait_for(lambda: all(node.get("/count").status == 200 for node in nodes), "sessions")
    for socket in (one, two):  # a stop would wait for them
        socket.peer.close()
    for node in nodes:
        node.process.terminate()
        node.process.wait(20)
        assert "s3cret" not in node.err


def test_a_node_starts_without_its_engine(serve: Serve, redis: Redis, **env: str) -> None:
    redis.kill()
    node = serve(APP, env={"CLUSTER": redis.url, **env})
    assert node.get("/limited").status == 200
    socket = RawSocket(node, "/lobby?name=a").accepted()
    socket.text("late")
    redis.start()
    assert socket.message() == "late"
    assert json.loads(node.get("/stats").body)["is_connected"]


def _expect_no_credentials(*nodes: Server) -> None:
    """End servers, and look through all that they have logged."""
    for node in nodes:
        node.process.terminate()
        node.process.wait(20)
        assert "hunter2" not in node.err
        assert "letmein" not in node.err


def test_credentials_are_in_no_log(serve: Serve, tmp_path: Path) -> None:
    redis = Redis(tmp_path / "locked", "--requirepass", "hunter2")
    try:
        right = serve(APP, env={"CLUSTER": f"unix://:hunter2@{redis.path}"})
        assert right.get("/cached/a").status == 200
        wrong = serve(APP, env={"CLUSTER": f"unix://:letmein@{redis.path}"})
        assert wrong.get("/cached/a").status == 200
        assert wrong.get("/count").status == 503
        wait_for(lambda: "WRONGPASS" in wrong.err or "invalid username" in wrong.err, "a refusal")
        redis.kill()
        assert right.get("/count").status == 503
        _expect_no_credentials(right, wrong)
    finally:
        redis.close()


@pytest.mark.skipif(Nats.program() is None, reason="nats-server is not installed")
def test_credentials_of_nats_are_in_no_log(serve: Serve, tmp_path: Path) -> None:
    nats = Nats(tmp_path / "locked", "--user", "bob", "--pass", "hunter2")
    address = f"127.0.0.1:{nats.port}"
    try:
        right = serve(APP, env={"CLUSTER_MESSAGES": f"nats://bob:hunter2@{address}"})
        socket = RawSocket(right, "/lobby?name=a").accepted()
        socket.text("hello")
        assert socket.message() == "hello"
        wrong = serve(APP, env={"CLUSTER_MESSAGES": f"nats://bob:letmein@{address}"})
        wait_for(lambda: "the engine does not serve" in wrong.err, "a refusal")
        assert not json.loads(wrong.get("/stats").body)["is_connected"]
        nats.kill()
        wait_for(lambda: "the engine does not serve" in right.err, "the outage")
        _expect_no_credentials(right, wrong)
    finally:
        nats.close()


def test_metrics_say_how_the_cluster_is(serve: Serve, redis: Redis) -> None:
    node = serve(APP, "--management", "127.0.0.1:0", env={"CLUSTER": redis.url})
    one = RawSocket(node, "/lobby?name=a").accepted()
    one.text("hello")
    assert one.message() == "hello"

    def metrics() -> dict[str, str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{node.management()}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line.startswith("citius_cluster_"))

    wait_for(lambda: metrics().get('citius_cluster_messages_sent{worker="0"}') == "1", "a message")
    assert metrics()['citius_cluster_connected{worker="0"}'] == "1"
    redis.kill()
    wait_for(lambda: metrics()['citius_cluster_connected{worker="0"}'] == "0", "the outage")
    assert metrics()['citius_cluster_outages{worker="0"}'] == "1"
    for path in ("/count", "/limited", "/cached/a", "/online"):
        node.get(path)
    away = 'citius_cluster_seams_away{worker="0"}'
    wait_for(lambda: metrics()[away] == "4", "sessions, limits, the cache and the topic")
    assert metrics()['citius_cluster_seam_outages{worker="0"}'] == "4"
    redis.start()

    def is_over() -> bool:
        for path in ("/count", "/limited", "/cached/a", "/online"):
            node.get(path)
        return metrics()[away] == "0"

    wait_for(is_over, "the end of the outage")
    assert metrics()['citius_cluster_seam_outages{worker="0"}'] == "4"


def test_a_worker_without_a_cluster_imports_nothing_of_it(serve: Serve) -> None:
    assert serve(application("without_cluster_app"), "--workers", "2").get("/").body == b"[]"
