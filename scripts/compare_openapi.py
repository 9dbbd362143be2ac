#!/usr/bin/env python
"""compare_openapi.py PUBLISHED OURS [EXPLAINED…]: what two OpenAPI documents promise differently.

Documents are JSON or YAML (which needs PyYAML). Compared is what a client depends on: operations, parameters,
bodies, responses with their statuses, JSON schemas, and whether credentials are needed; not names of
components, texts and examples. EXPLAINED is a TOML file with a table for each difference that is meant:

    [[difference]]
    at = "* parameter limit maximum"
    why = "an unbounded page is a denial of service"

`at` is a pattern of fnmatch. The exit status is 1 if a difference is not explained, or an explanation
explains none. Tests: tests/examples/test_compare_openapi.py.
"""

from __future__ import annotations

import json
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
KEYWORDS = ("format", "minimum", "maximum", "minLength", "maxLength", "pattern", "enum", "default")
JSON = "application/json"
# Schemas that refer to themselves end here.
DEPTH_MAX = 12

Difference = tuple[str, str, str]
"""Where, what is published, what is ours."""


class Document:
    """An OpenAPI document with its references resolved, and paths as clients see them."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def resolved(self, node: Any) -> dict[str, Any]:
        """What a node says, or what it refers to."""
        while isinstance(node, dict) and "$ref" in node:
            found: Any = self._document
            for name in node["$ref"].removeprefix("#/").split("/"):
                found = found[name.replace("~1", "/").replace("~0", "~")]
            node = found
        return node or {}

    def operations(self) -> dict[str, dict[str, Any]]:
        """Operations by method and path; names of path parameters count as one."""
        servers = self._document.get("servers") or [{"url": "/"}]
        base = urlsplit(servers[0]["url"]).path.rstrip("/")
        found: dict[str, dict[str, Any]] = {}
        for path, item in self._document["paths"].items():
            shared = self.resolved(item)
            for method in METHODS:
                if method in shared:
                    operation = dict(shared[method])
                    own = operation.get("parameters", [])
                    operation["parameters"] = [*shared.get("parameters", []), *own]
                    operation.setdefault("security", self._document.get("security", []))
                    found[f"{method.upper()} {base}{path}"] = operation
        return found

    def parameters(self, operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Parameters by place and name."""
        found = map(self.resolved, operation["parameters"])
        return {f"{one['in']} parameter {one['name']}": one for one in found}

    def content(self, node: Any) -> dict[str, Any]:
        """Media types and schemas of a body or a response."""
        return self.resolved(node).get("content") or {}

    def shape(self, schema: Any) -> dict[str, Any]:
        """A schema with its types as a set, ``null`` of ``anyOf`` and ``oneOf`` among them."""
        node = dict(self.resolved(schema))
        for word in ("anyOf", "oneOf", "allOf"):
            members = [self.shape(one) for one in node.pop(word, ())]
            others = [one for one in members if one["type"] != {"null"}]
            types = {name for one in members for name in one["type"]}
            if len(others) == 1 or word == "allOf":
                for one in others:
                    node = _merged(node, one)
            node["type"] = types | set(_listed(node.get("type")))
        node["type"] = set(_listed(node.get("type")))
        return node


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | set | tuple) else [value]


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    properties = {**one.get("properties", {}), **other.get("properties", {})}
    required = [*one.get("required", []), *other.get("required", [])]
    merged = {**other, **one}
    if properties:
        merged |= {"properties": properties, "required": required}
    return merged


def compare(published: dict[str, Any], ours: dict[str, Any]) -> list[Difference]:
    """Every difference."""
    one, other = Document(published), Document(ours)
    theirs, own = one.operations(), other.operations()
    found = list(_names("operation", theirs, own, ""))
    for name in theirs.keys() & own.keys():
        found += _operation(name, one, theirs[name], other, own[name])
    return sorted(found)


def _names(kind: str, theirs: Any, own: Any, at: str) -> Iterator[Difference]:
    """What one of both has only."""
    for name in sorted(set(map(str, theirs)) ^ set(map(str, own))):
        is_theirs = name in set(map(str, theirs))
        where = f"{at} {kind} {name}".strip()
        yield where, "there" if is_theirs else "missing", "missing" if is_theirs else "there"


def _operation(
    at: str, one: Document, theirs: dict[str, Any], other: Document, own: dict[str, Any]
) -> Iterator[Difference]:
    needs = [bool(operation["security"]) for operation in (theirs, own)]
    if needs[0] != needs[1]:
        yield f"{at} credentials", str(needs[0]), str(needs[1])
    their_parameters, own_parameters = one.parameters(theirs), other.parameters(own)
    yield from _names("", their_parameters, own_parameters, at)
    for name in their_parameters.keys() & own_parameters.keys():
        first, second = their_parameters[name], own_parameters[name]
        if first.get("required", False) != second.get("required", False):
            yield f"{at} {name} required", str(first.get("required")), str(second.get("required"))
        yield from _schema(f"{at} {name}", one, first.get("schema"), other, second.get("schema"))
    bodies = one.content(theirs.get("requestBody")), other.content(own.get("requestBody"))
    yield from _content(f"{at} body", one, bodies[0], other, bodies[1])
    statuses = theirs["responses"], own["responses"]
    yield from _names("response", statuses[0], statuses[1], at)
    for status in statuses[0].keys() & statuses[1].keys():
        contents = one.content(statuses[0][status]), other.content(statuses[1][status])
        yield from _content(f"{at} response {status}", one, contents[0], other, contents[1])


def _content(
    at: str, one: Document, theirs: dict[str, Any], other: Document, own: dict[str, Any]
) -> Iterator[Difference]:
    yield from _names("media type", theirs, own, at)
    if JSON in theirs and JSON in own:
        yield from _schema(
            at, one, theirs[JSON].get("schema"), other, own[JSON].get("schema"), DEPTH_MAX
        )


def _schema(
    at: str, one: Document, theirs: Any, other: Document, own: Any, depth: int = DEPTH_MAX
) -> Iterator[Difference]:
    if depth == 0:
        return
    first, second = one.shape(theirs), other.shape(own)
    if first["type"] != second["type"]:
        yield f"{at} type", " ".join(sorted(first["type"])), " ".join(sorted(second["type"]))
    for word in KEYWORDS:
        if first.get(word) != second.get(word):
            yield f"{at} {word}", str(first.get(word)), str(second.get(word))
    yield from _names("required", first.get("required", ()), second.get("required", ()), at)
    properties = first.get("properties", {}), second.get("properties", {})
    yield from _names("property", properties[0], properties[1], at)
    for name in properties[0].keys() & properties[1].keys():
        inner = properties[0][name], properties[1][name]
        yield from _schema(f"{at} .{name}", one, inner[0], other, inner[1], depth - 1)
    for word in ("items", "additionalProperties"):
        inner = first.get(word), second.get(word)
        if isinstance(inner[0], dict) or isinstance(inner[1], dict):
            parts = [part if isinstance(part, dict) else {} for part in inner]
            yield from _schema(f"{at} []", one, parts[0], other, parts[1], depth - 1)


def read(path: Path) -> dict[str, Any]:
    """A document in JSON or YAML."""
    text = path.read_text()
    if path.suffix == ".json":
        return json.loads(text)
    import yaml

    return yaml.safe_load(text)


def main(published: str, ours: str, *explained: str) -> int:
    """Print what is not explained; the exit status."""
    files = (tomllib.loads(Path(path).read_text()) for path in explained)
    meant: list[dict[str, str]] = [one for file in files for one in file["difference"]]
    used: set[str] = set()
    is_fine = True
    for at, theirs, own in compare(read(Path(published)), read(Path(ours))):
        patterns = [one["at"] for one in meant if fnmatchcase(at, one["at"])]
        used.update(patterns)
        if not patterns:
            is_fine = False
            print(f"{at}: published {theirs}, ours {own}")
    for one in meant:
        if one["at"] not in used:
            is_fine = False
            print(f"explained, but there is no such difference: {one['at']}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
