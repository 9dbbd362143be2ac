"""The programs of lab/costs: no type checker reads them, and most are started once in months."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COSTS = Path(__file__).parents[1] / "costs"
# What they import of other packages is not in every environment.
FOREIGN = ("asyncpg",)


def test_every_program_finds_what_it_imports() -> None:
    names = sorted(path.stem for path in COSTS.glob("*.py"))
    code = f"""
import importlib
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in {FOREIGN!r}:
            raise
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=COSTS, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "importing one starts it"


def test_every_program_is_listed() -> None:
    text = (COSTS / "README.md").read_text()
    helpers = {"beside_go", "counter", "lab_database", "served"}
    names = {path.stem for path in COSTS.glob("*.py")} - helpers
    assert not [name for name in names if f"`{name}.py`" not in text]
