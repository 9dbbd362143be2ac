"""write_queue_bytes_max and body_window_bytes: how much may wait in the server."""

import pytest
from rig import application, wait_for

APP = application("backpressure_app")


def counts(server) -> dict[str, int]:
    import json

    return json.loads(server.get("/counts").body)


@pytest.mark.parametrize("queue_bytes", [1000, 100_000])
def test_waiting_output(serve, queue_bytes: int) -> None:
    server = serve(APP, "--write-queue-bytes-max", str(queue_bytes))
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /sent HTTP/1.1\r\nHost: a\r\n\r\n")
        seen = [0]

        def stands_still() -> bool:
            seen.append(counts(server)["sent"])
            return len(seen) > 20 and seen[-1] == seen[-20] > 0

        wait_for(stands_still, "the handler to be held back")
        # The kernel takes what it likes (its send buffer grows to 4 MiB), the queue the rest.
        assert seen[-1] < 8 * 1024 * 1024 + queue_bytes


def test_waiting_input(serve) -> None:
    server = serve(APP, "--body-window-bytes", "10000")
    with server.connect() as peer:
        peer.send(b"POST /taken HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        peer.send(b"x" * 100_000)
        wait_for(lambda: counts(server)["taken"] > 0, "the first piece")
        before = 0
        while before < 100_000:
            wait_for(lambda: counts(server)["taken"] > before, "the next piece")
            taken = counts(server)["taken"]
            assert taken - before <= 10_000
            before = taken
            server.get("/go")
        assert peer.reply().body == b"done"
