#!/usr/bin/env python3
"""Make python/citius/redis/sync.pyi: the methods of citius.redis as they are for code that waits serially.

What returns a ``Call[X]`` there returns ``X`` here. With ``--check`` nothing is written; the exit code says
whether the file is what it should be; ``ruff format`` gives it its form.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python/citius/redis"
MIXINS = (
    "keys", "strings", "hashes", "lists", "sets", "sorted_sets", "streams", "scripting", "server", "__init__",
)  # fmt: skip
HEAD = '''"""Types of the methods that wait. Made by scripts/redis_sync_stub.py: do not edit."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, Self, TypeVar, overload

from citius.redis.client import Redis
from citius.redis.commands.base import Data, Ids, Key, Scores, Word, Words
from citius.redis.commands.lists import End
from citius.redis.commands.streams import Entry, Pending, PendingSummary
from citius.redis.subscriptions import Subscription
from citius.redis.transactions import Transaction

_T = TypeVar("_T")

'''
TAIL = '''
class SyncRedis(SyncCommands[Data]):
    """What ``redis.sync`` is."""

    def __init__(self, redis: Redis[Data]) -> None: ...
    def open(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def transaction(self) -> Transaction[Data]: ...
    def watch(self, *keys: Key) -> SyncAcquiring[Data]: ...
    def connection(self, key: Key | None = ...) -> SyncAcquiring[Data]: ...
    def subscribe(
        self, *channels: str, queue_max: int = ..., on_gap: Callable[[], object] | None = ...
    ) -> Subscription[Data]: ...
    def psubscribe(
        self, *patterns: str, queue_max: int = ..., on_gap: Callable[[], object] | None = ...
    ) -> Subscription[Data]: ...
    def ssubscribe(
        self, *channels: str, queue_max: int = ..., on_gap: Callable[[], object] | None = ...
    ) -> Subscription[Data]: ...

class SyncSession(SyncCommands[Data]):
    """Commands on a connection of their own."""

    def transaction(self) -> Transaction[Data]: ...

class SyncAcquiring(Generic[Data]):
    """A block with a connection of its own."""

    def __enter__(self) -> SyncSession[Data]: ...
    def __exit__(self, *error: object) -> None: ...
'''


class Builtins(ast.NodeTransformer):
    """``type`` and ``set`` as types: in the class these names are commands."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name in an annotation."""
        return ast.Name(f"builtins.{node.id}") if node.id in ("set", "type") else node


class Results(ast.NodeTransformer):
    """``Call[X]`` becomes ``X``, ``Scan[X]`` an iterator."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Replace the outermost type."""
        self.generic_visit(node)
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if name == "Call":
            return node.slice
        if name == "Scan":
            node.value = ast.Name("Iterator")
        return node


def methods(path: Path) -> list[str]:
    """The public methods of the last class of a module, as lines of a stub."""
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    lines: list[str] = []
    overloaded: set[str] = set()
    for node in classes[-1].body:
        if (
            not isinstance(node, ast.FunctionDef)
            or node.name.startswith("_")
            or node.name == "call_script"
        ):
            continue
        is_overload = any(ast.unparse(one) == "overload" for one in node.decorator_list)
        if node.name in overloaded and not is_overload:
            continue
        if is_overload:
            overloaded.add(node.name)
        if node.name == "register_script":
            node.returns = ast.parse("Callable[..., Any]", mode="eval").body
        elif node.returns is not None:
            node.returns = Results().visit(node.returns)
        Builtins().visit(node)
        node.args.defaults = [ast.Constant(...) for _ in node.args.defaults]
        node.args.kw_defaults = [one and ast.Constant(...) for one in node.args.kw_defaults]
        # Other decorators check what is passed, and change no type.
        node.decorator_list = [one for one in node.decorator_list if ast.unparse(one) == "overload"]
        node.body = [ast.Expr(ast.Constant(...))]
        text = ast.unparse(ast.fix_missing_locations(node)).replace(":\n    ...", ": ...")
        lines += ["    " + line for line in text.splitlines()]
    return lines


def main() -> int:
    """Write the stub, or check it."""
    lines = [
        "class SyncCommands(Generic[Data]):",
        '    """Commands whose methods return their results."""',
        "",
    ]
    for name in MIXINS:
        lines += methods(PACKAGE / f"commands/{name}.py")
    text = HEAD + "\n".join(lines) + "\n" + TAIL
    target = PACKAGE / "sync.pyi"
    if "--check" in sys.argv:
        return int(
            not target.exists()
            or ast.dump(ast.parse(target.read_text())) != ast.dump(ast.parse(text))
        )
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
