"""A request as hooks and authentication see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.http.bodies import EMPTY
from citius.web.binding.headers import MutableHeaders

if TYPE_CHECKING:
    from citius.http.base import Fields
    from citius.http.bodies import Body
    from citius.http.urls import URL

_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Request:
    """A request that is about to be sent; its fields may be changed until then.

    Attributes:
        method: The method, in capitals.
        url: Where it goes.
        headers: Its fields, without ``Host`` and those of framing.
    """

    __slots__ = ("body", "headers", "is_elsewhere", "method", "secrets", "url")

    def __init__(
        self,
        method: str,
        url: URL,
        headers: MutableHeaders | None = None,
        body: Body = EMPTY,
    ) -> None:
        if not method or not _TOKEN.issuperset(method):
            raise ValueError(f"expected a method such as GET, got {method!r}")
        self.method, self.url, self.body = method.upper(), url, body
        self.headers = MutableHeaders() if headers is None else headers
        self.secrets: frozenset[str] = frozenset()
        """Names of fields that are for this origin only, besides those whose names say it."""
        self.is_elsewhere = False
        """Credentials of the application are for another origin: that of ``base_url``, or of before."""

    @property
    def content(self) -> bytes | None:
        """The body, if all of it is there; ``None`` for one that is sent piece by piece."""
        return self.body.data if self.body is not EMPTY else b""

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url}>"

    def fields(self) -> Fields:
        """What the transport gets."""
        return [*self.headers.multi_items()]
