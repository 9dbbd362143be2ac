"""tus-js-client, by both of its protocols: parts, an upload that is broken off and found again, an end."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Server, application

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools/tus"

pytestmark = pytest.mark.skipif(
    not (TOOLS / "ready").exists(), reason="`make .tools/tus/ready` installs the client"
)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("protocol", ["tus-v1", "ietf-draft-05"])
def test_the_client(
    serve: Callable[..., Server], tmp_path: Path, protocol: str, workers: int
) -> None:
    server = serve(
        application("resumable_app"), "--workers", str(workers), env={"UPLOADS": str(tmp_path)}
    )
    # Node looks for packages beside the module.
    client = TOOLS / "client.mjs"
    shutil.copy(Path(__file__).with_name("client.mjs"), client)
    done = subprocess.run(
        ["node", str(client), f"http://127.0.0.1:{server.port}/files", protocol],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["broken"]
    assert found["parts"] >= 7
    kept = tmp_path / "done" / found["url"].rpartition("/")[2]
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == found["sha256"]
    if protocol == "tus-v1":
        assert found["terminated"] == 404
        joined = tmp_path / "done" / found["joined"].rpartition("/")[2]
        assert hashlib.sha256(joined.read_bytes()).hexdigest() == found["sha256"]
    else:
        assert found["response"]["sha256"] == found["sha256"]
