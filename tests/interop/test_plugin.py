"""The fixtures of the pytest plugin, in a suite of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = (Path(__file__).parents[1] / "applications" / "plugin_suite.py").read_text()
# As installed, but where this tree is not the one that is.
PLUGIN = ["-p", "no:citius", "-p", "citius.testing.plugin"]
WITHOUT = "def test_client(citius_client): ...\n"
EMPTY = "import sys\n\ndef test_nothing():\n    assert 'citius._core' not in sys.modules\n"


def run(tmp_path: Path, suite: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_suite.py").write_text(suite)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *PLUGIN,
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, "."], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )


def test_fixtures(tmp_path: Path) -> None:
    ended = run(tmp_path, SUITE)
    assert "4 passed" in ended.stdout, ended.stdout


def test_a_suite_without_an_application_is_told_what_to_do(tmp_path: Path) -> None:
    ended = run(tmp_path, WITHOUT)
    assert "define a fixture `citius_app` that returns it" in ended.stdout


def test_a_suite_that_uses_none_imports_no_extension(tmp_path: Path) -> None:
    ended = run(tmp_path, EMPTY)
    assert "1 passed" in ended.stdout, ended.stdout
