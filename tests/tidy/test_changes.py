"""The files of changes/ have names of which a release can make a section."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_names_of_changes() -> None:
    """`scripts/changelog.py --check` finds nothing."""
    check = [sys.executable, "scripts/changelog.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
