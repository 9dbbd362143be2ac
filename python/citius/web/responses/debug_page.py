"""The page that a browser gets of an unexpected exception while an application is developed (``--reload``).

Other clients get plain text. Never in production: it shows code. Tests: ``tests/cli/test_new.py``.
"""

from __future__ import annotations

import traceback
from html import escape
from typing import TYPE_CHECKING

from citius._core import Response

if TYPE_CHECKING:
    from citius._core import Request

# The sources of one page; scripts and everything else are refused.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #222 }
pre { background: #f4f4f4; border-radius: 6px; overflow-x: auto; padding: 0.8rem }
h1 { color: #b00020; font-size: 1.3rem } h2 { font-size: 1rem } .own { border-left: 4px solid #b00020 }
"""


def traceback_page(request: Request, error: BaseException) -> Response:
    """The response to an exception: where it was raised, and from where that was called."""
    lines = "".join(traceback.format_exception(error))
    if "text/html" not in request.header("accept", ""):
        return Response(lines, 500)
    frames = traceback.extract_tb(error.__traceback__)
    shown = "".join(_shown(frame) for frame in reversed(frames))
    title = escape(f"{type(error).__name__}: {error}")
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(request.method)} {escape(request.path)}</p>{shown}"
        f"<h2>Traceback</h2><pre>{escape(lines)}</pre></html>"
    )
    headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
    return Response(page, 500, headers, "text/html; charset=utf-8")


def _shown(frame: traceback.FrameSummary) -> str:
    """One step of the traceback; those of the application stand out."""
    kind = "" if "site-packages" in frame.filename else "own"
    where = f"{frame.name} — {frame.filename}:{frame.lineno}"
    return f'<h2>{escape(where)}</h2><pre class="{kind}">{escape(frame.line or "")}</pre>'
