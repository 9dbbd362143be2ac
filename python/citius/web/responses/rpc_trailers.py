"""The code of a remote procedure call over HTTP, behind its response, for the access log and the metrics.

A response whose trailer section is a ``Trailers`` is logged and counted with the code; of one of a procedure
without it the status of HTTP decides (citius-observe, rpc.rs). Tests: ``tests/rpc/test_rpc_status.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Trailers(list[tuple[str, str]]):
    """A trailer section, and the code of the call."""

    def __init__(self, fields: Iterable[tuple[str, str]], rpc_code: int) -> None:
        super().__init__(fields)
        self.rpc_code = rpc_code
