"""deploy/notes.service: its restrictions, as systemd itself rates them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
