"""What `citius dev` serves while the application cannot be imported or started: the reason.

Without it a request would wait for the next change of a file. The child that has failed serves it, or where
that one has ended another one (substitute.py). Tests: ``tests/cli/test_reload.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.web.application.app import App
from citius.web.openapi import OpenAPI
from citius.web.responses.debug_page import traceback_page

if TYPE_CHECKING:
    from citius._core import Request, Response
    from citius.errors import HTTPError


def failed_app(reason: BaseException) -> App:
    """An application that responds to every request with a 500 and the traceback of ``reason``."""
    app = App(openapi=OpenAPI(enabled=False))

    @app.exception_handler(404)
    def explain(request: Request, error: HTTPError) -> Response:
        return traceback_page(request, reason)

    return app
