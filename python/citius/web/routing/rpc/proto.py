"""``citius proto``: procedures in, ``.proto`` files out, for clients that call them by Connect with JSON.

JSON is what goes over the wire, so names matter and numbers do not: each field says its name in JSON, and
dates, times, UUIDs, decimals and enumerations are texts, as they are sent. What protocol buffers cannot say
(unions, lists of lists, any value) is a ``google.protobuf.Value``. Tests: ``tests/rpc/test_proto.py``.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec.inspect as types

from citius.web.binding.depends.dependencies import Resolver
from citius.web.declarations.parameters.sources import MISSING
from citius.web.routing.rpc.connect import Method, is_object, method_of, named_parameters
from citius.web.routing.rpc.procedures import parameters_struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius.web.application.app import App

_SCALARS: Final[dict[type, str]] = {
    types.BoolType: "bool",
    types.IntType: "int64",
    types.FloatType: "double",
    types.BytesType: "bytes",
    types.ByteArrayType: "bytes",
    types.MemoryViewType: "bytes",
}
_TEXTS: Final = (
    types.StrType, types.DateTimeType, types.DateType, types.TimeType, types.TimeDeltaType,
    types.UUIDType, types.DecimalType,
)  # fmt: skip
_ARRAYS: Final = (types.ListType, types.SetType, types.FrozenSetType, types.VarTupleType)
_RECORDS: Final = (types.StructType, types.DataclassType, types.TypedDictType, types.NamedTupleType)
_VALUE: Final = "google.protobuf.Value"
_RESERVED: Final = frozenset(("repeated", "optional", "map", "message", "reserved", "oneof"))


@dataclass(slots=True)
class _File:
    """One package."""

    package: str
    services: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    messages: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    by_class: dict[Any, str] = field(default_factory=dict[Any, str])
    imports: set[str] = field(default_factory=set[str])

    def text(self) -> str:
        """The file."""
        lines = [
            "// `citius proto` writes this file. Calls are sent as JSON.",
            'syntax = "proto3";',
            "",
        ]
        if self.package:
            lines += [f"package {self.package};", ""]
        if self.imports:
            lines += [f'import "{name}";' for name in sorted(self.imports)] + [""]
        for name, methods in self.services.items():
            lines += [f"service {name} {{", *methods, "}", ""]
        for name, fields in self.messages.items():
            lines += (
                [f"message {name} {{", *fields, "}", ""] if fields else [f"message {name} {{}}", ""]
            )
        return "\n".join(lines)

    # --- messages ---------------------------------------------------------------------------------------

    def message(self, name: str, fields: Iterable[tuple[str, Any]]) -> str:
        """Add a message; its fields are names in JSON and types."""
        name = self._free(name)
        self.messages[name] = []
        self.messages[name] = [
            f"  {self._field(wire, info, number)}" for number, (wire, info) in enumerate(fields, 1)
        ]
        return name

    def _free(self, name: str) -> str:
        known = {*self.messages, *self.services}
        number = 2
        given = name
        while name in known:
            name, number = f"{given}{number}", number + 1
        return name

    def _field(self, wire: str, info: Any, number: int) -> str:
        name = re.sub(r"\W", "_", wire, flags=re.ASCII)
        name = f"f_{name}" if not name or not name[0].isalpha() else name
        if name in _RESERVED:
            name += "_"
        head = self._type(info)
        if not head.startswith(("repeated ", "map<")):
            # With presence a client sends 0, "" and false, too, which would be missing otherwise.
            head = f"optional {head}"
        said = f' [json_name = "{wire}"]' if _camel(name) != wire else ""
        return f"{head} {name} = {number}{said};"

    def _type(self, info: Any) -> str:
        """What a type is called."""
        info = info.type if isinstance(info, types.Metadata) else info
        if isinstance(info, types.UnionType):
            others = [one for one in info.types if not isinstance(one, types.NoneType)]
            if len(others) == 1 and len(others) < len(info.types):
                return self._type(others[0])
            return self._well_known("Value")
        if isinstance(info, (*_ARRAYS, types.CollectionType)):
            inner = self._type(info.item_type)
            is_plain = " " not in inner
            return f"repeated {inner}" if is_plain else self._well_known("ListValue")
        if isinstance(info, types.DictType):
            inner = self._type(info.value_type)
            is_plain = " " not in inner
            return f"map<string, {inner}>" if is_plain else self._well_known("Struct")
        return self._plain(info)

    def _plain(self, info: Any) -> str:
        for cls, name in _SCALARS.items():
            if isinstance(info, cls):
                return name
        if isinstance(info, _TEXTS):
            return "string"
        if isinstance(info, (types.EnumType, types.LiteralType)):
            values = (
                [one.value for one in info.cls] if isinstance(info, types.EnumType) else info.values
            )
            if all(isinstance(one, str) for one in values):
                return "string"
            return (
                "int64"
                if all(isinstance(one, int) for one in values)
                else self._well_known("Value")
            )
        if isinstance(info, _RECORDS) and not isinstance(info, types.NamedTupleType):
            return self.record(info)
        return self._well_known("Value")

    def record(self, info: Any) -> str:
        """The message of a class with fields."""
        if getattr(info, "array_like", False):
            return self._well_known("ListValue")
        known = self.by_class.get(info.cls)
        if known is None:
            name = self.by_class[info.cls] = self._free(_word(info.cls.__name__))
            self.messages[name] = []  # it may contain itself
            self.messages[name] = [
                f"  {self._field(one.encode_name, one.type, number)}"
                for number, one in enumerate(info.fields, 1)
            ]
            known = name
        return known

    def _well_known(self, name: str) -> str:
        self.imports.add("google/protobuf/struct.proto")
        return f"google.protobuf.{name}"

    # --- methods -----------------------------------------------------------------------------------------

    def method(self, method: Method, service: str) -> None:
        """Add a procedure."""
        endpoint = method.endpoint
        word = _word(method.name)
        info: Any = types.type_info(parameters_struct(named_parameters(endpoint), keywords=True))
        request = self.message(
            f"{word}Request",
            [(one.encode_name, one.type) for one in info.fields],
        )
        result = method.item if method.is_stream else endpoint.result
        response = self._result(f"{word}Response", result)
        stream = "stream " * method.is_stream
        lines = self.services.setdefault(service, [])
        lines += [
            f"  // {line}".rstrip()
            for line in (inspect.getdoc(endpoint.handler) or "").splitlines()
        ]
        lines.append(f"  rpc {method.name}({request}) returns ({stream}{response});")

    def _result(self, name: str, result: Any) -> str:
        if result is None or result is type(None):
            return self.message(name, [])
        if result is MISSING:
            return self._well_known("Struct")
        info: Any = types.type_info(result)
        if not is_object(result):
            return self.message(name, [("result", info)])
        if isinstance(info, types.UnionType):
            info = next(one for one in info.types if not isinstance(one, types.NoneType))
        if isinstance(info, _RECORDS) and not getattr(info, "array_like", False):
            return self.record(info)
        return self._well_known("Struct")


def proto_files(app: App) -> dict[str, str]:
    """The files of all procedures of an application, by their names.

    Raises:
        ConfigError: A procedure cannot be called by Connect.
    """
    service = app.connects[0].service if app.connects else "citius.Procedures"
    resolver = Resolver({}, app.app_dependencies)
    files: dict[str, _File] = {}
    for one in app.procedures:
        method = method_of(one, service, resolver)
        package, _, name = method.service.rpartition(".")
        made = files.setdefault(package, _File(package))
        made.services.setdefault(name, [])
        made.method(method, name)
    return {
        (name.replace(".", "/") or "procedures") + ".proto": one.text()
        for name, one in files.items()
    }


def _word(name: str) -> str:
    """``get_user`` as ``GetUser``."""
    parts = re.split(r"[^A-Za-z0-9]+", name)
    word = "".join(part[:1].upper() + part[1:] for part in parts)
    return word if word[:1].isalpha() else f"T{word}"


def _camel(name: str) -> str:
    """What protocol buffers call a field in JSON if nothing else is said."""
    return re.sub(r"_+(.)?", lambda found: (found[1] or "").upper(), name)
