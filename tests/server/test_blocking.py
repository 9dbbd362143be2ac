"""Handlers with blocking=True: threads, a bounded queue, and a server that goes on meanwhile."""

from __future__ import annotations

import json
import threading

from rig import Server, wait_for

APP = """
gate = threading.Event()
running = []

@app.get("/wait", blocking=True)
def wait():
    running.append(threading.current_thread().name)
    gate.wait(20)
    return "done"

@app.get("/running")
def how_many():
    return running

@app.get("/open")
def open_gate():
    gate.set()

@app.get("/quick/{name}", blocking=True)
def quick(name):
    return {"name": name, "thread": threading.current_thread().name}
"""


def test_a_full_pool_is_503_and_recovers(serve) -> None:
    server: Server = serve(APP, "--blocking-threads", "2", "--blocking-queue-max", "1")
    replies: list[int] = []
    threads = [
        threading.Thread(target=lambda: replies.append(server.get("/wait").status))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(json.loads(server.get("/running").body)) == 2, "both threads to be busy")
    with server.connect() as peer:
        # In one piece, so both are taken before the gate opens: one waits, one is too many.
        peer.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\nGET /quick/x HTTP/1.1\r\nHost: a\r\n\r\n")
        assert server.get("/running").status == 200  # the loop's own handlers do not wait
        server.get("/open")
        assert peer.reply().status == 200
        refused = peer.reply()
    assert refused.status == 503
    assert "retry-after" in refused.headers
    for thread in threads:
        thread.join(10)
    assert replies == [200, 200]
    found = json.loads(server.get("/quick/y").body)
    assert found["name"] == "y"
    assert found["thread"].startswith("citius-blocking-")
