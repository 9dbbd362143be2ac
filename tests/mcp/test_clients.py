"""The official clients, for Python and for TypeScript, beside one worker and two (`make mcp-conformance`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Server, application

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools/mcp"
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(
    not (TOOLS / "ready").exists(), reason="`make .tools/mcp/ready` installs the official clients"
)


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, serve_module: Callable[..., Server]) -> Server:
    workers: int = request.param
    return serve_module(application("mcp_everything"), "--workers", str(workers)).wait_ready()


def called(*command: object) -> dict[str, object]:
    """What a program with a client has found."""
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, timeout=120, cwd=TOOLS
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


EXPECTED = {
    "tool": "This is a simple text response for testing.",
    "failed": True,
    "resource": "This is the content of the static text resource.",
    "template": '{"id":"7","templateTest":true,"data":"Data for ID: 7"}',
    "prompt": "Prompt with arguments: arg1='a', arg2='b'",
    "completion": ["paris", "park"],
    "progress": [0, 50, 100],
    "answer": "Hello, Ann!",
}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_client_for_python(server: Server, mode: str) -> None:
    url = f"http://127.0.0.1:{server.port}/mcp"
    found = called(TOOLS / "python/bin/python", HERE / "official_client.py", url, mode)
    assert found == EXPECTED | {"version": "2025-11-25" if mode == "legacy" else mode}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_client_for_typescript(server: Server, mode: str) -> None:
    url = f"http://127.0.0.1:{server.port}/mcp"
    program = TOOLS / "official_client.mjs"
    program.write_text((HERE / "official_client.mjs").read_text())
    found = called(TOOLS / "node_modules/.bin/node", program, url, mode)
    assert found == EXPECTED | {"version": "2025-11-25" if mode == "legacy" else mode}
