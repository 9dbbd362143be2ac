"""The public face says what it takes and returns: ``Any`` stands only where a value can be anything.

Everything that the public modules export is read from its source: the annotations of functions, methods and
attributes, those of base classes included. Of overloaded functions the overloads count, not what they share.
"""

import ast
import functools
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import citius._core

MODULES = (
    "citius", "citius.go", "citius.http", "citius.pg", "citius.redis", "citius.rpc", "citius.testing",
    "citius.web.middleware", "citius.web.security",
)  # fmt: skip

DECODED = "what was decoded is what the sender has sent"
NAMESPACE = "a namespace of the application's own, or the application itself"
CONVERTED = "each parameter is of the type that its converter in the path says"
ROWS = "each column is of the type that the statement says"
DEFAULTS = "it may be the default of a parameter of any type"
HANDED_ON = "what __init__ takes, whose signature is the public one"
CODECS = "a pool has codecs for values of different types; Codec[T] says its own"
REPLIES = "the reply is of the type that the command or the script says"
CHANNELS = "one select takes channels of different types; Chan[T] says its own"

ALLOWED = {
    DECODED: {
        "AsyncClient.__init__", "AsyncClient.call", "AsyncSocket.receive_json", "App.openapi", "Call.result",
        "Client.__init__", "Client.call", "Client.map", "Principal.claims", "ReceivedEvent.json",
        "Request.json", "Request.msgpack", "Response.decode", "Response.json", "Session.__getitem__",
        "Session.pop", "Session.popitem",
        "Socket.receive_json", "TestResponse.json",
        "TestResponse.msgpack",
    },
    NAMESPACE: {
        "Request.app", "Request.state", "SerialWebSocket.state", "WebSocket.app", "WebSocket.state",
        "WebTransportSession.app", "WebTransportSession.state",
    },
    CONVERTED: {
        "Request.path_params", "SerialWebSocket.path_params", "WebSocket.path_params",
        "WebTransportSession.path_params",
    },
    ROWS: {
        "Pool.cursor", "Statements.fetch", "Statements.fetch_many", "Statements.fetch_one",
        "Statements.fetch_value", "Transaction.cursor",
    },
    CODECS: {"Codec.composite", "Codec.decode", "Codec.enum", "Pool.__init__"},
    REPLIES: {
        "Commands.execute", "Redis.call_script", "Script.__call__", "ScriptingCommands.call_script",
        "ScriptingCommands.eval", "ScriptingCommands.fcall", "ScriptingCommands.fcall_ro",
        "ScriptingCommands.function_list", "Session.call_script", "StreamCommands.xinfo_consumers",
        "StreamCommands.xinfo_groups", "StreamCommands.xinfo_stream",
    },
    CHANNELS: {"Chan.__new__", "Selected.value", "chan", "select", "share"},
    DEFAULTS: {"FromPool", "FromRedis"},
    HANDED_ON: {"APIKey.__new__", "Basic.__new__", "Bearer.__new__"},
}  # fmt: skip
"""Reasons, and what may have ``Any`` for each."""


@functools.cache
def body_of(module: str) -> list[ast.stmt]:
    """The statements of a module's source; of the extension's, its stub."""
    if module == "citius._core":
        file = Path(str(citius._core.__file__)).parent / "_core.pyi"
    else:
        file = Path(str(importlib.import_module(module).__file__))
    return ast.parse(file.read_text()).body


def definitions(module: str, name: str) -> list[ast.stmt]:
    """Where a module defines a name: once, but for overloads."""
    return [
        one
        for one in body_of(module)
        if getattr(one, "name", None) == name
        or (isinstance(one, ast.AnnAssign) and getattr(one.target, "id", None) == name)
    ]


def is_overload(node: ast.stmt) -> bool:
    return any(ast.unparse(one) == "overload" for one in getattr(node, "decorator_list", ()))


def has_any(annotation: ast.expr | None) -> bool:
    """Whether an annotation has ``Any``, in a text too."""
    if annotation is None:
        return False
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if has_any(ast.parse(node.value, mode="eval").body):
                return True
        elif isinstance(node, ast.Name) and node.id == "Any":
            return True
    return False


def annotations(node: ast.stmt) -> list[ast.expr | None]:
    """Those of a function or an attribute."""
    if isinstance(node, ast.AnnAssign):
        # The value of an alias is what it stands for.
        is_alias = ast.unparse(node.annotation) == "TypeAlias"
        return [node.value if is_alias else node.annotation]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    given = node.args
    several = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [node.returns, *(one.annotation for one in several if one is not None)]


def is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def with_any(nodes: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """What among these has ``Any``."""
    overloaded = {getattr(node, "name", "") for node in nodes if is_overload(node)}
    for node in nodes:
        name = str(getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", ""))
        if not name or not is_public(name):
            continue
        if isinstance(node, ast.ClassDef):
            yield from with_any(node.body, f"{prefix}{name}.")
        elif (name not in overloaded or is_overload(node) or not _has_body(node)) and any(
            map(has_any, annotations(node))
        ):
            yield prefix + name


def _has_body(node: ast.stmt) -> bool:
    body: list[ast.stmt] = getattr(node, "body", [])
    return not body or ast.unparse(body[-1]) != "..."


def public_definitions() -> dict[tuple[str, str], list[ast.stmt]]:
    """The sources of what the public modules export, and of the base classes in this package."""
    found: dict[tuple[str, str], list[ast.stmt]] = {}
    for module in MODULES:
        home = importlib.import_module(module)
        for name in home.__all__:
            value = getattr(home, name)
            owners = inspect.getmro(value) if inspect.isclass(value) else [value]
            for one in owners:
                where = str(getattr(one, "__module__", ""))
                what = str(getattr(one, "__qualname__", name))
                if where.startswith("citius"):
                    found[where, what] = definitions(where, what)
    return found


def test_any_stands_only_where_a_value_can_be_anything() -> None:
    public = public_definitions()
    assert len(public) > 150
    found = {name for nodes in public.values() for name in with_any(nodes)}
    allowed = {name for names in ALLOWED.values() for name in names}
    assert found - allowed == set(), "say what it is: object, a TypeVar, a Protocol, overloads"
    assert allowed - found == set(), "no longer needed: take it off the list"


def test_the_reader_finds_any() -> None:
    source = """
from typing import Any, overload

class Shown:
    here: list[Any]
    fine: int
    def method(self, x: "dict[str, Any]") -> None: ...
    def _private(self) -> Any: ...
    @overload
    def many(self, x: int) -> int: ...
    @overload
    def many(self, x: str) -> Any: ...
    @overload
    def good(self, x: str) -> str: ...
    def good(self, x: Any) -> Any:
        return x
"""
    assert sorted(with_any(ast.parse(source).body)) == ["Shown.here", "Shown.many", "Shown.method"]
