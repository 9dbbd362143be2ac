"""An application imports and maps nothing of procedures, MCP, runs and uploads that it does not use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import rig
from rig import Server, application

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
    "runs": "citius.web.realtime.runs.run_keeper",
    "stores of runs": "citius.cluster.runstores",
    "uploads": "citius.web.uploads.resumable",
    "connect": "citius.web.routing.rpc.connect",
    "proto": "citius.web.routing.rpc.proto",
    "services of connectrpc": "citius.web.interop.connectrpc.mounts",
    "health and reflection": "citius.web.interop.connectrpc.standard_services",
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


TOOLS = Path(__file__).parents[2] / ".tools"
HELLO = (
    "from citius import App\napp = App()\n@app.get('/')\ndef hello() -> str:\n    return 'hello'\n"
)


def mapped(server: Server) -> set[str]:
    """Files and named memory that the process has mapped."""
    server.get("/")
    text = Path(f"/proc/{server.process.pid}/maps").read_text()
    return set(re.findall(r"^(?:\S+ +){5}((?:/|\[anon).*)$", text, re.M))


def test_what_is_mapped(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """The extension is one file with the code of all features, mapped as a whole; nothing else of them is."""
    if not (TOOLS / "connect/ready").exists():
        pytest.skip("`make .tools/connect/ready` installs connectrpc")
    # The environment has what the features use.
    monkeypatch.setattr(rig, "PYTHON", str(TOOLS / "connect/environment/bin/python"))
    env = {"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
    of_hello = mapped(serve(HELLO, env=env))
    of_services = mapped(serve(application("rpc_services_app"), env=env))
    more = {Path(one).parent.name for one in of_services - of_hello}
    assert {"protobuf_ext", "pyqwest"} <= more, more
    packages = {Path(one).parent.name for one in of_hello if "site-packages" in one}
    assert packages <= {"uvloop"}, packages
    extension = {one for one in of_services if "/citius/" in one}
    assert {one for one in of_hello if "/citius/" in one} == extension
