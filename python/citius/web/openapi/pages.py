"""The routes of the documentation: the document itself, and Swagger UI without a CDN.

The page has no inline script, so that a strict Content-Security-Policy holds for it. Tests:
``tests/gateway/test_openapi.py``.
"""

from __future__ import annotations

import functools
import gzip
import html
import os
import posixpath
from typing import TYPE_CHECKING

from citius._core import Request, Response
from citius.web.routing.declared_routes import Operation, Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.web.openapi import OpenAPI

_ASSETS = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}


def documentation_routes(about: OpenAPI, make: Callable[[], dict[str, object]]) -> list[Route]:
    """The routes of an application's documentation.

    Args:
        about: Where they are.
        make: Makes the document; called when it is first asked for.
    """
    routes: list[Route] = []

    def add(path: str, handler: Callable[..., Response]) -> None:
        hidden = Operation(include_in_schema=False)
        routes.append(Route("GET", path, handler, "def", operation=hidden))

    if about.path is None:
        return routes

    @functools.cache
    def encoded() -> bytes:
        from citius.web.declarations.codecs import encode_json

        return encode_json(make())

    def openapi_document() -> Response:
        return Response(encoded(), 200, None, "application/json")

    add(about.path, openapi_document)
    if about.docs is None:
        return routes
    page, script = _page(about), _script(about)

    def documentation() -> Response:
        return Response(page, 200, None, "text/html; charset=utf-8")

    def start() -> Response:
        return Response(script, 200, None, "text/javascript; charset=utf-8")

    add(about.docs, documentation)
    beside = about.docs.rstrip("/")
    add(f"{beside}/start.js", start)
    for name in _ASSETS:
        add(f"{beside}/{name}", _asset(name))
    return routes


def _asset(name: str) -> Callable[[Request], Response]:
    def asset(request: Request) -> Response:
        data = _packed(name)
        headers = {"cache-control": "max-age=3600", "vary": "accept-encoding"}
        if "gzip" in (request.header("accept-encoding") or ""):
            headers["content-encoding"] = "gzip"
        else:
            data = gzip.decompress(data)
        return Response(data, 200, headers, _ASSETS[name])

    return asset


@functools.cache
def _packed(name: str) -> bytes:
    path = os.path.join(os.path.dirname(__file__), "ui", f"{name}.gz")
    with open(path, "rb") as file:
        return file.read()


def _page(about: OpenAPI) -> str:
    # Relative to the page, so that the prefix of a proxy does not matter.
    base = "./" + posixpath.basename(about.docs or "")
    base = base.rstrip("/")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(about.title)}</title>
<link rel="stylesheet" href="{base}/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="{base}/swagger-ui-bundle.js"></script>
<script src="{base}/start.js"></script>
</body>
</html>
"""


def _script(about: OpenAPI) -> str:
    docs = about.docs or "/"
    url = posixpath.relpath(about.path or "/", posixpath.dirname(docs))
    return f"""window.ui = SwaggerUIBundle({{
  url: {url!r},
  dom_id: "#swagger-ui",
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
}});
"""
