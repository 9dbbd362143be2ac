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
        for _ in range(3)
    ]
    for thread in threads[:2]:
        thread.start()
    wait_for(lambda: len(json.loads(server.get("/running").body)) == 2, "both threads to be busy")
    threads[2].start()
    refused = None
    # The third request takes the place in the queue some time from now; the next one is refused.
    for _ in range(1000):
        with server.connect() as peer:
            peer.socket.settimeout(0.05)
            try:
                refused = peer.request("GET", "/quick/x")
                break
            except TimeoutError:
                continue
    assert refused is not None
    assert refused.status == 503
    assert "retry-after" in refused.headers
    assert server.get("/running").status == 200  # the loop's own handlers do not wait
    server.get("/open")
    for thread in threads:
        thread.join(10)
    assert replies == [200, 200, 200]
    found = json.loads(server.get("/quick/y").body)
    assert found["name"] == "y"
    assert found["thread"].startswith("citius-blocking-")
