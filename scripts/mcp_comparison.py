"""The conformance suite of MCP beside the official SDK: scenarios that pass, by server, workers and revision.

mcp_comparison.py TOOLS: the directory that `scripts/setup-mcp` has made. Servers are Citius with
tests/applications/mcp_everything.py, and the server that the SDK's authors show to the suite
(`everything-server` of the SDK's source distribution), with its sessions and without them, on Citius and on
uvicorn. Scenarios are those that apply (those of `NOT_OFFERED` of mcp_conformance.py count for none of them);
one in which a check fails or none is made does not pass. A table in Markdown; exit code 0 unless one of
Citius's own fails.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from judged import END_S, served
from mcp_conformance import APPLICATION, NOT_OFFERED, REVISIONS, WORKERS, scenarios

if TYPE_CHECKING:
    from collections.abc import Iterator

READY_S = 60
SDK_APPLICATION = """
import os
from mcp_everything_server.server import event_store, mcp
app = mcp.streamable_http_app(
    stateless_http="STATELESS" in os.environ, event_store=event_store, retry_interval=100
)
"""
"""What the example's own command line makes, for servers that start workers themselves."""


def free_port() -> int:
    """A port for a server that cannot say which one it has taken."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        return made.getsockname()[1]


@contextmanager
def served_by(
    tools: Path, directory: str, workers: int, *, server: str, stateless: bool
) -> Iterator[str]:
    """The SDK's server on ``server``; gives the port."""
    Path(directory, "sdk_app.py").write_text(SDK_APPLICATION)
    port, python = free_port(), str(tools / "python/bin/python")
    package = Path(__file__).parents[1] / "python"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((directory, str(tools), str(package)))}
    if stateless:
        env["STATELESS"] = "1"
    command = {
        "Citius": ["-m", "citius", "serve", "sdk_app:app", "--no-access-log"],
        "uvicorn": ["-m", "uvicorn", "sdk_app:app", "--no-access-log", "--log-level", "error"],
    }[server]
    process = subprocess.Popen(
        [python, *command, "--port", str(port), "--workers", str(workers)],
        cwd=directory, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        ends = time.monotonic() + READY_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > ends:
                    raise SystemExit(f"the SDK on {server} does not serve") from None
                time.sleep(0.1)
        yield str(port)
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:  # uvicorn waits for streams that are open
            process.kill()
            process.wait()


def passed(tools: Path, port: str, revision: str, directory: str) -> tuple[int, int]:
    """How many scenarios pass, and how many there are."""
    suite = tools / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    done = subprocess.run(
        [str(tools / "node_modules/.bin/node"), str(suite), "server", "--url", f"http://localhost:{port}/mcp",
         "--output-dir", directory, *REVISIONS[revision]],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, cwd=directory,
    )  # fmt: skip
    found = {
        name: checks for name, checks in scenarios(done.stdout).items() if name not in NOT_OFFERED
    }
    return sum(good > 0 and not bad for good, bad in found.values()), len(found)


def main() -> int:
    """Exit code 0: Citius's own pass."""
    tools = Path(sys.argv[1]).absolute()
    contestants = [("Citius", "", False)]
    contestants += [
        (f"official SDK on {server}{', stateless' * stateless}", server, stateless)
        for server in ("Citius", "uvicorn")
        for stateless in (False, True)
    ]
    print("| | workers |", " | ".join(REVISIONS), "|")
    print("|---|---|" + "---|" * len(REVISIONS))
    code = 0
    for label, server, stateless in contestants:
        for workers in WORKERS:
            with tempfile.TemporaryDirectory() as directory:
                at = (
                    served_by(tools, directory, workers, server=server, stateless=stateless)
                    if server
                    else served(APPLICATION, directory, "--workers", str(workers))
                )
                cells: list[str] = []
                with at as port:
                    for revision in REVISIONS:
                        results = Path(directory, re.sub(r"\W", "", revision))
                        results.mkdir()
                        good, count = passed(tools, port, revision, str(results))
                        code |= not server and good < count
                        cells.append(f"{good} of {count}")
            print(f"| {label} | {workers} |", " | ".join(cells), "|", flush=True)
    return int(code)


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    raise SystemExit(main())
