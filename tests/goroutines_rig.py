"""Requests to compiled handlers of tests/goroutines that wait, and what they say of a failed call."""

from __future__ import annotations

import http.client
from urllib.parse import quote, urlencode

from rig import Server


def post(server: Server, path: str, body: bytes = b"", **query: object) -> str:
    """The text of a response with status 200."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", f"{path}?{urlencode(query, quote_via=quote)}", body)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 200, text
    return text


def failure(text: str) -> tuple[int, int, str]:
    """The status, the reason and the message of a failed call."""
    code, reason, why = text.split(" ", 2)
    return int(code), int(reason), why
