"""Clients that others wrote, against a server of ours: curl, nghttp2's, httpx, Go's."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from rig import Server, application

APP = application("http2_clients_app")

PIECES = "".join(str(number) * 1000 for number in range(100))

GO = Path(__file__).with_name("client.go")


@pytest.fixture
def server(serve) -> Server:
    return serve(APP, "--no-access-log")


def run(*arguments: str, timeout_s: float = 25) -> str:
    """What a program of the system says; the test is skipped where there is none."""
    if shutil.which(arguments[0]) is None:
        pytest.skip(f"{arguments[0]} is not installed")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("way", ["--http2-prior-knowledge", "--http2"])
def test_curl(server: Server, way: str, tmp_path: Path) -> None:
    if "HTTP2" not in run("curl", "--version"):
        pytest.skip("this curl does not speak HTTP/2")
    base = f"http://127.0.0.1:{server.port}"
    # One request each: curl 7.88 cannot use such a connection again, with any server.
    assert run("curl", "-sS", way, "-w", " %{http_version}", f"{base}/version") == "2 2"
    (tmp_path / "body").write_bytes(b"x" * 300_000)
    echoed = run("curl", "-sS", way, "--data-binary", f"@{tmp_path}/body", f"{base}/echo")
    assert echoed == "x" * 300_000
    assert run("curl", "-sS", way, f"{base}/pieces") == PIECES


@pytest.mark.parametrize("way", [[], ["-u"]], ids=["prior knowledge", "upgrade"])
def test_nghttp(server: Server, way: list[str]) -> None:
    url = f"http://127.0.0.1:{server.port}/pieces"
    # The two answers are written as their frames come.
    assert sorted(run("nghttp", *way, url, f"{url}?again")) == sorted(PIECES * 2)


@pytest.mark.parametrize(
    ("size", "n_times"), [(1, 5), (1000, 5), (100_000, 5), (3_000_000, 5), (20_000_000, 1)]
)
def test_early_responses_arrive(server: Server, size: int, n_times: int, tmp_path: Path) -> None:
    """servers D1: neither curl 7.88 nor httpx may see a reset before it has sent its body."""
    (tmp_path / "body").write_bytes(b"x" * size)
    url = f"http://127.0.0.1:{server.port}/nowhere"
    for _ in range(n_times):
        with httpx.Client(http1=False, http2=True, timeout=25) as client:
            assert client.post(url, content=b"x" * size).status_code in (404, 405)
            assert client.get(f"{url[:-8]}/version").text == "2"
        if shutil.which("curl"):
            said = run(
                "curl", "-sS", "--http2-prior-knowledge", "--data-binary", f"@{tmp_path}/body",
                "-o", "/dev/null", "-w", "%{http_code}", url,
            )  # fmt: skip
            assert said in ("404", "405")


# In pieces: Node refuses a response while more than ten megabytes are in its buffers (maxSessionMemory).
NODE = """
const { Readable } = require('stream');
function* pieces(size) { for (; size > 0; size -= 100000) yield Buffer.alloc(Math.min(size, 100000)); }
const session = require('http2').connect(process.argv[1]);
const ask = (headers, size) => new Promise((done, fail) => {
  const request = session.request(headers);
  let status = 0;
  request.on('response', fields => { status = fields[':status']; });
  request.on('error', fail);
  request.on('close', () => done(status));
  request.resume();
  if (size) Readable.from(pieces(size)).pipe(request);
});
const large = () => ask({':method': 'POST', ':path': '/nowhere'}, 20000000);
Promise.all([large(), large()]).then(async ([one, other]) => {
  console.log(one, other, await ask({':path': '/version'}, 0));
  session.close();
});
"""


def test_early_responses_arrive_at_node(server: Server) -> None:
    """servers D1: two uploads at once, and the connection is of use afterwards."""
    said = run("node", "-e", NODE, f"http://127.0.0.1:{server.port}")
    assert said.split() in (["404", "404", "200"], ["405", "405", "200"])


def test_h2load(server: Server) -> None:
    said = run("h2load", "-n", "5000", "-c", "8", "-m", "50", f"http://127.0.0.1:{server.port}/")
    assert "5000 succeeded, 0 failed, 0 errored, 0 timeout" in said
    assert re.search(r"status codes: 5000 2xx", said)


def test_httpx(server: Server) -> None:
    base = f"http://127.0.0.1:{server.port}"

    async def talk() -> None:
        async with httpx.AsyncClient(http1=False, http2=True, base_url=base) as client:
            body = bytes(range(256)) * 2000
            answers = await asyncio.gather(
                *(client.get("/version") for _ in range(20)),
                client.post("/echo", content=body),
                client.get("/pieces"),
            )
            assert {answer.http_version for answer in answers} == {"HTTP/2"}
            assert {answer.text for answer in answers[:20]} == {"2"}
            assert answers[20].content == body
            assert answers[21].text == PIECES

    asyncio.run(talk())


@pytest.mark.timeout(120)
def test_go(server: Server, tmp_path: Path) -> None:
    version = re.search(r"go1\.(\d+)", run("go", "version"))
    if version is None or int(version[1]) < 24:
        pytest.skip("Go speaks HTTP/2 without TLS from 1.24 on")
    url = f"http://127.0.0.1:{server.port}"
    said = run("go", "run", str(GO), url, timeout_s=110)
    assert said.split() == ["404", "HTTP/2.0", str(len(PIECES)), "<nil>"]
