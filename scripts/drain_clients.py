"""Counts requests of HTTP/2 clients that fail while workers and servers are replaced: none may.

drain_clients.py [--requests N] [--only TEXT]: each client (those of httpx, niquests, curl, Node and Go that
are here) with each kind of replacement, in clear text and over TLS, with handlers that answer at once, late
and in streams. A response that is cut short has failed. Failures are shown with their reasons; exit code 1 if
there are any.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import importlib.util
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator  # noqa: TC003
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

APP = """\
import asyncio, random

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            told = await receive()
            await send({"type": told["type"] + ".complete"})
            if told["type"] == "lifespan.shutdown":
                return
    if scope["path"] == "/late":
        await asyncio.sleep(random.random() * 0.05)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(4 if scope["path"] == "/stream" else 0):
        await asyncio.sleep(random.random() * 0.01)
        await send({"type": "http.response.body", "body": b"piece", "more_body": True})
    await send({"type": "http.response.body", "body": b"ok"})
"""

NODE = r"""
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; process.removeAllListeners('warning');
const http2 = require('http2'); const [,, url, count, atOnce, size] = process.argv;
const {origin, pathname} = new URL(url);
let session = null, left = +count, ok = 0; const fails = {};
const note = text => { fails[text] = (fails[text] || 0) + 1; };
function connected() {
  if (!session || session.closed || session.destroyed) {
    session = http2.connect(origin);
    session.on('error', () => {});
  }
  return session;
}
const ask = () => new Promise(done => {
  let request, status = 0, over = false, length = 0;
  try { request = connected().request({':path': pathname}); }
  catch (error) { note(error.code); return done(); }
  request.on('response', headers => { status = headers[':status']; });
  request.on('error', error => { note(error.code + ' ' + error.message); over = true; done(); });
  request.on('close', () => {
    if (over) return;
    if (status === 200 && length === +size && !request.rstCode) ok++;
    else note(`closed ${request.rstCode} ${length}`);
    done();
  });
  request.on('data', piece => { length += piece.length; });
});
const work = async () => { while (left-- > 0) await ask(); };
Promise.all([...Array(+atOnce)].map(work)).then(() => {
  console.log(JSON.stringify({ok, fails}));
  process.exit();
});
"""

GO = """\
package main

import ("crypto/tls"; "encoding/json"; "fmt"; "io"; "net/http"; "os"; "strconv"; "sync")

func main() {
	n, _ := strconv.Atoi(os.Args[2]); at, _ := strconv.Atoi(os.Args[3])
	var p http.Protocols; p.SetUnencryptedHTTP2(true); p.SetHTTP2(true)
	t := &tls.Config{InsecureSkipVerify: true}
	c := &http.Client{Transport: &http.Transport{Protocols: &p, TLSClientConfig: t}}
	var m sync.Mutex; var w sync.WaitGroup; ok, fails := 0, map[string]int{}
	for i := 0; i < at; i++ { w.Add(1); go func() { defer w.Done()
		for j := 0; j < n/at; j++ {
			r, err := c.Get(os.Args[1])
			length := int64(0)
			if err == nil { length, err = io.Copy(io.Discard, r.Body); r.Body.Close() }
			m.Lock()
			whole := err == nil && r.StatusCode == 200 && fmt.Sprint(length) == os.Args[4]
			if whole { ok++ } else { fails[fmt.Sprint(err)]++ }
			m.Unlock()
		} }() }
	w.Wait(); out, _ := json.Marshal(map[string]any{"ok": ok, "fails": fails}); fmt.Println(string(out))
}
"""

Outcome = tuple[int, dict[str, int]]

REPLACED_MIN = 4
"""A client that is quicker begins again."""


class Servers:
    """`citius serve` on a socket of this process, and what replaces it meanwhile."""

    def __init__(self, directory: Path, listener: socket.socket, options: list[str]) -> None:
        self._directory, self._listener, self._options = directory, listener, options
        self._n_started = 0
        self._pid_file = directory / "pid"
        self._process = self._start()
        self.replaced = 0

    def _start(self) -> subprocess.Popen[bytes]:
        self._n_started += 1
        log = self._directory / f"log{self._n_started}"
        process = subprocess.Popen(
            [sys.executable, "-m", "citius", "serve", "main.py", "--fd", str(self._listener.fileno()),
             "--no-access-log", "--workers", "2", "--pid-file", str(self._pid_file), *self._options],
            cwd=self._directory, stderr=log.open("wb"), pass_fds=[self._listener.fileno()],
        )  # fmt: skip
        wait_for(lambda: " serves on " in log.read_text() or process.poll() is not None)
        return process

    def hup(self) -> None:
        """New workers."""
        self._process.send_signal(signal.SIGHUP)
        self.replaced += 1

    def usr2(self) -> None:
        """A new supervisor."""
        before = self._pid_file.read_text()
        os.kill(int(before), signal.SIGUSR2)
        wait_for(lambda: self._pid_file.exists() and self._pid_file.read_text() not in ("", before))
        self.replaced += 1

    def term(self) -> None:
        """Another server, and the end of this one."""
        before = self._process
        self._pid_file.unlink(missing_ok=True)
        self._process = self._start()
        before.terminate()
        before.wait(40)
        self.replaced += 1

    def end(self) -> None:
        """Stop what serves now."""
        with suppress(OSError, ValueError):
            os.kill(int(self._pid_file.read_text()), signal.SIGTERM)
        self._process.terminate()
        self._process.wait(40)


def wait_for(condition: Callable[[], object]) -> None:
    """Up to half a minute."""
    until = time.monotonic() + 30
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("a server does not come")
        time.sleep(0.01)


@contextmanager
def again_and_again(function: Callable[[], None]) -> Iterator[None]:
    """Have a thread call it until the block ends."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(0.5):
            function()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def size_of(url: str) -> int:
    """Bytes of the content at a URL of ``APP``."""
    return len(b"piece" * 4 + b"ok") if url.endswith("/stream") else len(b"ok")


async def _httpx(url: str, count: int, at_once: int) -> Outcome:
    import httpx

    ok, fails = 0, collections.Counter[str]()
    async with httpx.AsyncClient(http1=False, http2=True, verify=False, timeout=20) as client:

        async def ask() -> None:
            nonlocal ok
            for _ in range(count // at_once):
                try:
                    response = await client.get(url)
                    if (response.status_code, len(response.content)) == (200, size_of(url)):
                        ok += 1
                    else:
                        fails[f"{response.status_code}, {len(response.content)} bytes"] += 1
                except Exception as error:
                    fails[repr(error)[:150]] += 1

        await asyncio.gather(*(ask() for _ in range(at_once)))
    return ok, fails


def of_httpx(url: str, count: int, at_once: int, directory: Path) -> Outcome:
    """Python, by `h2`."""
    return asyncio.run(_httpx(url, count, at_once))


def of_niquests(url: str, count: int, at_once: int, directory: Path) -> Outcome:
    """Python, by `jh2`; one request after the other."""
    import niquests

    ok, fails = 0, collections.Counter[str]()
    with niquests.Session(disable_http1=True) as client:
        for _ in range(count):
            try:
                response = client.get(url, timeout=20, verify=False)
                content = response.content or b""
                if (response.status_code, len(content)) == (200, size_of(url)):
                    ok += 1
                else:
                    fails[f"{response.status_code}, {len(content)} bytes"] += 1
            except Exception as error:
                fails[repr(error)[:150]] += 1
    return ok, fails


def of_curl(url: str, count: int, at_once: int, directory: Path) -> Outcome:
    """libcurl, by nghttp2."""
    version = ["--http2"]  # with prior knowledge its version 7.88 uses no connection again
    if at_once > 1:
        version += ["-Z", "--parallel-max", str(at_once)]
    done = subprocess.run(
        ["curl", "-skS", "--no-progress-meter", *version, "-o", "/dev/null",
         "-w", "%{exitcode} %{http_code} %{size_download}\n",
         f"{url}?[1-{count}]"],
        capture_output=True, text=True,
    )  # fmt: skip
    outcomes = collections.Counter(done.stdout.splitlines())
    ok = outcomes.pop(f"0 200 {size_of(url)}", 0)
    return ok, {f"{outcome}; {done.stderr[:200]}": count for outcome, count in outcomes.items()}


def _told(command: list[str]) -> Outcome:
    done = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    return done["ok"], done["fails"]


def of_node(url: str, count: int, at_once: int, directory: Path) -> Outcome:
    """Node's `http2`, by nghttp2."""
    return _told(["node", "-e", NODE, "x", url, str(count), str(at_once), str(size_of(url))])


def of_go(url: str, count: int, at_once: int, directory: Path) -> Outcome:
    """Go's standard library."""
    return _told([str(directory / "client"), url, str(count), str(at_once), str(size_of(url))])


def clients(directory: Path) -> dict[str, Callable[[str, int, int, Path], Outcome]]:
    """Those that are here."""
    here: dict[str, Callable[[str, int, int, Path], Outcome]] = {}
    for name, client in (("httpx", of_httpx), ("niquests", of_niquests)):
        if importlib.util.find_spec(name):
            here[name] = client
    for name, client in (("curl", of_curl), ("node", of_node)):
        if shutil.which(name):
            here[name] = client
    if shutil.which("go"):
        (directory / "client.go").write_text(GO)
        subprocess.run(["go", "build", "-o", "client", "client.go"], cwd=directory, check=True)
        here["go"] = of_go
    return here


def main() -> int:
    """Exit code 0: no request has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--only", default="", help="words that a line has, such as 'httpx hup'")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "main.py").write_text(APP)
        here = clients(directory)
        kinds, paths = ("hup", "usr2", "term", "max-requests"), ("/now", "/late", "/stream")
        for kind, scheme, path, client, at_once in itertools.product(
            kinds, ("http", "https"), paths, here, (1, 10)
        ):
            line = f"{kind} {scheme} {path} {client} {at_once}"
            # niquests asks one after the other. Without TLS curl 7.88 sends several requests at once on a
            # connection of HTTP/1.1 that it wants upgraded, and loses those behind the 101 from any server.
            is_left_out = (client, at_once) == ("niquests", 10) or (scheme, client, at_once) == (
                "http", "curl", 10,
            )  # fmt: skip
            if is_left_out or not set(arguments.only.split()) <= set(line.split()):
                continue
            options = ["--ssl-dev"] if scheme == "https" else []
            if kind == "max-requests":
                options += ["--max-requests", "150"]
            count = (
                arguments.requests if path == "/now" or at_once > 1 else arguments.requests // 10
            )
            with socket.create_server(("127.0.0.1", 0)) as listener:
                servers = Servers(directory, listener, options)
                url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}{path}"
                act = {"hup": servers.hup, "usr2": servers.usr2, "term": servers.term}.get(kind)
                try:
                    ok, fails = 0, collections.Counter[str]()
                    with again_and_again(act) if act else nullcontext():
                        while ok == 0 or (act and servers.replaced < REPLACED_MIN and not fails):
                            more, failed_now = here[client](url, count, at_once, directory)
                            ok += more
                            fails.update(failed_now)
                finally:
                    servers.end()
            failed += sum(fails.values())
            print(
                f"{line}: {ok} ok, {servers.replaced} replaced, {fails or 'none failed'}",
                flush=True,
            )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
