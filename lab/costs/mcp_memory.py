"""Memory of a worker over many calls of MCP tools: plain ones, and streams that are kept for their clients.

mcp_memory.py [CALLS]: so many calls of each kind (1 000 000), by wrk with 16 connections. Exit code 1: the
worker has grown by more than `GROWTH_BYTES_MAX` between a fifth of the calls and all of them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import mcp_calls
from mcp_calls import Contestant

GROWTH_BYTES_MAX = 4 * 1024 * 1024
STEPS = 5
SOURCE = """\
from citius import App
from citius.mcp import Context

app = App()
mcp = app.mcp("/mcp", name="memory", resume_s=RESUME_S)

@mcp.tool
def add(a: int, b: int) -> int:
    return a + b

streams = app.mcp("/streams", name="streams", resume_s=RESUME_S)

@streams.tool("add")
async def counts(context: Context, a: int, b: int) -> int:
    await context.info("adds")
    return a + b
"""
KINDS = [
    (Contestant("tools/call, 2026-07-28", "citius", "memory", "/mcp", "2026-07-28"), 1),
    (Contestant("tools/call, 2025-11-25", "citius", "memory", "/mcp", "2025-11-25"), 1),
    # A stream is a run, with a record and three events.
    (Contestant("a stream, 2025-11-25", "citius", "memory", "/streams", "2025-11-25"), 20),
]
"""What is called, and for how many of the calls one of these stands."""


def resident_bytes(pid: int) -> int:
    """The memory of a process that is its own: what is shared has a bound."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("mcp_memory: the kernel does not say RssAnon")


def main() -> int:
    """Exit code 0: memory is flat."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    tools = Path(os.environ.get("TOOLS", ".tools/mcp")).absolute()
    is_flat = True
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "memory.py").write_text(SOURCE.replace("RESUME_S", "2.0"))
        for kind, share in KINDS:
            process, port = mcp_calls.start(tools, kind.server, kind.app, directory)
            try:
                sizes = [resident_bytes(process.pid)]
                done = 0
                while done < calls // share:
                    done += mcp_calls.load(kind, port, directory, seconds=2)
                    sizes.append(resident_bytes(process.pid))
            finally:
                process.kill()
                process.wait(20)
            early = sizes[max(1, len(sizes) // STEPS)]
            growth = sizes[-1] - early
            is_flat = is_flat and growth <= GROWTH_BYTES_MAX
            told = ", ".join(f"{one / 2**20:.1f}" for one in sizes)
            print(f"{kind.name}: {done} calls, MiB: {told}; growth {growth / 2**20:.1f}")
    return 0 if is_flat else 1


if __name__ == "__main__":
    raise SystemExit(main())
