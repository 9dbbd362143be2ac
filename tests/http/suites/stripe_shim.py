"""For scripts/stripe-suite: a plugin of pytest by which Stripe's SDK calls by the connections of citius.http.

httpx's clients get their transport by ``install()``, sessions of requests by ``Adapter``. Stripe's own
client of httpx gives it an ``ssl.SSLContext``, with which it would keep httpx's transport: it gets the path
of the same bundle here. Where no asyncio loop runs (tests with trio) requests take httpx's own transport.
"""

# pyright: basic

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import citius.http.httpx
import requests
import stripe._http_client as http_client
from citius.http.requests import Adapter

citius.http.httpx.install()
_init_httpx = http_client.HTTPXClient.__init__


def _init_with_path(self: http_client.HTTPXClient, *args: Any, **options: Any) -> None:
    with patch.object(http_client.ssl, "create_default_context", lambda cafile: cafile):
        _init_httpx(self, *args, **options)


http_client.HTTPXClient.__init__ = _init_with_path
_counts = {"requests": 0, "httpx": 0}
_init_session = requests.Session.__init__


class _CountedAdapter(Adapter):
    def send(self, *args: Any, **options: Any) -> requests.Response:
        _counts["requests"] += 1
        return super().send(*args, **options)


def _init(self: requests.Session) -> None:
    _init_session(self)
    self.mount("http://", _CountedAdapter())
    self.mount("https://", _CountedAdapter())


requests.Session.__init__ = _init
_prepare = citius.http.httpx.Transport._prepare


def _prepare_counted(self: citius.http.httpx.Transport, request: Any) -> Any:
    _counts["httpx"] += 1
    return _prepare(self, request)


citius.http.httpx.Transport._prepare = _prepare_counted


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many requests were sent, so that a suite that has sent none is seen."""
    terminalreporter.write_line(f"by citius.http: {_counts}")
    if not all(_counts.values()):
        terminalreporter._session.exitstatus = 1
