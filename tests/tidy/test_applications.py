"""Test applications are modules, which linters and the type checker see: a text of one has a few lines.

An application is a text with a function that a server would call: a route, a hook, or an ASGI or WSGI
application of its own.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
LINES_MAX = 8
SERVED = re.compile(r"^\s*@app\.|^\s*app\.\w+\(|def (?:app|application|asgi|wsgi|socket)\(", re.M)
FILES = sorted(set(TESTS.rglob("*.py")) - set((TESTS / "applications").glob("*.py")))


def text_of(node: ast.AST) -> str:
    """What a text says, with nothing where values are put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_applications_are_modules() -> None:
    long = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant | ast.JoinedStr)
        and SERVED.search(text := text_of(node))
        and sum(bool(line.strip()) for line in text.splitlines()) > LINES_MAX
    ]
    assert not long, f"an application of more than {LINES_MAX} lines belongs in tests/applications"
