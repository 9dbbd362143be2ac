"""CPU time of a `tools/call`: Citius beside the official SDK and FastMCP, each on Citius and on uvicorn.

mcp_calls.py TOOLS [ROUNDS]: the directory that `scripts/setup-mcp` has made. One worker each; wrk keeps 16
connections busy; contestants are measured in turn, in rounds, and the median of each is shown. The official
SDK and FastMCP answer in JSON; without sessions, and for 2025-11-25 with them.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 3
META = "io.modelcontextprotocol/"

APPS = {
    "native.py": """\
from dataclasses import dataclass
import msgspec
from citius import App, Response

app = App()
mcp = app.mcp("/mcp", name="costs")

@dataclass
class Sum:
    total: int

@mcp.tool
def add(a: int, b: int) -> Sum:
    return Sum(a + b)

class Arguments(msgspec.Struct):
    a: int
    b: int

class Params(msgspec.Struct):
    name: str
    arguments: Arguments

class Call(msgspec.Struct):
    id: int
    method: str
    params: Params

@app.post("/hand")
def hand(call: Call) -> Response:
    data = msgspec.json.encode({"total": call.params.arguments.a + call.params.arguments.b})
    content = [{"type": "text", "text": data.decode()}]
    result = {"content": content, "structuredContent": msgspec.Raw(data)}
    made = msgspec.json.encode({"jsonrpc": "2.0", "id": call.id, "result": result})
    return Response(made, 200, None, "application/json")
""",
    "sdk.py": """\
from dataclasses import dataclass
from mcp.server.mcpserver import MCPServer

server = MCPServer("costs")

@dataclass
class Sum:
    total: int

@server.tool()
def add(a: int, b: int) -> Sum:
    return Sum(a + b)

app = server.streamable_http_app(json_response=True)
""",
    "fast.py": """\
from dataclasses import dataclass
from fastmcp import FastMCP

server = FastMCP("costs")

@dataclass
class Sum:
    total: int

@server.tool
def add(a: int, b: int) -> Sum:
    return Sum(a + b)

app = server.http_app(path="/mcp", json_response=True)
""",
}


class Contestant(NamedTuple):
    """A server with an application, and how it is called."""

    name: str
    server: str
    app: str
    path: str
    version: str | None


CONTESTANTS = [
    Contestant("a typed handler by hand on Citius", "citius", "native", "/hand", None),
    Contestant("Citius, 2026-07-28", "citius", "native", "/mcp", "2026-07-28"),
    Contestant("Citius, 2025-11-25", "citius", "native", "/mcp", "2025-11-25"),
] + [
    Contestant(f"{name} on {server}, {version}", server, app, "/mcp", version)
    for name, app in (("official SDK", "sdk"), ("FastMCP", "fast"))
    for version in ("2026-07-28", "2025-11-25")
    for server in ("citius", "uvicorn")
]


def start(
    tools: Path, server: str, app: str, directory: str
) -> tuple[subprocess.Popen[bytes], int]:
    """A server with one worker, and its port."""
    python = tools / "python/bin/python"
    port = free_port()
    options = {
        "citius": ["-m", "citius", "serve", f"{app}:app", "--no-access-log"],
        "uvicorn": ["-m", "uvicorn", f"{app}:app", "--no-access-log", "--log-level", "error"],
    }
    process = subprocess.Popen(
        [str(python), *options[server], "--port", str(port)], cwd=directory,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=1)
        except urllib.error.HTTPError:
            return process, port
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"mcp_calls: {app} on {server} did not start")


def free_port() -> int:
    """A port that is free now."""
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def message(one: Contestant, port: int) -> tuple[dict[str, str], dict[str, object]]:
    """The fields and the message of a call."""
    fields = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    params: dict[str, object] = {"name": "add", "arguments": {"a": 2, "b": 3}}
    if one.version == "2026-07-28":
        fields |= {
            "mcp-protocol-version": one.version,
            "mcp-method": "tools/call",
            "mcp-name": "add",
        }
        params["_meta"] = {
            META + "protocolVersion": one.version,
            META + "clientInfo": {"name": "costs", "version": "1"},
            META + "clientCapabilities": {},
        }
    elif one.version is not None:
        said: dict[str, object] = {"protocolVersion": one.version, "capabilities": {}}
        said["clientInfo"] = {"name": "costs", "version": "1"}
        begin: dict[str, object] = {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": said,
        }
        url = f"http://127.0.0.1:{port}{one.path}"
        request = urllib.request.Request(url, json.dumps(begin).encode(), fields)
        with urllib.request.urlopen(request, timeout=10) as reply:
            session = reply.headers.get("mcp-session-id")
        fields["mcp-protocol-version"] = one.version
        if session is not None:
            fields["mcp-session-id"] = session
        done = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
        urllib.request.urlopen(urllib.request.Request(url, done, fields), timeout=10).close()
    return fields, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def cpu_s(pid: int) -> float:
    """The CPU time of a process and its workers."""
    pids = [pid]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    pids += map(int, children)
    total = 0
    for one in pids:
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(one: Contestant, pid: int, port: int, directory: str) -> float:
    """CPU microseconds of a call."""
    load(one, port, directory, seconds=1)
    before = cpu_s(pid)
    calls = load(one, port, directory, seconds=SECONDS)
    return 1e6 * (cpu_s(pid) - before) / calls


def load(one: Contestant, port: int, directory: str, *, seconds: int) -> int:
    """Call for so long; how many calls there were."""
    fields, call = message(one, port)
    body = json.dumps(call, separators=(",", ":"))
    lines = ['wrk.method = "POST"', f"wrk.body = [==[{body}]==]"]
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in fields.items()]
    script = Path(directory) / "call.lua"
    script.write_text("\n".join(lines))
    url = f"http://127.0.0.1:{port}{one.path}"
    done = subprocess.run(
        ["wrk", "-t1", "-c16", f"-d{seconds}s", "-s", str(script), url],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if bad := re.search(r"Non-2xx.*|Socket errors.*", done.stdout):
        print(f"{one.name}: {bad[0]}", file=sys.stderr)
    found = re.search(r"(\d+) requests in", done.stdout)
    assert found, done.stdout
    return int(found[1])


def main() -> None:
    """Measure in rounds, print medians."""
    tools = Path(sys.argv[1]).absolute()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    found: dict[str, list[float]] = {one.name: [] for one in CONTESTANTS}
    with tempfile.TemporaryDirectory() as directory:
        for name, source in APPS.items():
            (Path(directory) / name).write_text(source)
        for _ in range(rounds):
            for one in CONTESTANTS:
                process, port = start(tools, one.server, one.app, directory)
                try:
                    found[one.name].append(measure(one, process.pid, port, directory))
                finally:
                    process.kill()
                    process.wait(20)
    for name, values in found.items():
        print(
            f"{statistics.median(values):8.1f} us  {name}  ({min(values):.1f} to {max(values):.1f})"
        )


if __name__ == "__main__":
    main()
