"""For scripts/openai-suite: a plugin of pytest by which OpenAI's SDK calls by the connections of citius.http.

Clients of httpx2 get their transport by ``install()``. Tests are left out that say nothing about it: those
with ``respx2_mock``, which answers in httpcore2's place beneath httpx2's transport, and those of aiohttp.
"""

# pyright: basic

from __future__ import annotations

import os
from typing import Any

import citius.http.httpx
import httpx2

_counts = {"httpx2": 0}
_is_theirs = bool(os.environ.get("OPENAI_SUITE_THEIRS"))
if not _is_theirs:
    citius.http.httpx.install(httpx2)
_prepare = citius.http.httpx.Transport._prepare


def _prepare_counted(self: citius.http.httpx.Transport, request: Any) -> Any:
    _counts["httpx2"] += 1
    return _prepare(self, request)


# Of both transports.
citius.http.httpx._Base._prepare = _prepare_counted


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what says nothing about the transport."""
    out = [item for item in items if "respx2_mock" in item.fixturenames or "aiohttp" in item.name]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in set(out)]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many requests were sent, so that a suite that has sent none is seen."""
    terminalreporter.write_line(f"by citius.http: {_counts}")
    if not (_is_theirs or all(_counts.values())):
        terminalreporter._session.exitstatus = 1
