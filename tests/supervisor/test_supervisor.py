"""Workers come, go, are killed and replaced; clients should not notice."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from rig import Server, application, children, is_alive, pids, request, wait_for

APP = application("processes_app").read_text()


@pytest.fixture
def server(serve) -> Server:
    return serve(APP, "--workers", "2", "--no-access-log")


def test_all_workers_serve_and_none_is_the_supervisor(server: Server) -> None:
    assert pids(server) == set(children(server))
    assert len(children(server)) == 2


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_open_requests_are_finished(server: Server, sig: signal.Signals) -> None:
    workers = children(server)
    peers = [server.connect() for _ in range(8)]
    for peer in peers:
        peer.send(b"GET /slow/500 HTTP/1.1\r\nHost: a\r\n\r\n")
    # A request on each connection has been taken when a later connection is answered.
    for _ in range(20):
        server.get("/")
    server.signal(sig)
    for peer in peers:
        assert peer.reply().status == 200
        peer.close()
    assert server.wait() == 0
    assert not any(map(is_alive, workers))


@pytest.mark.parametrize("drain_s", ["0.2", "1"])
def test_the_drain_deadline_cuts(serve, drain_s: str) -> None:
    server: Server = serve(APP, "--workers", "2", "--drain-s", drain_s)
    with server.connect() as peer:
        peer.send(b"GET /slow/60000 HTTP/1.1\r\nHost: a\r\n\r\n")
        server.get("/")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert peer.is_closed()
    # Newcomer C: one request, and a notice of waiting comes before.
    assert "1 open request was cut off" in server.err
    assert "waits for" not in server.err.partition("cut off")[2]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_int_does_not_wait(serve, workers: str) -> None:
    server: Server = serve(APP, "--workers", workers, "--drain-s", "60")
    with server.connect() as peer:
        peer.send(b"GET /slow/60000 HTTP/1.1\r\nHost: a\r\n\r\n")
        for _ in range(10):
            server.get("/")
        server.signal(signal.SIGINT)
        with pytest.raises(Exception, match="timed out"):
            server.process.wait(0.5)
        server.signal(signal.SIGINT)
        assert server.wait(5) == 0
        assert peer.is_closed()


def test_a_killed_worker_is_replaced_and_no_client_is_refused(server: Server) -> None:
    before = children(server)
    os.kill(before[0], signal.SIGKILL)
    replies = [server.get("/").status for _ in range(50)]
    assert replies == [200] * 50
    wait_for(
        lambda: len(children(server)) == 2 and before[0] not in children(server), "a new worker"
    )
    server.wait_for_log("was ended by SIGKILL; replacing it")


def test_a_crash_loop_slows_down(serve, tmp_path: Path) -> None:
    server: Server = serve(APP + "if (marker := os.path.exists('crash')): os._exit(9)\n", "-w", "2")
    (tmp_path / "crash").touch()
    os.kill(children(server)[0], signal.SIGKILL)
    server.wait_for_log(r"ended with code 3; replacing it in 1 s")
    # No client waits for the missing worker.
    assert [server.get("/").status for _ in range(20)] == [200] * 20
    (tmp_path / "crash").unlink()
    wait_for(lambda: len(children(server)) == 2, "the loop to end")


def test_hup_replaces_all_without_a_failed_request(server: Server, tmp_path: Path) -> None:
    before = set(children(server))
    main = tmp_path / "main.py"
    # Of another length: bytecode of the first text is taken for current within the same second.
    main.write_text(main.read_text().replace('VERSION = "one"', 'VERSION = "other"'))
    stop = threading.Event()
    failures: list[str] = []
    answered = []

    def ask() -> None:
        while not stop.is_set():
            with server.connect() as peer:
                connected_at = time.monotonic()
                peer.send(request("/version"))
                # A worker that drains waits a second for the first request of a connection.
                is_late = time.monotonic() - connected_at > 0.9
                try:
                    answered.append(peer.reply().body)
                except Exception as error:
                    if not is_late:
                        failures.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        server.signal(signal.SIGHUP)
        wait_for(
            lambda: not before & set(children(server)) and len(children(server)) == 2, "new workers"
        )
        wait_for(lambda: answered[-1] == b"other", "the new code")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert server.get("/version").body == b"other"


def test_ttin_and_ttou(server: Server) -> None:
    server.signal(signal.SIGTTIN)
    wait_for(lambda: len(children(server)) == 3, "a third worker")
    wait_for(lambda: pids(server) == set(children(server)), "it to serve")
    server.signal(signal.SIGTTOU)
    wait_for(lambda: len(children(server)) == 2, "it to leave")
    server.signal(signal.SIGTTOU)
    wait_for(lambda: len(children(server)) == 1, "the second to leave")
    server.signal(signal.SIGTTOU)
    assert server.get("/").status == 200  # the last one stays
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_workers_do_not_outlive_the_supervisor(server: Server) -> None:
    workers = children(server)
    server.process.kill()
    wait_for(lambda: not any(map(is_alive, workers)), "the workers to end")


def test_shared_unix_socket(serve, tmp_path: Path) -> None:
    server: Server = serve(APP, "--workers", "2", "--uds", str(tmp_path / "s"))
    assert server.get("/").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not (tmp_path / "s").exists()


def test_hooks_run_in_each_worker(serve, tmp_path: Path) -> None:
    server: Server = serve(
        """
        def note(what):
            with open("notes", "a") as file:
                file.write(f"{what} {os.getpid()}\\n")

        app.on_startup(lambda: note("up"))
        app.on_shutdown(lambda: note("down"))
        """,
        "--workers", "2",
    )  # fmt: skip
    workers = children(server)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    notes = (tmp_path / "notes").read_text().splitlines()
    assert sorted(notes) == sorted(f"{what} {pid}" for what in ("up", "down") for pid in workers), (
        json.dumps(notes)
    )
