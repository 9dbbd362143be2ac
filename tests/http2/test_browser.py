"""A real browser on HTTPS and HTTP/2: pages, fetches both ways, events, WebSockets on streams (RFC 8441)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import Browser
from rig import Server, application, wait_for

APP = application("browser_app")

SOCKET = """
new Promise((resolve, reject) => {
  const socket = new WebSocket(`wss://${location.host}/ws`, ["chat", "other"]);
  const got = [];
  socket.binaryType = "arraybuffer";
  socket.onerror = () => reject(new Error("the socket broke"));
  socket.onopen = () => {
    socket.send("ä".repeat(100000));
    socket.send(new Uint8Array(70000));
    for (let n = 0; n < 100; n += 1) socket.send(String(n));
  };
  socket.onmessage = ({ data }) => {
    got.push(data.byteLength ?? (data.length > 9 ? data.length : data));
    if (got.length === 103) socket.close(4000, "done");
  };
  socket.onclose = ({ code, wasClean }) =>
    resolve({ got, code, wasClean, protocol: socket.protocol, extensions: socket.extensions });
})
"""
TICKS = """
new Promise((resolve) => {
  const source = new EventSource("/ticks"), got = [];
  source.onmessage = ({ data }) => {
    got.push(data);
    if (got.length === 6) { source.close(); resolve(got); }
  };
})
"""
UPLOAD = """
(async () => {
  let left = 40;
  const body = new ReadableStream({ pull(controller) {
    if (left-- > 0) controller.enqueue(new Uint8Array(10000)); else controller.close();
  } });
  return await (await fetch("/count", { method: "POST", body, duplex: "half" })).text();
})()
"""
ABORT = """
(async () => {
  const controller = new AbortController();
  const answer = fetch("/slow", { signal: controller.signal });
  while (!(await (await fetch("/events")).json()).includes("slow began"));
  controller.abort();
  return await answer.then(() => "answered", (error) => error.name);
})()
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    started = Browser(tmp_path / "browser", "--ignore-certificate-errors")
    yield started
    started.close()


def test_a_browser(browser: Browser, serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(APP, "--ssl-dev", env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    browser.open(f"https://localhost:{server.port}/")
    assert browser.run("[document.title, loaded]") == ["Hello", 30]
    echoed = (
        "(await (await fetch('/echo', {method: 'POST', body: 'x'.repeat(300000)})).text()).length"
    )
    assert browser.run(f"(async () => {echoed})()") == 300_000
    assert browser.run(UPLOAD) == "400000"
    assert browser.run(TICKS) == [f"tick {n}" for n in range(1, 7)]
    assert browser.run(ABORT) == "AbortError"

    said = browser.run(SOCKET)
    assert said["got"] == ["2", 100_000, 70_000, *map(str, range(100))]
    assert (said["code"], said["wasClean"], said["protocol"]) == (4000, True, "chat")
    assert said["extensions"].startswith("permessage-deflate")
    for end in ("ticks from 1 ended", "ticks from 4 ended", "slow ended", "socket 4000"):
        wait_for(lambda end=end: end in browser.run("fetch('/events').then((a) => a.json())"), end)

    kinds = "['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))"
    told = f"{kinds}.map((one) => [new URL(one.name).pathname, one.nextHopProtocol])"
    spoken = {path: protocol for path, protocol in browser.run(told) if path != "/slow"}
    assert len(spoken) > 30
    assert set(spoken.values()) == {"h2"}
    assert "ERROR" not in server.err
