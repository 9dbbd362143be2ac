"""Servers that stop or are replaced lose no call."""

from __future__ import annotations

import signal
import threading

import pytest
from citius.rpc import Client
from rig import wait_for
from rpc_rig import connect_rpc, rpc_address


def test_term_answers_what_is_open_and_says_goodbye(serve_rpc) -> None:
    server = serve_rpc()
    with connect_rpc(server) as peer:
        peer.ask(1, "sleep", 0.5)
        peer.ask(2, "block", 0.5)
        assert peer.call("hello") == (None, "Hello World!")
        server.signal(signal.SIGTERM)
        assert {peer.hear()[1] for _ in range(2)} == {1, 2}
        assert peer.hear() == [2, "$/goodbye", []]
        with pytest.raises(EOFError):
            peer.hear()
    assert server.wait() == 0


def test_term_hears_what_has_been_sent(serve_rpc) -> None:
    server = serve_rpc()
    with connect_rpc(server) as peer:
        assert peer.call("hello") == (None, "Hello World!")
        server.signal(signal.SIGTERM)
        for n in range(20):
            peer.ask(n, "sum", n, 1)
        heard = []
        while (message := peer.hear())[0] == 1:
            heard.append(message[1])
        assert message == [2, "$/goodbye", []]
        # Calls without a response before the goodbye were not executed: the first ones have theirs.
        assert heard == list(range(len(heard)))
    assert server.wait() == 0


@pytest.mark.parametrize("address", ["127.0.0.1:0", "unix:rpc.sock"])
def test_hup_loses_no_call(serve_rpc, tmp_path, address: str) -> None:
    server = serve_rpc(
        "--workers", "2", address=address.replace("rpc.sock", f"{tmp_path}/rpc.sock")
    )
    stop, failures, pids, counts = threading.Event(), [], set(), []

    def work() -> None:
        count = 0
        with Client(rpc_address(server), timeout_s=10) as client:
            while not stop.is_set():
                try:
                    pids.update(client.map("pid", [()] * 20))
                    count += 20
                except Exception as error:
                    failures.append(error)
                    return
        counts.append(count)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: pids, "the first answers")
        for n in range(2):
            before = set(pids)
            server.signal(signal.SIGHUP)
            wait_for(lambda n=n: server.err.count("all workers are new") > n, "new workers")
            wait_for(lambda before=before: pids - before, "their answers")
    finally:
        stop.set()
        for thread in threads:
            thread.join(15)
    assert not failures
    assert sum(counts) > 0
