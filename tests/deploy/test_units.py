"""deploy/notes.service: its restrictions, as systemd itself rates them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from citius.serving.prepare import EXIT_HOOK, EXIT_STARTUP
from rig import application, free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
EXPOSURE_MAX = 2.0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_service_is_hardly_exposed() -> None:
    command = ["systemd-analyze", "security", "--offline=true", str(DEPLOY / "notes.service")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = re.search(r"Overall exposure level for notes.service: ([\d.]+)", done.stdout)
    if found is None:
        pytest.skip(f"this systemd-analyze rates no files: {done.stderr}")
    assert float(found[1]) <= EXPOSURE_MAX, done.stdout


def test_the_guide_shows_the_unit_that_is_shipped() -> None:
    guide = (DEPLOY.parent / "docs/guides/deployment.md").read_text()
    shown = re.search(r"```ini\n(\[Service\].*?)```", guide, re.S)
    assert shown
    unit = (DEPLOY / "notes.service").read_text().splitlines()
    assert [line for line in shown[1].splitlines() if line not in unit] == []


def _settings(name: str) -> list[str]:
    unit = (DEPLOY / "notes.service").read_text()
    return re.findall(rf"^{name}=(.*)$", unit, re.M)


@pytest.mark.skipif(
    shutil.which("bwrap") is None or os.getuid() != 0, reason="bubblewrap takes systemd's part"
)
def test_the_unit_starts_as_written_and_writes_where_it_may(tmp_path: Path) -> None:
    """Newcomer A4: everything is read-only but the state directory, as by `ProtectSystem=strict`."""
    for name in ("srv", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "srv/notes.py").write_text(application("notes_app").read_text())
    port = free_port()
    (command,) = _settings("ExecStart")
    program, *words = shlex.split(command)
    assert program.endswith("/bin/citius")
    (directory,) = _settings("WorkingDirectory")
    (state,) = (f"/var/lib/{name}" for name in _settings("StateDirectory"))
    variables = [word for text in _settings("Environment") for word in text.split("=", 1)]
    bwrap = [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/srv", "--ro-bind",
        str(tmp_path / "srv"), directory, "--tmpfs", "/var/lib", "--bind", str(tmp_path / "state"), state,
        "--remount-ro", "/srv", "--remount-ro", "/var/lib", "--chdir", directory, "--cap-drop", "ALL",
        "--die-with-parent", "--setenv", "PYTHONDONTWRITEBYTECODE", "1", "--setenv", *variables,
    ]  # fmt: skip
    process = subprocess.Popen(
        [*bwrap, sys.executable, "-m", "citius", *words, "--bind", f"127.0.0.1:{port}"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        told: list[str] = []
        while "serves on" not in (line := process.stderr.readline()):
            told.append(line)
            assert line, "".join(told)
        request = urllib.request.Request(f"http://127.0.0.1:{port}/notes", method="POST")
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.read() == b"1"
        assert (tmp_path / "state/notes.db").exists()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_a_failed_start_up_hook_is_tried_again() -> None:
    """Newcomer A4."""
    (kept,) = _settings("RestartPreventExitStatus")
    assert str(EXIT_STARTUP) in kept.split()
    assert str(EXIT_HOOK) not in kept.split()
    assert _settings("StartLimitIntervalSec") == ["0"]
