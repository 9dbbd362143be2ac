"""An application imports nothing of procedures, MCP, runs and uploads that it does not use."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rig import Server

HEAD = """
import sys
from citius import App
app = App()
@app.get("/modules")
def modules() -> list[str]:
    return [name for name in sys.modules if name.startswith("citius.")]
"""
FEATURES = {
    "mcp": "citius.mcp",
    "runs": "citius.web.realtime.run_keeper",
    "stores of runs": "citius.cluster.runstores",
    "uploads": "citius.web.uploads.resumable",
    "connect": "citius.web.routing.connect",
    "proto": "citius.web.routing.proto",
    "services of connectrpc": "citius.web.interop.rpc_mounts",
    "health and reflection": "citius.web.interop.rpc_tools",
    "codes of calls": "citius.web.responses.rpc_trailers",
}


@pytest.mark.parametrize(
    ("uses", "imported"),
    [
        ("", set[str]()),
        ("@app.rpc\nasync def add(a: int) -> int:\n    return a\n", set[str]()),
        ("app.mcp('/mcp')\n", {"mcp", "runs", "stores of runs"}),
        ("app.connect('/api')\n", {"connect", "codes of calls"}),
    ],
)
def test_what_is_imported(serve: Callable[..., Server], uses: str, imported: set[str]) -> None:
    server = serve(HEAD + uses)
    modules = set(json.loads(server.get("/modules").body))
    assert {name for name, module in FEATURES.items() if module in modules} == imported
