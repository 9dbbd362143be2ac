"""Whatever an application can break comes back by itself (issue 32, F3; hostile 3).

Each thing is used, broken, and used again until it works, in a server that is not restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from pg_rig import Server as Postgres
from pg_rig import find_binaries
from redis_rig import SERVER
from redis_rig import Server as Redis
from rig import PLAIN, Peer, Server, application, wait_for

BREAKABLE = [
    "processes", "stuck", "forker", "threads", "standard", "postgres", "redis", "sqlite", "template",
    "deferred", "cache", "room", "log", "worker", "lifespan", "sync", "loop",
]  # fmt: skip


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., Server]
) -> Iterator[Server]:
    binaries = find_binaries()
    if binaries is None or SERVER is None:
        pytest.skip("PostgreSQL or redis-server is not installed")
    here = tmp_path_factory.mktemp("breakable")
    (here / "templates").mkdir()
    (here / "templates/page").write_text("page")
    database, store = Postgres(binaries), Redis(listens=True)
    try:
        database.start()
        store.start()
        environment = {"DSN": database.dsn, "REDIS": store.url, "HERE": str(here)}
        yield serve_module(
            application("breakable_app"), "--workers", "2", env={**PLAIN, **environment}
        )
    finally:
        database.remove()
        store.remove()


def works(server: Server, name: str) -> bool:
    return works_at(server, f"/use/{name}")


def works_at(server: Server, path: str) -> bool:
    with suppress(OSError, EOFError):
        return server.get(path).status == 200
    return False


@pytest.mark.parametrize("name", BREAKABLE)
def test_what_is_broken_comes_back(served: Server, name: str, tmp_path: Path) -> None:
    wait_for(lambda: works(served, name), f"{name} works")
    for _ in range(3):
        with suppress(OSError, EOFError):
            reply = served.get(f"/break/{name}?how=exit&path={tmp_path / 'begun'}")
            assert reply.status not in (404, 422)
        wait_for(lambda: works(served, name), f"{name} works again")
    # And it does so for others than the first, on both workers.
    wait_for(lambda: all(works(served, name) for _ in range(6)), f"{name} works everywhere")


def follower(server: Server) -> tuple[str, Peer]:
    """A stream of events, and the worker that serves it."""
    peer = server.connect()
    peer.send(b"GET /follow HTTP/1.1\r\nHost: a\r\n\r\n")
    head = peer.read_until(b"\r\n\r\n").decode().lower()
    return head.partition("x-worker: ")[2].split()[0], peer


def test_broadcasts_reach_the_other_worker_whatever_a_room_raises(served: Server) -> None:
    """The thread that reads messages of other workers had ended for good with an ``on_gap`` that raised."""
    with ExitStack() as stack:
        peers: dict[str, Peer] = {}

        def are_both_followed() -> bool:
            worker, peer = follower(served)
            stack.enter_context(peer)
            return len(peers | {peers.setdefault(worker, peer) and worker: peer}) == 2

        wait_for(are_both_followed, "streams of both workers")
        for number in range(1, 6):
            wait_for(lambda: int(served.get(f"/lose?size={32 << 20}").body), "a loss")
            assert served.get(f"/send?n={number}").status == 200
            for peer in peers.values():
                peer.read_until(f"data: {number}\n".encode())
    served.wait_for_log("a room or a broadcast failed at a message of another worker")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("hooks", ["sys", "threading"])
def test_threads_start_without_the_hooks_of_the_interpreter(
    serve: Callable[..., Server], hooks: str, workers: str
) -> None:
    """F3: ``sys.excepthook = None`` made blocking handlers 500, and the stop a failure without its hooks."""
    server = serve(
        f"import sys, threading\n@app.get('/break')\ndef clear(): {hooks}.excepthook = None\n"
        "@app.get('/', blocking=True)\ndef use(): return 'used'\n"
        "@app.on_shutdown\ndef down(): print('down', flush=True)\n",
        "--workers", workers,
    )  # fmt: skip
    for _ in range(4):
        served = [server.get(path).status for path in ("/break", "/", "/break")]
        assert served == [204, 200, 204]
    assert server.stop() == 0
    assert server.out.count("down") == int(workers)
    assert "Traceback" not in server.err


GROUPS = ("asyncio", "anyio")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_task_group_of_a_lifespan_that_fails_ends_its_worker(
    serve: Callable[..., Server], group: str, workers: str
) -> None:
    """F3: it was told at the stop only, and anyio kept the processor busy from then on."""
    app = application("lifespan_groups_app")
    server = serve(app, "--workers", workers, env={**PLAIN, "GROUP": group})
    assert server.get("/fail").body == b"served"
    server.wait_for_log("a task group of the lifespan has ended while the application serves")
    server.wait_for_log("RuntimeError: of the lifespan")
    if workers == "1":
        assert server.wait() == 4
        return
    server.wait_for_log(r"worker \d+ ended with code 4; replacing it")
    assert server.get("/nowhere").status == 404
    assert server.stop() == 0


@pytest.mark.parametrize("group", GROUPS)
def test_an_application_that_cancels_all_tasks_does_not_mean_lifespans(
    serve: Callable[..., Server], group: str
) -> None:
    server = serve(application("lifespan_groups_app"), env={**PLAIN, "GROUP": group})
    with suppress(OSError, EOFError):
        server.get("/cancel")
    assert server.get("/nowhere").status == 404
    assert server.stop() == 0
    assert server.out.count("left\n") == 1
    assert "a task group" not in server.err


def test_the_list_is_that_of_the_application() -> None:
    source = Path(application("breakable_app")).read_text()
    named = {
        line.split('"')[1] for line in source.splitlines() if line.startswith('@app.get("/break/')
    }
    assert {one.removeprefix("/break/") for one in named} <= set(BREAKABLE)
