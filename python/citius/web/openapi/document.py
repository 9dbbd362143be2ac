"""The OpenAPI document (3.1) of endpoints: values in, a value for JSON out.

Tests: ``tests/gateway/test_openapi.py``, which has it judged by an outside validator, and has the application
asked by a fuzzer that reads it.
"""

from __future__ import annotations

import inspect
import math
import re
from http import HTTPStatus
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from citius._core import Response
from citius.observability import logging
from citius.web.binding.signature import body_layout, in_layout, path_parameters
from citius.web.declarations.annotations import AS_SENT, is_body, wants_list, without_none
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.pydantic_types import in_json
from citius.web.declarations.type_kinds import kind_of
from citius.web.openapi.schemas import Problem, Schemas, schema_without_null
from citius.web.responses.json_lines import MEDIA_TYPE as JSON_LINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from citius.web.binding.signature import Parameter
    from citius.web.openapi import OpenAPI
    from citius.web.routing.endpoint import Endpoint

_IN = ("path", "query", "header", "cookie")


def document(endpoints: Sequence[Endpoint], about: OpenAPI) -> dict[str, Any]:
    """The document of an application."""
    return _Document(endpoints, about).make()


class _Document:
    """One document on its way."""

    def __init__(self, endpoints: Sequence[Endpoint], about: OpenAPI) -> None:
        self._about = about
        shown = [one for one in endpoints if one.operation.include_in_schema]
        self._http = [one for one in shown if one.protocol == "http" and one.method != "HEAD"]
        self._others = [one for one in shown if one.protocol != "http"]
        self._schemas = Schemas(
            (received for one in shown for received in _received(one)),
            (sent for one in shown for sent in _sent(one)),
        )
        self._ids: set[str] = set()
        self._security: dict[str, Any] = {}

    def make(self) -> dict[str, Any]:
        about = self._about
        paths: dict[str, dict[str, Any]] = {}
        shapes: dict[str, str] = {}
        for endpoint in self._http:
            path = _path_of(endpoint.pattern)
            # Of one path there is one form: that of the first method.
            first = shapes.setdefault(re.sub(r"\{[^}]*\}", "{}", path), path)
            operations = paths.setdefault(first, {})
            if endpoint.method.lower() in operations:
                logging.warning(
                    f"OpenAPI has one operation for {endpoint.method} {first}; {endpoint.where} with "
                    f"{endpoint.pattern} is left out: say include_in_schema=False, or choose another path"
                )
                continue
            operation = self._operation(endpoint)
            _rename(operation, path, first)
            operations[endpoint.method.lower()] = operation
        info = {"title": about.title, "version": about.version, "description": about.description}
        components = {"schemas": self._schemas.components, "securitySchemes": self._security}
        made = {
            "openapi": "3.1.0",
            "info": _given(info),
            "servers": [{"url": url} for url in about.servers],
            "paths": paths,
            "components": _given(components),
            "tags": [{"name": name, "description": text} for name, text in about.tags.items()],
            "x-websockets": [self._other(one) for one in self._others if one.protocol == "websocket"],
            "x-webtransport": [self._other(one) for one in self._others if one.protocol == "webtransport"],
            "x-procedures": [self._other(one) for one in self._others if one.protocol == "rpc"],
        }  # fmt: skip
        return _finite({**_given(made), "paths": paths, **about.extra})

    def _operation(self, endpoint: Endpoint) -> dict[str, Any]:
        said = endpoint.operation
        name = endpoint.name.strip("<>")
        made: dict[str, Any] = {
            "summary": said.summary or name.replace("_", " ").strip().capitalize(),
            "description": said.description or inspect.getdoc(endpoint.handler),
            "tags": list(dict.fromkeys(said.tags)),
            "deprecated": said.deprecated or None,
            "operationId": self._operation_id(endpoint, name),
            "parameters": self._parameters(endpoint),
            "requestBody": self._body(endpoint),
            "responses": self._responses(endpoint),
            "callbacks": dict(said.callbacks) or None,
            "security": self._requirements(endpoint),
        }
        return _given(made)

    def _operation_id(self, endpoint: Endpoint, name: str) -> str:
        wanted = endpoint.operation.operation_id or name
        tried = [wanted, f"{wanted}_{endpoint.method.lower()}"]
        tried += [f"{tried[1]}_{number}" for number in range(2, len(self._ids) + 3)]
        chosen = next(one for one in tried if one not in self._ids)
        self._ids.add(chosen)
        return chosen

    # --- parameters and bodies ------------------------------------------------------------------

    def _parameters(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        converters = path_parameters(endpoint.pattern)
        for p in endpoint.inputs:
            if p.source not in _IN or (p.marker is not None and not p.marker.include_in_schema):
                continue
            for one in self._whole(p) if p.is_whole else [self._parameter(p, converters)]:
                found[one["in"], one["name"]] = one
        for name, converter in converters.items():
            schema = _CONVERTED.get(converter, {"type": "string"})
            whole = {"in": "path", "name": name, "required": True, "schema": schema}
            found.setdefault(("path", name), whole)
        return list(found.values())

    def _parameter(self, p: Parameter, converters: dict[str, str]) -> dict[str, Any]:
        made: dict[str, Any] = {"in": p.source, "name": p.wire_name}
        made |= _said(p)
        made["required"] = True if p.source == "path" else p.is_required or None
        if p.source == "path" and p.annotation in AS_SENT:
            made["schema"] = _CONVERTED.get(converters[p.wire_name], {"type": "string"})
        else:
            made["schema"] = self._schema(p)
        return _given(made) | {"schema": made["schema"]}

    def _whole(self, p: Parameter) -> Iterator[dict[str, Any]]:
        """A parameter for each field of a type that is taken whole."""
        fields, required = self._schemas.fields_of(p.annotation)
        for name, schema in fields.items():
            wire_name = name.replace("_", "-") if p.source == "header" else name
            made = {"in": p.source, "name": wire_name, "required": name in required or None}
            yield _given(made) | {"schema": schema_without_null(schema)}

    def _schema(self, p: Parameter) -> dict[str, Any]:
        """The schema of a value that is text in the request."""
        schema: dict[str, Any] = {"type": "string"}
        if p.annotation not in (*AS_SENT, bytes):  # compiled handlers take text as bytes
            schema = self._schemas.of(without_none(p.annotation))
        if p.source == "body" and p.annotation is Any:
            schema = {}
        default = MISSING if p.default is None else in_json(p.default)
        if default is not MISSING:
            schema["default"] = default
        return schema

    def _body(self, endpoint: Endpoint) -> dict[str, Any] | None:
        layout = body_layout(endpoint.inputs)
        inputs = [in_layout(p, layout) for p in endpoint.inputs]
        if layout == "form":
            return self._form([p for p in inputs if p.source in ("form", "file", "body")])
        if layout == "object":
            return self._object([p for p in inputs if p.source == "body"])
        for p in inputs:
            is_compiled = endpoint.kind in ("compiled", "pooled")
            if p.source == "raw_body" or (p.source == "body" and is_compiled):
                return {"content": {"application/octet-stream": {"schema": {}}}}
            if p.source == "body":
                schema = {"schema": self._schemas.of(p.annotation)}
                types = ["application/json", "application/msgpack"]
                if not is_body(p.annotation) and not wants_list(p.annotation):
                    types.append("text/plain")
                made = _given({"required": p.is_required or None}) | _described(p)
                return {**made, "content": dict.fromkeys(types, schema)}
        return None

    def _object(self, members: list[Parameter]) -> dict[str, Any]:
        properties = {p.wire_name: self._schema(p) | _described(p) for p in members}
        required = list(dict.fromkeys(p.wire_name for p in members if p.is_required))
        schema = {
            "type": "object",
            "properties": properties,
            **_given({"required": required or None}),
        }
        types = ["application/json", "application/msgpack"]
        made = _given({"required": bool(required) or None})
        return {**made, "content": {key: {"schema": schema} for key in types}}

    def _form(self, fields: list[Parameter]) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        required: list[str] = []
        for p in fields:
            if p.is_whole:
                inner, needed = self._schemas.fields_of(p.annotation)
                properties |= {name: schema_without_null(one) for name, one in inner.items()}
                required += needed
                continue
            schema = _file_schema(p) if p.source == "file" else self._schema(p)
            properties[p.wire_name] = schema | _described(p)
            required += [p.wire_name] if p.is_required else []
        schema = {"type": "object", "properties": properties} | (
            {"required": required} if required else {}
        )
        types = ["multipart/form-data"]
        if not any(p.source in ("file", "body") for p in fields):
            types.insert(0, "application/x-www-form-urlencoded")
        return {"required": True, "content": {key: {"schema": schema} for key in types}}

    # --- responses ------------------------------------------------------------------------------

    def _responses(self, endpoint: Endpoint) -> dict[str, Any]:
        said = endpoint.operation
        status = str(said.status_code or (204 if endpoint.result in (None, NoneType) else 200))
        made: dict[str, Any] = {}
        if endpoint.is_lines:
            schema = self._schemas.of(kind_of(endpoint.result).parts[0], is_sent=True)
            content = {said.content_type or JSON_LINES: {"schema": schema}}
            made[status] = {"description": "A line of JSON for each value", "content": content}
        else:
            made[status] = self._response(endpoint.result, int(status), said.content_type)
        members = kind_of(endpoint.result)
        if members.kind == "union" and NoneType in members.parts:
            made.setdefault("204", {"description": "No Content"})
        for code, model in said.responses.items():
            if isinstance(model, str):
                made[str(code)] = {"description": model}
            else:
                made[str(code)] = self._response(model, code, None)
        if any(p.source != "request" for p in endpoint.inputs):
            made.setdefault(
                "422", _problem("The request does not match the types that are expected.")
            )
        made.setdefault("default", _problem("An error."))
        return made

    def _response(self, model: Any, status: int, content_type: str | None) -> dict[str, Any]:
        made: dict[str, Any] = {"description": _phrase(status)}
        types = _media_types(model)
        if types is None or status in (204, 304):
            return made
        schema = (
            {"schema": self._schemas.of(model, is_sent=True)}
            if is_data(model)
            else {"schema": {"type": "string"}}
        )
        made["content"] = dict.fromkeys([content_type] if content_type else types, schema)
        return made

    def _requirements(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        """All security schemes of an operation, with the scopes that it needs."""
        guards = endpoint.guards
        self._security.update({one.name: one.openapi for one in guards})
        return [{one.name: list(one.scopes) for one in guards}] if guards else []

    # --- what OpenAPI has no words for ------------------------------------------------------------

    def _other(self, endpoint: Endpoint) -> dict[str, Any]:
        made: dict[str, Any] = {
            "name" if endpoint.protocol == "rpc" else "path": endpoint.pattern,
            "description": inspect.getdoc(endpoint.handler),
            "parameters": [
                {"name": p.name, "schema": self._schemas.of(p.type)}
                for p in endpoint.parameters
                if p.source in ("path", "call")
            ],
        }
        if endpoint.protocol == "rpc" and is_data(endpoint.result):
            made["result"] = self._schemas.of(endpoint.result, is_sent=True)
        return _given(made)


_CONVERTED: dict[str, dict[str, Any]] = {
    "int": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "float": {"type": "number"},
    "uuid": {"type": "string", "format": "uuid"},
}


def is_data(model: Any) -> bool:
    """Whether values of a declared type are encoded, so that they have a schema."""
    return model is not MISSING and _media_types(model) == _DATA


def _media_types(model: Any) -> list[str] | None:
    if model in (MISSING, Any, None, NoneType, Response):
        return None
    if model is str:
        return ["text/plain; charset=utf-8"]
    if model is bytes:
        return ["application/octet-stream"]
    return None if kind_of(model).kind == "stream" else _DATA


_DATA = ["application/json", "application/msgpack"]


def _received(endpoint: Endpoint) -> Iterator[Any]:
    """All types of an endpoint's parameters that need a schema."""
    for p in endpoint.inputs:
        if p.source in ("request", "raw_body", "file", "socket", "app"):
            continue
        yield p.type if p.source == "call" else p.annotation
        yield without_none(p.annotation)
        if endpoint.protocol in ("websocket", "webtransport"):
            yield p.type


def _sent(endpoint: Endpoint) -> Iterator[Any]:
    """All types of an endpoint's responses that need a schema."""
    if endpoint.is_lines:
        yield kind_of(endpoint.result).parts[0]
    for model in (endpoint.result, *endpoint.operation.responses.values()):
        if not isinstance(model, str) and is_data(model):
            yield model


def _finite(value: Any) -> Any:
    """A copy without numbers that JSON does not have, such as a default that is infinite."""
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {key: _finite(one) for key, one in items if not _is_infinite(one)}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in cast("list[Any]", value) if not _is_infinite(one)]
    return value


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _path_of(pattern: str) -> str:
    for name, converter in path_parameters(pattern).items():
        pattern = pattern.replace(f"{{{name}:{converter}}}", f"{{{name}}}")
    return pattern


def _rename(operation: dict[str, Any], path: str, first: str) -> None:
    """Call the path parameters of an operation as those of ``first``, which are the same in order."""
    names = dict(zip(path_parameters(path), path_parameters(first), strict=True))
    for one in operation.get("parameters", []):
        if one["in"] == "path":
            one["name"] = names[one["name"]]


def _file_schema(p: Parameter) -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    return {"type": "array", "items": file} if wants_list(p.annotation) else file


def _described(p: Parameter) -> dict[str, Any]:
    marker = p.marker
    return {} if marker is None else _given({"description": marker.description})


def _said(p: Parameter) -> dict[str, Any]:
    """What the marker of a parameter says for the documentation."""
    marker = p.marker
    if marker is None:
        return {}
    said = [one for one in map(in_json, marker.examples) if one is not MISSING]
    examples = {str(at + 1): {"value": one} for at, one in enumerate(said)}
    return _given(
        {
            "description": marker.description or marker.title,
            "deprecated": marker.deprecated or None,
            "examples": examples,
        }
    )


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    return {"description": description, "content": {"application/problem+json": {"schema": schema}}}


def _phrase(status: int) -> str:
    return (
        HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else f"Status {status}"
    )


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Without what says nothing."""
    return {
        key: value
        for key, value in values.items()
        if value is not None and value not in ([], {}, "")
    }
