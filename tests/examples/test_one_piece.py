"""The example of one piece, on a real Redis, beside the same service in Go."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis_rig
from browser import Browser
from citius.rpc import Client as RpcClient
from markdown_it import MarkdownIt
from rig import TIMEOUT_S, Server, wait_for

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/one-piece"
NAMES = ("navytux.spb.ru", "www.nexedi.com", "lab.nexedi.com", "www.erp5.com")

pytestmark = [redis_rig.needs_redis, pytest.mark.timeout(180)]


def count_close(text: str) -> list[int]:
    """The article's counts, in other words than the example's."""
    near = [{ord(one) + step for one in name for step in (-1, 0, 1)} for name in NAMES]
    return [sum(byte in letters for byte in text.encode()) for letters in near]


@dataclass
class Service:
    """One of both, and how its procedure is called."""

    port: int
    submit: Callable[[list[str]], int]

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Status and body of a response; a body is posted."""
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            request = urllib.request.Request(url, body, headers)
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


@pytest.fixture(scope="module")
def redis() -> Iterator[redis_rig.Server]:
    server = redis_rig.Server(listens=True)
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in a place of its own, built there by its one command."""
    pytest.importorskip("Cython", reason="Cython is not installed")
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler here")
    directory = Path(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("built") / "one-piece"))
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=directory, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


@pytest.fixture(scope="module")
def server(built: Path, redis: redis_rig.Server) -> Iterator[Server]:
    made = Server(
        ["app.py", "--port", "0", "--rpc", "127.0.0.1:0"], {"REDIS": redis.url}, built
    ).wait_ready()
    yield made
    made.kill()


def citius(request: pytest.FixtureRequest) -> Service:
    server: Server = request.getfixturevalue("server")
    port = server.wait_for_log(r"rpc://127\.0\.0\.1:(\d+)")[1]

    def submit(given: list[str]) -> int:
        with RpcClient(f"127.0.0.1:{port}", timeout_s=TIMEOUT_S) as client:
            return client.call("submit", *given)

    return Service(server.port, submit)


@pytest.fixture(scope="module")
def go_service(
    redis: redis_rig.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    if shutil.which("go") is None:
        pytest.skip("no Go toolchain here")
    directory = tmp_path_factory.mktemp("go")
    program, log = directory / "one-piece", directory / "log"
    done = subprocess.run(
        ["go", "build", "-trimpath", "-o", program, "."],
        cwd=EXAMPLE / "go", capture_output=True, text=True,
        env={**os.environ, "GOPROXY": "off", "GOTOOLCHAIN": "local"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for number, name in enumerate(NAMES):
        redis.say("SET", f"name:{number}", name)
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [program, "-address", "127.0.0.1:0", "-rpc", "127.0.0.1:0",
             "-redis", f"127.0.0.1:{redis.port}", "-page", EXAMPLE / "page.html"],
            stderr=stderr,
        )  # fmt: skip

    def ports() -> re.Match[str] | None:
        assert process.poll() is None, log.read_text()
        return re.search(r"http://127\.0\.0\.1:(\d+) and rpc://127\.0\.0\.1:(\d+)", log.read_text())

    wait_for(ports, "the service in Go")
    found = ports()
    assert found is not None

    def submit(given: list[str]) -> int:
        call = {"method": "Service.Submit", "params": [given], "id": 1}
        with socket.create_connection(("127.0.0.1", int(found[2])), TIMEOUT_S) as peer:
            peer.sendall(json.dumps(call).encode())
            return json.loads(peer.makefile().readline())["result"]

    yield Service(int(found[1]), submit)
    process.kill()
    process.wait()


@pytest.fixture(params=["citius", "go"])
def service(request: pytest.FixtureRequest) -> Service:
    return citius(request) if request.param == "citius" else request.getfixturevalue("go_service")


@pytest.mark.parametrize("further", ["", "helloworld", "helloworld" * 10, "100%25", "a/b"])
def test_the_articles_answer(service: Service, further: str) -> None:
    path = f"/{further}"
    lines = [f"{name}:\t{count}\n" for name, count in zip(NAMES, count_close(path), strict=True)]
    expected = "".join([*lines, f"total:\t{len(path)}\n"])
    assert service.ask(f"/classify{path}?a=b") == (200, expected.encode())


def test_three_doors_lead_to_one_channel(service: Service) -> None:
    """More texts than the channel holds, by each of them; the events add up to all."""
    texts = [f"text {n}" for n in range(100)]
    url = f"http://127.0.0.1:{service.port}/progress"
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        as_json = json.dumps(texts).encode()
        content_type = {"content-type": "application/json"}
        assert service.ask("/texts", as_json, **content_type) == (202, b"100")
        assert service.ask("/lines", "\n".join(texts).encode()) == (202, b"100")
        assert service.submit(texts) == 100
        found = add_up(events, 300)
    counts = [sum(each) for each in zip(*map(count_close, texts), strict=True)]
    assert found == {
        "texts": 300, "failed": 0, "total": 3 * sum(map(len, texts)),
        "counts": [3 * count for count in counts],
    }  # fmt: skip


def add_up(events: Any, texts: int) -> dict[str, Any]:
    """The sum of a stream's events, when so many texts are done."""
    found = {"texts": 0, "failed": 0, "total": 0, "counts": [0] * len(NAMES)}
    while found["texts"] < texts:
        line = events.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: "):
            one = json.loads(line.removeprefix(b"data: "))
            for key in ("texts", "failed", "total"):
                found[key] += one[key]
            both = zip(found["counts"], one["counts"], strict=True)
            found["counts"] = [a + b for a, b in both]
    return found


def test_bad_texts(service: Service) -> None:
    content_type = {"content-type": "application/json"}
    assert service.ask("/texts", b'["a", 1]', **content_type)[0] == 422
    assert service.ask("/lines", b"") == (202, b"0")


def test_a_name_that_is_missing(service: Service, redis: redis_rig.Server) -> None:
    redis.say("DEL", "name:2")
    try:
        assert service.ask("/classify/a") == (503, b"a name is missing in Redis\n")
    finally:
        redis.say("SET", "name:2", NAMES[2])
    assert service.ask("/classify/a")[0] == 200


def test_a_redis_that_is_gone_and_comes_back(service: Service, redis: redis_rig.Server) -> None:
    assert service.ask("/classify/a")[0] == 200
    redis.stop()
    try:
        # The client of Citius waits for Redis to come back, as long as the call may.
        assert service.ask("/classify/a")[0] in (502, 504)
        url = f"http://127.0.0.1:{service.port}/progress"
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as events:
            assert service.ask("/lines", b"a\nb") == (202, b"2")
            assert add_up(events, 2)["failed"] == 2
    finally:
        redis.start()
        for number, name in enumerate(NAMES):
            redis.say("SET", f"name:{number}", name)
    # In Go each of the eight has a broken connection, or none: the first question may meet with it.
    wait_for(lambda: service.ask("/classify/a")[0] == 200, "the connections")


def test_clients_that_leave_while_redis_stands_still(
    request: pytest.FixtureRequest, redis: redis_rig.Server
) -> None:
    service = citius(request)
    expected = service.ask("/classify/helloworld")
    redis.pause()
    try:
        for _ in range(20):  # more than there are goroutines that look up
            with socket.create_connection(("127.0.0.1", service.port), TIMEOUT_S) as peer:
                peer.sendall(b"GET /classify/x HTTP/1.1\r\nHost: a\r\n\r\n")
    finally:
        redis.resume()
    wait_for(lambda: service.ask("/classify/helloworld") == expected, "the workers")


def test_the_page(service: Service, tmp_path: Path) -> None:
    """A real browser: the names come from the compiled handler, the counts from the stream."""
    browser = Browser(tmp_path / "browser")
    try:
        browser.open(f"http://127.0.0.1:{service.port}/")
        wait_for(lambda: all(name in browser.text for name in NAMES), "the names")
        wait_for(lambda: "Connecting" not in browser.text, "the stream")
        browser.run("document.getElementById('times').value = 30")
        browser.run("document.querySelector('button').click()")
        wait_for(lambda: "90 of 90 texts classified" in browser.text, "the progress")
        counts = count_close(30 * "helloworldnavytuxgoroutines and channels")
        rows = re.findall(r"^(\S+\.\w+)\s+(\d+)$", browser.text, re.M)
        assert rows == [(name, str(count)) for name, count in zip(NAMES, counts, strict=True)]
    finally:
        browser.close()


def test_the_guide_shows_the_code_as_it_is() -> None:
    """Every block of the guide is a part of one of the files."""
    page = (ROOT / "examples/one-piece/README.md").read_text()
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".pyx", ".html", ".go")]
    sources = [path.read_text() for path in files]
    fences = [one for one in MarkdownIt("commonmark").parse(page) if one.type == "fence"]
    shown = [one for one in fences if one.info not in ("sh", "")]
    assert len(shown) > 10
    for block in shown:
        assert any(block.content in source for source in sources), block.content
