"""Streams without a reader end, and take neither a thread nor the process with them."""

from __future__ import annotations

import json
import signal

from rig import Server, application, processor_share, request, text, wait_for

SPIN_SHARE_MAX = 0.2


GONE = application("abandoned_streams_app")


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


ENDLESS = application("endless_streams_app")
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


CUT = application("cut_stream_app")


def test_a_second_quit_during_a_cut_ends_the_process(serve) -> None:
    server: Server = serve(CUT, "--loop", "none")
    with server.connect(receive_buffer_bytes=65536) as peer:
        peer.send(request("/"))
        peer.read_until(b"\r\n\r\n")
        server.signal(signal.SIGQUIT)
        server.wait_for_log("in finally")
        server.signal(signal.SIGQUIT)
        server.wait()
