"""Pages of an application that is developed (``--reload``), for a browser: exceptions and unknown paths.

Other clients get plain text, and problem details. Never in production: they show code. Tests:
``tests/cli/test_new.py``, ``tests/gateway/test_problems.py``.
"""

from __future__ import annotations

import traceback
from difflib import get_close_matches
from html import escape
from typing import TYPE_CHECKING

from citius._core import Response
from citius.web.responses.problems import problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Request
    from citius.errors import HTTPError
    from citius.web.routing.endpoint import Endpoint

# The sources of one page; scripts and everything else are refused.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #222 }
table { border-collapse: collapse } td { padding: 0.1rem 1rem 0.1rem 0 } td + td { font-family: monospace }
pre { background: #f4f4f4; border-radius: 6px; overflow-x: auto; padding: 0.8rem }
h1 { color: #b00020; font-size: 1.3rem } h2 { font-size: 1rem } .own { border-left: 4px solid #b00020 }
"""


def traceback_page(request: Request, error: BaseException) -> Response:
    """The response to an exception: where it was raised, and from where that was called."""
    lines = _printable("".join(traceback.format_exception(error)))
    if "text/html" not in request.header("accept", ""):
        return Response(lines, 500)
    frames = traceback.extract_tb(error.__traceback__)
    shown = "".join(_shown(frame) for frame in reversed(frames))
    # The text of an exception whose `__str__` raises is that it does.
    text = traceback.TracebackException.from_exception(error)
    title = escape(_printable(f"{type(error).__name__}: {text}"))
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(request.method)} {escape(request.path)}</p>{shown}"
        f"<h2>Traceback</h2><pre>{escape(lines)}</pre></html>"
    )
    headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
    return Response(page, 500, headers, "text/html; charset=utf-8")


_OTHERS = {"websocket": "WebSocket", "webtransport": "WebTransport"}


def routes_page(
    endpoints: Callable[[], list[Endpoint]], documentation: str | None
) -> Callable[[Request, HTTPError], Response]:
    """An error handler of 404 that lists the routes for a browser whose path no route takes.

    Args:
        endpoints: Everything that can be called.
        documentation: The path of the pages of the documentation.
    """

    def respond(request: Request, error: HTTPError) -> Response:
        if error.detail or "text/html" not in request.header("accept", ""):
            return problem(request, error)
        known = [one for one in endpoints() if one.protocol not in ("rpc", "mcp")]
        path = request.path
        near = get_close_matches(path, [one.pattern for one in known], 1, 0.5)
        hint = f"<p>Did you mean <code>{escape(near[0])}</code>?</p>" if near else ""
        rows = "".join(
            f"<tr><td>{escape(one.method or _OTHERS[one.protocol])}<td>{escape(one.pattern)}"
            f"<td>{escape(one.where)}"
            for one in sorted(known, key=lambda one: one.pattern)
        )
        if documentation is not None:
            hint += f'<p>Documentation: <a href="{escape(documentation)}">{escape(documentation)}</a></p>'
        title = escape(f"404 Not Found: {request.method} {path}")
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f"<style>{_STYLE}</style><h1>{title}</h1>{hint}<h2>Routes</h2><table>{rows}</table></html>"
        )
        headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
        return Response(page, 404, headers, "text/html; charset=utf-8")

    return respond


def _printable(text: str) -> str:
    """Without surrogates, which no encoding has."""
    return text.encode("utf-8", "backslashreplace").decode()


def _shown(frame: traceback.FrameSummary) -> str:
    """One step of the traceback; those of the application stand out."""
    kind = "" if "site-packages" in frame.filename else "own"
    where = f"{frame.name} — {frame.filename}:{frame.lineno}"
    return f'<h2>{escape(where)}</h2><pre class="{kind}">{escape(frame.line or "")}</pre>'
