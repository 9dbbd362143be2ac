"""Errors of the protocol: exceptions in, JSON-RPC error objects and HTTP statuses out.

``Fault`` ends a request with a JSON-RPC error; ``ToolError`` is what a tool raises for the model to read.
Tests: ``tests/mcp/test_http.py``.
"""

from __future__ import annotations

from typing import Any, Final

from citius.errors import CitiusError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""Of versions before 2026-07-28, which has INVALID_PARAMS for it."""
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

STATUSES: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""HTTP statuses of errors since 2026-07-28; 200 for all others."""


class ToolError(CitiusError):
    """A tool has failed: the text is for the model, which can try something else.

    The result has ``isError``. What is in other exceptions was not written for strangers: they are logged,
    and the model reads that the tool has failed.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Fault(Exception):
    """A JSON-RPC error.

    Args:
        code: Its code.
        message: A sentence.
        data: What else is known.
        status: The HTTP status; by the code without it.
    """

    def __init__(
        self, code: int, message: str, data: object = None, *, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status

    def error(self) -> dict[str, Any]:
        """The error object."""
        made: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            made["data"] = self.data
        return made
