"""Other people's load generators on the same process, right after the lab's own: wrk, h2load and ab.

They cannot check answers and know no verdicts; they are asked so that a reader can see whether they agree.
What each of them says is parsed from what it prints. The server's CPU time is that of the tool's whole run,
divided by the requests that the tool counted.
"""

from __future__ import annotations

import re
import resource
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from citius_lab.processes import launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from citius_lab.measure.drive import Shot

Tool = Literal["wrk", "h2load", "ab"]
TOOLS: tuple[Tool, ...] = get_args(Tool)


def command(tool: Tool, shot: Shot, port: int) -> list[str] | None:
    """Return the tool's words for a load; ``None`` where it cannot make that load."""
    load = shot.load
    if (
        load.is_open
        or load.ws
        or load.rpc
        or load.requests_per_connection
        or load.rtt_ms
        or load.loss
    ):
        return None
    if shot.case.method != "GET" or shot.case.headers or shot.case.mix or shot.case.is_varied:
        return None
    url = f"{shot.scheme}://127.0.0.1:{port}{shot.target}"
    words = {"wrk": _wrk, "h2load": _h2load, "ab": _ab}[tool](shot)
    return None if words is None else [tool, *words[0], url, *words[1]]


# The words before the URL and those after it.
Words = tuple[list[str], list[str]]


def _wrk(shot: Shot) -> Words | None:
    load = shot.load
    if load.http != "1.1" or not load.keep_alive or load.requests is not None:
        return None
    words = ["-t", "1", "-c", str(shot.connections), "-d", f"{RUN_S}s", "--latency"]
    if load.pipeline == 1:
        return words, []
    script = Path(__file__).with_name("pipeline.lua")
    return [*words, "-s", str(script)], ["--", str(load.pipeline)]


def _h2load(shot: Shot) -> Words | None:
    load = shot.load
    if not load.keep_alive:
        return None
    words = ["-t", "1", "-c", str(shot.connections), "-m", str(load.depth)]
    words += ["-D", str(RUN_S)] if load.requests is None else ["-n", str(load.requests)]
    return (words if load.http == "2" else [*words, "--h1"]), []


def _ab(shot: Shot) -> Words | None:
    load = shot.load
    if load.http != "1.1" or load.pipeline > 1 or load.tls:
        return None
    words = ["-q", "-c", str(shot.connections), *(["-k"] if load.keep_alive else [])]
    if load.requests is not None:
        return [*words, "-n", str(load.requests)], []
    # The count comes second, since the time sets one, too.
    return [*words, "-t", str(RUN_S), "-n", str(AB_REQUESTS_MAX)], []


def ask(
    tool: Tool, shot: Shot, server: launch.Server, cpus: tuple[int, ...]
) -> dict[str, Any] | None:
    """Run a tool once; return the fields of a record, ``None`` where it cannot make the load.

    What goes wrong is in the record (``fault``).
    """
    words = command(tool, shot, server.port)
    if words is None:
        return None
    fields: dict[str, Any] = {"tool": tool, "command": words, "fault": None}
    if shutil.which(tool) is None:
        return fields | {"fault": f"{tool} is not installed"}
    with tempfile.TemporaryFile() as output:
        begin = launch.cpu_clocks_s(server.pids())
        own_s = _children_s()
        process = launch.Guarded(words, cpus=cpus, stdout=output.fileno())
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.stop()
        end = launch.cpu_clocks_s(server.pids())
        output.seek(0)
        said = output.read().decode(errors="replace")
    counted = parse(tool, said) if code == 0 else None
    if counted is None or not counted["requests"]:
        last = said.strip().splitlines()[-1:] or ["nothing"]
        return fields | {"fault": f"{tool} ended with code {code}; it said: {last[0][:200]}"}
    used_s = sum(clock_s - begin.get(pid, 0.0) for pid, clock_s in end.items())
    return {
        **fields,
        **counted,
        "cpu_us": used_s * 1e6 / counted["requests"],
        # Of the time that it counted, not of its start.
        "tool_share": (_children_s() - own_s) * counted["requests_per_s"] / counted["requests"],
    }


def _children_s() -> float:
    """Return the CPU time of all processes that the lab has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def parse(tool: Tool, said: str) -> dict[str, Any] | None:
    """Return what a tool counted: requests, their rate and errors; ``None`` if it does not say."""
    found = {name: _first(pattern, said) for name, pattern in PATTERNS[tool].items()}
    if found["requests"] is None or found["requests_per_s"] is None:
        return None
    errors = sum(map(float, re.findall(ERRORS[tool], said)))
    return {
        "requests": int(found["requests"]),
        "requests_per_s": found["requests_per_s"],
        "errors": int(errors),
    }


def _first(pattern: str, text: str) -> float | None:
    match = re.search(pattern, text)
    return None if match is None else float(match[1])


PATTERNS: Mapping[Tool, Mapping[str, str]] = {
    "wrk": {
        "requests": r"(\d+) requests in ",
        "requests_per_s": r"Requests/sec:\s+([\d.]+)",
    },
    "h2load": {
        "requests": r"requests:.* (\d+) succeeded",
        "requests_per_s": r"finished in [^,]*, ([\d.]+) req/s",
    },
    "ab": {
        "requests": r"Complete requests:\s+(\d+)",
        "requests_per_s": r"Requests per second:\s+([\d.]+)",
    },
}
ERRORS: Mapping[Tool, str] = {
    "wrk": r"(?:connect|read|write|timeout|responses:) (\d+)",
    "h2load": r"(\d+) (?:failed|errored|timeout)",
    "ab": r"(?:Failed requests|Non-2xx responses):\s+(\d+)",
}
# wrk takes whole seconds.
RUN_S = 1
PATIENCE_S = 30.0
# ab keeps a record for each request that it may make.
AB_REQUESTS_MAX = 500_000
