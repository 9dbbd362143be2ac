"""What a body breaks is replaced, and what is given up is freed (hostile 3, scale S12)."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import tempfile
import termios
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from applications.executor_bodies import end
from citius import App
from citius.testing import Client
from citius.web.execution.executor_pools import ProcessPool
from citius.web.execution.foreign_executors import reports_directory
from rig import PLAIN, TIMEOUT_S, Server, application, wait_for

APP = application("recovery_app")
Serve = Callable[..., Server]


def pid_of(server: Server, name: str) -> int:
    return int(json.loads(server.get(f"/{name}/where/1").body)["pid"])


def is_alive(pid: int) -> bool:
    """Whether a thread of a process runs; the first one may end before another one."""
    try:
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return False
    return any(text.rpartition(")")[2].split()[0] != "Z" for text in texts)


def leave_waiting(server: Server, path: str, marks: list[Path], go: Path) -> None:
    """Ask for calls of which the first runs, and leave when all have been asked for."""
    peers = [server.connect() for _ in marks]
    for peer, mark in zip(peers, marks, strict=True):
        peer.send(
            f"GET {path}?path={quote(str(mark))}&go={quote(str(go))} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        )
        if mark is marks[0]:
            wait_for(mark.exists, "the first call")
    waiting = f"/waiting/{path.split('/')[1]}"
    wait_for(lambda: int(server.get(waiting).body) == len(marks) - 1, "the others")
    for peer in peers[1:]:
        peer.close()
    wait_for(lambda: int(server.get(waiting).body) == 0, "that they are given up")
    go.touch()
    peers[0].read_until(b"there")
    peers[0].close()


def test_what_killed_workers_leave_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hostile 3: directories of sockets on which processes report."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as served:
        killed, alive, made = (Path(reports_directory()) for _ in range(3))
        served.bind(str(alive / "reports"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(str(killed / "reports"))
        last = Path(reports_directory())
    assert set(tmp_path.iterdir()) == {alive, made, last}


@pytest.mark.parametrize("how", ["exit", "SIGSEGV", "SIGKILL"])
def test_a_process_that_dies_fails_its_call_and_is_replaced(serve: Serve, how: str) -> None:
    server = serve(APP, "--health", "/-")
    for _ in range(3):
        assert server.get(f"/processes/crash/{how}").status == 503
        assert [server.get("/processes/where/1").status for _ in range(6)] == [200] * 6
    reason = "has ended with exit code 9" if how == "exit" else f"was ended by {how}"
    server.wait_for_log(rf"crash\b.* on 'processes': its process \d+ {reason} and is replaced", 3)
    wait_for(lambda: server.get("/-/ready").status == 200, "readiness")


@pytest.mark.parametrize("how", ["StopIteration", "Ended"])
@pytest.mark.parametrize("kind", ["threads", "processes", "of the standard library"])
def test_a_body_that_raises_stop_iteration_has_failed(kind: str, how: str) -> None:
    """Its call waited for its deadline, or the value of the exception was the result."""
    app = App()
    if kind == "of the standard library":
        app.executor("one", lambda: ThreadPoolExecutor(1))
    else:
        app.executor("one", **{kind: 1})  # pyright: ignore[reportArgumentType]
    app.get("/end/{how}", executor="one")(end)
    app.get("/pid", executor="one")(os.getpid)
    with Client(app) as client:
        with pytest.raises(RuntimeError, match="StopIteration") as raised:
            client.get(f"/end/{how}")
        assert type(raised.value.__cause__).__name__ == how
        assert client.get("/pid").status_code == 200


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_process_that_is_killed_between_calls_fails_none(serve: Serve, is_awaited: bool) -> None:
    server = serve(APP)
    for _ in range(10):
        pid = pid_of(server, "one")
        os.kill(pid, signal.SIGKILL)
        if is_awaited:
            wait_for(lambda pid=pid: not is_alive(pid), "its end")
        assert pid_of(server, "one") != pid


def test_a_call_that_was_sent_and_not_read_is_run_by_another_process() -> None:
    pool = ProcessPool("one", 1)
    pool.start()
    try:
        pid = pool.submit(os.getpid).result(TIMEOUT_S)
        os.kill(pid, signal.SIGSTOP)
        (seat,) = pool._seats
        connection: Any = seat._connection  # type: ignore[attr-defined]
        second = pool.submit(os.getpid)

        def is_sent() -> bool:
            return fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)) != bytes(4)

        wait_for(is_sent, "the call in the socket")
        os.kill(pid, signal.SIGKILL)
        assert second.result(TIMEOUT_S) != pid
    finally:
        pool.shutdown()


def test_a_body_that_forks_sends_one_result(serve: Serve) -> None:
    """Hostile 3: that of the child would be taken for the result of the next call."""
    server = serve(APP)
    for number in range(0, 40, 2):
        assert server.get(f"/one/fork/{number}").body == str(number).encode()
        assert json.loads(server.get(f"/one/where/{number + 1}").body)["n"] == number + 1
    server.wait_for_log("a forked child ended .*: its function returned", 20)


@pytest.mark.parametrize("how", ["fork-and-hold", "fork-unseen-and-hold"])
def test_a_child_of_a_body_keeps_no_dead_process(serve: Serve, tmp_path: Path, how: str) -> None:
    """Hostile 3: the child has a copy of all that its parent had open."""
    server = serve(APP)
    try:
        for _ in range(3):
            pid = int(server.get(f"/one/{how}?go={tmp_path}/go").body)
            os.kill(pid, signal.SIGKILL)
            # A call that was sent before the process is known to have ended is lost with it.
            wait_for(lambda: server.get("/one/where/1").status == 200, "another process")
            assert pid_of(server, "one") != pid
    finally:
        (tmp_path / "go").touch()


def test_a_stopped_process_is_replaced(serve: Serve) -> None:
    server = serve(APP, "--health", "/-")
    assert server.get("/hasty/crash/SIGSTOP").status == 503
    server.wait_for_log(
        r"crash\b.* ran past its deadline; its process \d+ was ended and is replaced"
    )
    wait_for(lambda: server.get("/hasty/where/1").status == 200, "another process")
    assert [server.get("/hasty/where/1").status for _ in range(4)] == [200] * 4
    wait_for(lambda: server.get("/-/ready").status == 200, "readiness")


def test_a_stopped_forker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citius.web.execution.forker._FORK_S", 2.0)
    monkeypatch.setattr("citius.web.execution.forker._END_S", 0.2)
    pool = ProcessPool("one", 1)
    pool.start()
    try:
        pid = pool.submit(os.getpid).result(TIMEOUT_S)
        forker: Any = pool._forker
        os.kill(forker.pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_alive(pid), "its end")
        assert pool.submit(os.getpid).result(TIMEOUT_S) != pid
        assert pool._forker is not forker
    finally:
        pool.shutdown()


def test_the_process_that_forks_comes_back(serve: Serve) -> None:
    server = serve(APP)
    before, forker = pid_of(server, "one"), int(server.get("/forker/one").body)
    for pid in (forker, before):
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: not is_alive(pid), "its end")
    assert pid_of(server, "one") != before
    assert int(server.get("/forker/one").body) != forker
    server.wait_for_log("it is started again")


def test_a_call_past_its_deadline_loses_its_process(serve: Serve, tmp_path: Path) -> None:
    """Two bodies that loop for ever do not take the route away (hostile 3)."""
    server = serve(APP, "--health", "/-")
    before = {pid_of(server, "hasty") for _ in range(10)}
    with ThreadPoolExecutor(2) as pool:
        paths = [f"/hasty/loop?path={tmp_path}/{number}" for number in range(2)]
        assert [reply.status for reply in pool.map(server.get, paths)] == [503, 503]
    server.wait_for_log(
        r"loop\b.* ran past its deadline; its process \d+ was ended and is replaced", 2
    )
    wait_for(lambda: server.get("/hasty/where/1").status == 200, "another process")
    assert [server.get("/hasty/where/1").status for _ in range(4)] == [200] * 4
    for pid in before:
        wait_for(lambda pid=pid: not is_alive(pid), "its end")
    wait_for(lambda: server.get("/-/ready").status == 200, "readiness")


def test_a_call_whose_client_has_left_loses_its_process_at_the_deadline(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(APP, env={**PLAIN, "DEADLINE_S": "2"})
    pid = pid_of(server, "one")
    with server.connect() as peer:
        peer.send(f"GET /one/loop?path={tmp_path}/a HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for((tmp_path / "a").exists, "the body")
    wait_for(lambda: not is_alive(pid), "its end")
    assert server.get("/one/where/1").status == 200


def test_threads_that_are_stuck_are_followed_by_others(serve: Serve, tmp_path: Path) -> None:
    server = serve(APP, "--health", "/-")
    go = tmp_path / "go"
    for number in range(4):
        assert server.get("/stuck/where/1").status == 200
        assert server.get(f"/stuck/hold?path={tmp_path}/{number}&go={go}").status == 503
        text = r"hold \(.*\) still runs on 'stuck' .* so another one takes its place"
        server.wait_for_log(text, number + 1)
    # As many as may be open at once: nothing is left for others, and the worker says so.
    wait_for(lambda: server.get("/-/ready").status == 503, "that it is not ready")
    assert server.get("/stuck/where/1").status == 503
    go.touch()
    wait_for(lambda: server.get("/stuck/where/1").status == 200, "a thread")
    wait_for(lambda: server.get("/-/ready").status == 200, "readiness")


needs_interpreters = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="sub-interpreters come with CPython 3.14"
)


def interpreters_that_meet(server: Server, tmp_path: Path, mark: str) -> list[int]:
    """The interpreters of two calls that run at the same time."""
    paths = [tmp_path / f"{mark}{number}" for number in range(2)]
    with ThreadPoolExecutor(2) as pool:
        urls = [
            f"/interpreters/meet?own={own}&other={other}" for own, other in (paths, paths[::-1])
        ]
        replies = list(pool.map(server.get, urls))
    assert [reply.status for reply in replies] == [200, 200]
    return [int(reply.body) for reply in replies]


@needs_interpreters
def test_interpreters_that_are_stuck_are_followed_by_others(serve: Serve, tmp_path: Path) -> None:
    """Nothing ends an interpreter that runs; once its body is done it counts again."""
    server = serve(APP, "--health", "/-")
    before = set(interpreters_that_meet(server, tmp_path, "before"))
    go = tmp_path / "go"
    for number in range(2):
        assert server.get(f"/interpreters/hold?path={tmp_path}/{number}&go={go}").status == 503
    wait_for(lambda: server.get("/size/interpreters").body == b"4", "two more")
    after = set(interpreters_that_meet(server, tmp_path, "after"))
    assert not before & after
    assert server.get("/-/ready").status == 200
    go.touch()
    wait_for(lambda: server.get("/size/interpreters").body == b"2", "that they count again")


@needs_interpreters
def test_an_interpreter_that_was_closed_is_replaced(serve: Serve, tmp_path: Path) -> None:
    """Its thread would fail every call from then on."""
    server = serve(APP, "--health", "/-")
    interpreters_that_meet(server, tmp_path, "before")
    assert server.get("/interpreters/close").body == b"1"
    wait_for(lambda: server.get("/interpreters/where/1").status == 503, "a call of its thread")
    server.wait_for_log("'interpreters' is broken: .*it is made again")
    wait_for(lambda: server.get("/interpreters/where/1").status == 200, "another one")
    assert [server.get("/interpreters/where/1").status for _ in range(8)] == [200] * 8
    assert len(set(interpreters_that_meet(server, tmp_path, "after"))) == 2
    wait_for(lambda: server.get("/-/ready").status == 200, "readiness")


@pytest.mark.parametrize("name", ["one", "threads"])
def test_calls_whose_clients_have_left_never_begin(serve: Serve, name: str, tmp_path: Path) -> None:
    """The standard library's pool begins one more than it has processes (scale S12)."""
    server = serve(APP)
    assert server.get(f"/{name}/where/1").status == 200
    threads = 2 if name == "threads" else 1
    go = tmp_path / "go"
    held = [tmp_path / f"held{number}" for number in range(threads - 1)]
    with ThreadPoolExecutor(1) as pool:
        first = [pool.submit(server.get, f"/{name}/hold?path={mark}&go={go}") for mark in held]
        for mark in held:
            wait_for(mark.exists, "the call that holds a thread")
        marks = [tmp_path / f"mark{number}" for number in range(3)]
        leave_waiting(server, f"/{name}/hold", marks, go)
        assert [one.result().status for one in first] in ([], [200])
    assert server.get(f"/{name}/where/1").status == 200
    assert [mark.exists() for mark in marks] == [True, False, False]


def test_calls_that_were_given_up_never_begin(serve: Serve, tmp_path: Path) -> None:
    """After their 503 they are not begun (scale S12)."""
    server = serve(APP, env={**PLAIN, "DEADLINE_S": "2"})
    wait_for(lambda: server.get("/one/where/1").status == 200, "its process")
    go, marks = tmp_path / "go", [tmp_path / f"mark{number}" for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        paths = [f"/one/hold?path={mark}&go={go}" for mark in marks]
        assert [reply.status for reply in pool.map(server.get, paths)] == [503] * 4
    wait_for(lambda: server.get("/one/where/1").status == 200, "another process")
    assert sum(mark.exists() for mark in marks) == 1


def test_executors_of_the_standard_library(serve: Serve) -> None:
    """One that a function makes is made again; one that was given as an object is named by readiness."""
    server = serve(APP, "--health", "/-", env={**PLAIN, "STANDARD": "1"})
    assert server.get("/made/crash/exit").status == 503
    wait_for(lambda: server.get("/made/where/1").status == 200, "another one")
    wait_for(lambda: server.get("/-/ready").status == 200, "readiness")
    assert server.get("/given/crash/exit").status == 503
    assert server.get("/given/where/1").status == 503
    wait_for(lambda: server.get("/-/ready").status == 503, "that it is not ready")
    server.wait_for_log("'given' is broken: .* takes a function that makes it")


def test_an_executor_without_a_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App()
    app.executor("x", processes=1)

    @app.get("/", executor="x")
    def index() -> str:
        raise AssertionError

    def fork(self: ProcessPool) -> object:
        raise OSError("no processes today")

    monkeypatch.setattr(ProcessPool, "fork", fork)
    with Client(app) as client:
        wait_for(lambda: client.get("/").status_code == 503, "the failure")
        wait_for(lambda: "no processes today" in client.get("/").text, "the reason")


def test_processes_end_with_their_worker(serve: Serve, tmp_path: Path) -> None:
    server = serve(APP)
    pids = {pid_of(server, name) for name in ("processes", "one")}
    with server.connect() as peer:
        peer.send(f"GET /one/loop?path={tmp_path}/a HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for((tmp_path / "a").exists, "the body")
        forker = int(server.get("/forker/one").body)
        server.process.kill()
        for pid in (*pids, forker):
            wait_for(lambda pid=pid: not is_alive(pid), "the end of all")
