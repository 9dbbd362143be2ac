"""Names that other packages have, and what to write in place of an import of them from ``citius``.

lazy.py imports this when a name is missing. Tests: ``tests/unit/test_public_names.py``.
"""

from __future__ import annotations

from typing import Final

INSTEAD: Final = {
    "HTTPException": "write HTTPError(404, …), or NotFound(…) and the like",
    "abort": "write raise HTTPError(404, …), or NotFound(…) and the like",
    **dict.fromkeys(("FastAPI", "Flask", "Quart", "Starlette", "Litestar", "Sanic"), "write App"),
    **dict.fromkeys(("Application", "Citius"), "write App"),
    **dict.fromkeys(("APIRouter", "Blueprint"), "write Router"),
    **dict.fromkeys(
        ("JSONResponse", "ORJSONResponse", "jsonify"), "return the value, or json_response(value)"
    ),
    "HTMLResponse": "write html_response(text)",
    "PlainTextResponse": "return the text, or Response(text)",
    "RedirectResponse": "write redirect(location)",
    "StreamingResponse": "write Response(iterator)",
    **dict.fromkeys(("FileResponse", "send_file"), "write file_response(path)"),
    "make_response": "write Response(content, status)",
    **dict.fromkeys(("BackgroundTasks", "BackgroundTask"), "write defer(request, function, …)"),
    "StaticFiles": "write app.static(prefix, directory)",
    **dict.fromkeys(("Jinja2Templates", "render_template"), "write Templates(directory)"),
    "url_for": "write app.url_for(name)",
    **dict.fromkeys(("request", "g", "session"), "take a parameter, request: Request"),
    "WebSocketDisconnect": "write ConnectionClosed",
    "status": "write the number",
    "TestClient": "write `from citius.testing import Client`",
    "Client": "write `from citius.testing import Client`, or that of citius.http or citius.rpc",
    "AsyncClient": "write `from citius.testing import AsyncClient`, or that of citius.rpc",
    "CORSMiddleware": "write `from citius.web.middleware import CORS`",
    **{
        name: f"write `from citius.web.middleware import {name}`"
        for name in ("CORS", "CSRF", "RateLimit", "Sessions", "Timeout", "TrustedHosts")
    },
    "RpcError": "write `from citius.rpc import RpcError`",
}
