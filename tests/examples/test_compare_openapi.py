"""scripts/compare_openapi.py: what it finds, what it does not, and explanations."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

_SPEC = importlib.util.spec_from_file_location(
    "compare_openapi", Path(__file__).parents[2] / "scripts/compare_openapi.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
compare, main = _MODULE.compare, _MODULE.main

ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "note": {"type": ["string", "null"]}},
}
ITEMS = {"content": {"application/json": {"schema": {"type": "array", "items": ITEM}}}}
PUBLISHED: dict[str, Any] = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://shop.example/api"}],
    "paths": {
        "/items/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {
                "responses": {
                    "200": {
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/I"}}}
                    },
                    "404": {"description": "none"},
                }
            },
            "put": {
                "security": [{"token": []}],
                "requestBody": ITEMS,
                "responses": {"204": {"description": "done"}},
            },
        }
    },
    "components": {
        "schemas": {"I": ITEM},
        "parameters": {
            "id": {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        },
    },
}  # fmt: skip
SAME: dict[str, Any] = {
    "paths": {
        "/api/items/{id}": {
            "get": {
                "summary": "An item",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {
                        **ITEM,
                        "properties": {
                            "name": {"allOf": [{"type": "string"}]},
                            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                        },
                    }}}},
                    "404": {"description": "another text"},
                },
            },
            "put": {
                "security": [{"bearer": []}],
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
                "requestBody": ITEMS,
                "responses": {"204": {"description": ""}},
            },
        }
    },
}  # fmt: skip


def changed(**places: Any) -> dict[str, Any]:
    """SAME with other values at places such as ``get.responses.404``; ``None`` removes one."""
    document = copy.deepcopy(SAME)
    for place, value in places.items():
        *names, last = place.split("__")
        node: Any = document["paths"]["/api/items/{id}"]
        for name in names:
            node = node[int(name) if isinstance(node, list) else name.replace("_JSON", "/json")]
        if value is None:
            del node[last]
        else:
            node[last] = value
    return document


BODY = "put__requestBody__content__application_JSON__schema__items"


def test_equal_promises_in_other_words() -> None:
    assert compare(PUBLISHED, SAME) == []


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (changed(get=None), "operation GET /api/items/{id}"),
        (changed(get__responses__404=None), "GET /api/items/{id} response 404"),
        (changed(put__security=[]), "PUT /api/items/{id} credentials"),
        (changed(get__parameters=[]), "GET /api/items/{id}  path parameter id"),
        (
            changed(get__parameters__0__schema={"type": "integer", "maximum": 9}),
            "GET /api/items/{id} path parameter id maximum",
        ),
        (
            changed(get__parameters__0__required=False),
            "GET /api/items/{id} path parameter id required",
        ),
        (
            changed(**{BODY + "__properties__name": {"type": "integer"}}),
            "PUT /api/items/{id} body [] .name type",
        ),
        (
            changed(**{BODY + "__properties__note": None}),
            "PUT /api/items/{id} body [] property note",
        ),
        (changed(**{BODY + "__required": []}), "PUT /api/items/{id} body [] required name"),
        (
            changed(put__requestBody__content={"text/plain": {}}),
            "PUT /api/items/{id} body media type application/json",
        ),
    ],
)
def test_each_kind_of_difference(ours: dict[str, Any], expected: str) -> None:
    assert expected.replace("  ", " ") in [
        " ".join(at.split()) for at, *_ in compare(PUBLISHED, ours)
    ]


def test_schemas_that_refer_to_themselves() -> None:
    one, other = copy.deepcopy(PUBLISHED), copy.deepcopy(PUBLISHED)
    for document in (one, other):
        node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/I"}}}
        document["components"]["schemas"]["I"] = node
    assert compare(one, other) == []


def test_explanations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published, ours = tmp_path / "published.json", tmp_path / "ours.json"
    published.write_text(json.dumps(PUBLISHED))
    ours.write_text(json.dumps(changed(get__responses__404=None, put__security=[])))
    assert main(str(published), str(ours)) == 1
    explained = tmp_path / "explained.toml"
    table = '[[difference]]\nat = "{}"\nwhy = "it is meant"\n'
    explained.write_text(table.format("GET * response 404"))
    capsys.readouterr()
    assert main(str(published), str(ours), str(explained)) == 1
    assert (
        capsys.readouterr().out == "PUT /api/items/{id} credentials: published True, ours False\n"
    )
    explained.write_text(table.format("GET * response 404") + table.format("* credentials"))
    assert main(str(published), str(ours), str(explained)) == 0
    explained.write_text(explained.read_text() + table.format("* response 500"))
    assert main(str(published), str(ours), str(explained)) == 1
    assert "there is no such difference: * response 500" in capsys.readouterr().out
