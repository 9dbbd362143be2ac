"""Tests wait for conditions: a fixed sleep is too short on a busy machine and too long on every other.

`rig.wait_for` polls, and so may a `while` whose body is the sleep. What sleeps all the same says why in a
comment, on its line or above it: time itself is under test, or nothing outside shows what is waited for.
Code under test may take its time: test applications, programs of tests/go, and handlers, which are texts or
decorated by a method of an application (``@app.get(…)``), which a mark of pytest is not (review, list).
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
POLLING = {"rig.py", "rpc_rig.py"}
APPLICATIONS = {TESTS / "applications", TESTS / "frameworks/apps", TESTS / "go/alone"}
FILES = [
    path for path in sorted(TESTS.rglob("*.py"))
    if path.name not in POLLING and APPLICATIONS.isdisjoint(path.parents)
]  # fmt: skip


def is_sleep(node: ast.AST) -> bool:
    """Whether it is a call of a function ``sleep`` with more than zero seconds."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    amount = node.args[0]
    return name == "sleep" and not (isinstance(amount, ast.Constant) and amount.value == 0)


def allowed(tree: ast.AST) -> set[ast.AST]:
    """The calls that poll, and those of handlers."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        polls = isinstance(node, ast.While) and len(node.body) == 1
        handles = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            isinstance(
                decorator.func if isinstance(decorator, ast.Call) else decorator, ast.Attribute
            )
            and not ast.unparse(decorator).startswith(("pytest", "dataclasses", "contextlib"))
            for decorator in node.decorator_list
        )
        if polls or handles:
            found.update(ast.walk(node))
    return found


def silent_sleeps(path: Path) -> list[str]:
    """Those that are neither allowed nor explained."""
    text = path.read_text()
    if "sleep" not in text:
        return []
    lines, tree = text.splitlines(), ast.parse(text)
    may = allowed(tree)
    return [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for node in ast.walk(tree)
        if is_sleep(node)
        and node not in may
        and "  # " not in lines[node.lineno - 1]
        and not lines[node.lineno - 2].lstrip().startswith("# ")
    ]


def test_a_sleep_says_why() -> None:
    silent = [place for path in FILES for place in silent_sleeps(path)]
    assert not silent, "wait for a condition, or say why time has to pass"


def test_only_decorators_of_applications_excuse_a_sleep() -> None:
    """Review (list)."""
    for decorator, excuses in (
        ("pytest.mark.slow", False), ("pytest.mark.parametrize('a', [])", False), ("pooled(size=1)", False),
        ("app.get('/')", True),
    ):  # fmt: skip
        tree = ast.parse(f"@{decorator}\nasync def f() -> None:\n    await asyncio.sleep(1)\n")
        assert any(map(is_sleep, allowed(tree))) is excuses, decorator
