"""One request by httpx, and what of its answer two servers have in common.

What a server adds by itself (`Date`, `Server`, how the end of a body is told) is its own affair; all else
is the application's and has to come through unchanged. Fields of different names may change places (RFC
9110 §5.3), those of one name may not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import httpx
from servers import Running

OWN = frozenset(
    {"date", "server", "connection", "keep-alive", "transfer-encoding", "content-length", "expires"}
)
DRAWN = re.compile(
    r"(?<=session=)[^;]*|(?<=sessionid=)[^;]*|(?<=csrftoken=)[^;]*|(?<=expires=)[^;]*"
    r"|(?<=boundary=)[0-9a-f]{13,}"
)
"""Parts of header fields that are drawn."""
HOST = "shop.test"


@dataclass(frozen=True, slots=True)
class ComparedResponse:
    """An answer without what is drawn or the server's own."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes
    length: str | None
    """`Content-Length` where no body says it: of answers to HEAD, and 304."""

    def __getitem__(self, name: str) -> str:
        return dict(self.fields)[name]


class Client(httpx.Client):
    """One connection, as long as the server keeps it."""

    def __init__(self, server: Running, **options: Any) -> None:
        super().__init__(
            base_url=server.url, headers={"host": HOST, "user-agent": "test"}, timeout=20, **options
        )

    def ask(self, method: str, path: str, **options: Any) -> ComparedResponse:
        """Ask, and take the whole answer."""
        return seen(self.request(method, path, **options))


def ask(server: Running, method: str, path: str, **options: Any) -> ComparedResponse:
    """One request on a connection of its own."""
    with Client(server) as client:
        return client.ask(method, path, **options)


def seen(response: httpx.Response) -> ComparedResponse:
    """What is compared of an answer."""
    lines = [
        (name.decode().lower(), value.decode("latin-1")) for name, value in response.headers.raw
    ]
    lines.sort(key=lambda line: line[0])
    fields = tuple((name, DRAWN.sub("…", value)) for name, value in lines if name not in OWN)
    has_body = response.request.method != "HEAD" and response.status_code not in (204, 304)
    # A 204 has no length (RFC 9110 §8.6), though some say 0.
    length = response.headers.get("content-length") if not has_body else None
    if response.status_code == 204:
        length = None
    body = response.content
    if "multipart/byteranges" in response.headers.get("content-type", ""):
        body = re.sub(rb"(?<=--)[0-9a-f]{13,}", b"drawn", body)
    return ComparedResponse(response.status_code, fields, body, length)
