"""Each guarantee of docs/internals/guarantees.md names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/internals/guarantees.md"


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {one.name for one in ast.walk(tree) if isinstance(one, kinds)}


def test_the_tests_exist() -> None:
    rows = re.findall(r"^\| (?!guarantee)([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 30
    missing: list[str] = []
    for guarantee, tests in rows:
        names = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", tests)
        assert names, guarantee
        missing += [
            f"{guarantee}: {path}::{name}"
            for path, name in names
            if not (ROOT / path).exists() or name not in functions(ROOT / path)
        ]
    assert not missing
