"""The code of a remote procedure call over HTTP, behind its response, for the access log and the metrics.

A response whose trailer section is a ``Trailers`` is logged and counted with the code; of one of a procedure
without it the status of HTTP decides (citius-observe, rpc.rs). Tests: ``tests/rpc/test_rpc_status.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

NUMBERS: Final = {
    "ok": 0, "canceled": 1, "unknown": 2, "invalid_argument": 3, "deadline_exceeded": 4, "not_found": 5,
    "already_exists": 6, "permission_denied": 7, "resource_exhausted": 8, "failed_precondition": 9,
    "aborted": 10, "out_of_range": 11, "unimplemented": 12, "internal": 13, "unavailable": 14,
    "data_loss": 15, "unauthenticated": 16,
}  # fmt: skip
"""gRPC's numbers of Connect's codes."""


class Trailers(list[tuple[str, str]]):
    """A trailer section, and the code of the call."""

    def __init__(self, fields: Iterable[tuple[str, str]], rpc_code: int) -> None:
        super().__init__(fields)
        self.rpc_code = rpc_code
