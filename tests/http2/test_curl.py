"""curl over TLS, which uses connections again: early responses, many streams, drains (issue 32 E1, E2)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path
from typing import IO

import pytest
import trustme
from pki import Pki
from rig import Server, application, children, wait_for

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

APP = application("http2_curl_app")


@pytest.fixture
def serve_tls(serve, tmp_path: Path):
    """Serve ``APP`` with a certificate."""
    certificate, key = Pki(trustme.CA(), tmp_path).issue("127.0.0.1")

    def start(*arguments: str) -> Server:
        return serve(APP, "--ssl-certfile", certificate, "--ssl-keyfile", key, *arguments)

    return start


def outcomes(
    server: Server, path: str, *arguments: str, stdin: IO[bytes] | None = None
) -> Counter[str]:
    """Of each request: curl's exit code, the version, the status, the length of the content."""
    done = subprocess.run(
        ["curl", "-ksS", "--http2", *arguments, "-o", "/dev/null",
         "-w", "%{exitcode} %{http_version} %{http_code} %{size_download}\n",
         f"https://127.0.0.1:{server.port}{path}"],
        stdin=stdin, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return Counter(done.stdout.splitlines())


@pytest.mark.parametrize("path", ["/early", "/early-pieces"])
@pytest.mark.parametrize("size", [1, 20_000, 300_000, 3_000_000])
def test_early_responses_on_one_connection(serve_tls, tmp_path: Path, path: str, size: int) -> None:
    """servers D1: curl 7.88 waits for ever behind a response if a window is shut, and fails at a reset."""
    server = serve_tls("--no-access-log")
    with (tmp_path / "body").open("wb") as body:
        body.truncate(size)
    sent = ("-H", "expect:", "--data-binary", f"@{tmp_path}/body")
    assert outcomes(server, f"{path}?[1-20]", *sent) == {"0 2 200 5": 20}
    with (tmp_path / "body").open("rb") as body:  # of a length that is not known
        assert outcomes(server, path, "-T", "-", stdin=body) == {"0 2 200 5": 1}


@pytest.mark.parametrize("size", [1, 20_000, 300_000, 3_000_000])
def test_refusals_that_come_in_pieces(serve_tls, tmp_path: Path, size: int) -> None:
    """Issue 32 E1: behind a status from 400 on curl 7.88 ends its upload before the length it has said."""
    server = serve_tls("--no-access-log")
    with (tmp_path / "body").open("wb") as body:
        body.truncate(size)
    sent = ("-H", "expect:", "--data-binary", f"@{tmp_path}/body")
    assert outcomes(server, "/refused-pieces?[1-20]", *sent) == {"0 2 403 5": 20}


def test_early_responses_to_large_uploads(serve_tls, tmp_path: Path) -> None:
    """servers D1: one after the other, and at once on one connection."""
    server = serve_tls("--no-access-log")
    with (tmp_path / "body").open("wb") as body:
        body.truncate(100_000_000)
    sent = ("-H", "expect:", "-T", f"{tmp_path}/body")
    assert outcomes(server, "/early-pieces", *sent) == {"0 2 200 5": 1}
    assert outcomes(server, "/early?[1-2]", *sent, "-Z") == {"0 2 200 5": 2}


def test_many_requests_on_one_connection(serve_tls) -> None:
    """curl 7.88 resets each stream of which it has read the response: no abuse."""
    server = serve_tls("--no-access-log")
    many = ("-Z", "--parallel-max", "10")
    assert outcomes(server, "/pieces?[1-600]", *many) == {"0 2 200 12": 600}


@pytest.mark.parametrize("path", ["/", "/pieces"])
@pytest.mark.parametrize("at_once", [1, 10])
def test_drains_lose_no_request(serve_tls, path: str, at_once: int) -> None:
    """servers D2: curl 7.88 loses one of the requests that a GOAWAY refuses, and a piece that ends all."""
    # On a busy machine both take their time.
    server = serve_tls("--workers", "2", "--no-access-log", "--drain-s", "60")
    n_drained = 0
    over = threading.Event()

    def drain() -> None:
        nonlocal n_drained
        while not over.is_set():
            before = set(children(server))
            server.signal(signal.SIGHUP)
            wait_for(lambda: not before & set(children(server)), "the workers to be replaced")
            n_drained += 1

    thread = threading.Thread(target=drain)
    thread.start()
    size = 12 if path == "/pieces" else 5
    try:
        while n_drained < 2:
            many = ("-Z", "--parallel-max", str(at_once)) if at_once > 1 else ()
            assert outcomes(server, f"{path}?[1-100]", *many) == {f"0 2 200 {size}": 100}
    finally:
        over.set()
        thread.join()
