"""The start that deploy/ describes: PID 1, a read-only root, no capabilities, no new privileges, no account.

bubblewrap takes the part of the container engine. The command is that of the Dockerfile.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from pathlib import Path

import pytest
from rig import application, free_port

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
APP = application("confinement_app").read_text()

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None or os.getuid() != 0,
    reason="root and bubblewrap take the part of the container engine",
)


def json_of(instruction: str) -> list[str]:
    """The list form of an instruction of the Dockerfile."""
    found = re.search(rf"^{instruction} (\[.*\])", DOCKERFILE, re.M)
    assert found, instruction
    return json.loads(found[1])


def hidden_by_tmp() -> list[str]:
    """What shows interpreter and checkout again if they lie below /tmp: the container has its own."""
    below = [path for path in (str(ROOT), sys.prefix, sys.base_prefix) if path.startswith("/tmp/")]
    return [word for path in below for word in ("--ro-bind", path, path)]


@pytest.fixture
def container(tmp_path: Path) -> Generator[tuple[subprocess.Popen[str], int]]:
    tmp_path.chmod(0o755)
    (tmp_path / "notes.py").write_text(APP)
    port = free_port()
    words = [word.replace("8000", str(port)) for word in json_of("CMD")]
    bwrap = [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
        *hidden_by_tmp(), "--ro-bind", str(tmp_path), "/srv", "--chdir", "/srv", "--cap-drop", "ALL",
        "--unshare-user", "--uid", "65532", "--gid", "65532", "--unshare-pid", "--as-pid-1",
        "--die-with-parent", "--setenv", "PYTHONDONTWRITEBYTECODE", "1",
    ]  # fmt: skip
    entry = [sys.executable, "-m", *json_of("ENTRYPOINT")]
    process = subprocess.Popen([*bwrap, *entry, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    try:
        for line in process.stderr:
            lines.append(line)
            if " on http" in line:
                break
        else:
            pytest.fail(f"the server did not start: {lines}")
        yield process, port
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as response:
        return response.read().decode()


def test_it_serves_with_nothing(container: tuple[subprocess.Popen[str], int]) -> None:
    process, port = container
    found = json.loads(get(port, "/"))
    assert found == {"uid": 65532, "caps": "0" * 32, "no_new_privs": "1", "parent": 1}
    assert get(port, "/write/srv/notes.db") == "OSError"  # EROFS
    assert get(port, "/write/etc/passwd") == "OSError"
    assert get(port, "/write/tmp/a") == "written"

    program = json_of(r"HEALTHCHECK.*\\\n\s*CMD")[2].replace("8000", str(port))
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)

    (supervisor,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    began = time.monotonic()
    os.kill(int(supervisor), 15)
    assert process.wait(20) == 0
    assert time.monotonic() - began < 10, "`docker stop` kills after ten seconds"


def test_the_manifests_drop_everything() -> None:
    compose = (ROOT / "deploy/compose.yaml").read_text()
    for flag in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", 'user: "65532'):
        assert flag in compose
    kubernetes = (ROOT / "deploy/kubernetes.yaml").read_text()
    for flag in (
        "readOnlyRootFilesystem: true",
        "allowPrivilegeEscalation: false",
        "drop: [ALL]",
        "runAsNonRoot: true",
        "kind: PodDisruptionBudget",
    ):
        assert flag in kubernetes
    assert "USER 65532:65532" in DOCKERFILE
