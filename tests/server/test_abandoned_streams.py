"""Streams without a reader end, and take neither a thread nor the process with them."""

from __future__ import annotations

import json
import signal

from rig import Server, processor_share, request, text, wait_for

SPIN_SHARE_MAX = 0.2


GONE = """
gate = threading.Event()
events = []

@app.get("/events")
def seen():
    return events

@app.get("/open")
def open_gate():
    gate.set()
    return "open"

@app.get("/late", blocking=True)
def late():
    events.append("running")
    gate.wait(20)
    def pieces():
        try:
            for _ in range(300):
                yield b"x" * 1000
        finally:
            events.append("closed")
    return pieces()

@app.get("/exit", blocking=True)
def leave():
    yield b"begun"
    sys.exit(3)

@app.get("/quick", blocking=True)
def quick():
    return "quick"

@app.post("/echo")
def echo(request):
    return request.body()
"""


def test_a_stream_that_starts_when_its_client_has_gone_harms_nobody(serve) -> None:
    server: Server = serve(GONE, "--blocking-threads", "1")
    with server.connect() as control:

        def has(event: str) -> bool:
            return event in json.loads(text(control, "/events"))

        with server.connect() as leaving:
            leaving.send(request("/late"))
            wait_for(lambda: has("running"), "the handler to run")
        assert not has("closed")
        # The next connection takes the place of the one that left, and is in the midst of its body.
        with server.connect() as peer:
            peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234")
            assert text(control, "/open") == "open"
            wait_for(lambda: has("closed"), "the generator to be closed")
            peer.send(b"56789")
            assert peer.reply().body == b"0123456789"
            assert text(peer, "/quick") == "quick"  # the only thread is back


def test_sys_exit_in_a_blocking_stream_costs_no_thread(serve) -> None:
    server: Server = serve(GONE, "--blocking-threads", "1")
    with server.connect() as peer:
        peer.send(request("/exit"))
        broken = peer.read_to_end()
    assert b"begun" in broken
    assert not broken.endswith(b"0\r\n\r\n")
    with server.connect() as peer:
        assert text(peer, "/quick") == "quick"


ENDLESS = """
made = [0]

def endless():
    while True:
        made[0] += 1
        yield b"x" * 1000

async def endless_async():
    while True:
        made[0] += 1
        yield b"x" * 1000

app.get("/def")(lambda: endless())
app.get("/async")(endless_async)
app.get("/blocking", blocking=True)(lambda: endless())
app.get("/204/def")(lambda: Response(endless(), status_code=204))
app.get("/204/async")(lambda: Response(endless_async(), status_code=204))

@app.get("/304/async")
async def not_modified():
    return Response(endless_async(), status_code=304)

app.get("/204/blocking", blocking=True)(lambda: Response(endless(), status_code=204))

@app.get("/made")
def how_many():
    return made[0]
"""
BODILESS = [
    ("HEAD", "/def", 200), ("HEAD", "/async", 200), ("HEAD", "/blocking", 200),
    ("GET", "/204/def", 204), ("GET", "/204/async", 204), ("GET", "/204/blocking", 204),
    ("GET", "/304/async", 304),
]  # fmt: skip


def test_an_answer_without_a_body_runs_no_iterator(serve) -> None:
    server: Server = serve(ENDLESS)
    with server.connect() as peer:
        for method, path, status in BODILESS:
            reply = peer.request(method, path)
            assert reply.status == status, f"{method} {path}: {reply}"
            assert text(peer, "/made") == "0", f"{method} {path} made a body that nobody sees"
    assert processor_share(server) < SPIN_SHARE_MAX


CUT = """
def pieces():
    try:
        while True:
            yield b"x" * 1000
    finally:
        print("in finally", file=sys.stderr, flush=True)
        time.sleep(0.3)
        sum(range(10))

app.get("/")(lambda: pieces())
"""


def test_a_second_quit_during_a_cut_ends_the_process(serve) -> None:
    server: Server = serve(CUT, "--loop", "none")
    with server.connect(receive_buffer_bytes=65536) as peer:
        peer.send(request("/"))
        peer.read_until(b"\r\n\r\n")
        server.signal(signal.SIGQUIT)
        server.wait_for_log("in finally")
        server.signal(signal.SIGQUIT)
        server.wait()
