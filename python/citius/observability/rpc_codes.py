"""Codes of remote procedure calls over HTTP: Connect's names and gRPC's numbers (citius-observe, rpc.rs)."""

from __future__ import annotations

from typing import Final

NUMBERS: Final = {
    "ok": 0, "canceled": 1, "unknown": 2, "invalid_argument": 3, "deadline_exceeded": 4, "not_found": 5,
    "already_exists": 6, "permission_denied": 7, "resource_exhausted": 8, "failed_precondition": 9,
    "aborted": 10, "out_of_range": 11, "unimplemented": 12, "internal": 13, "unavailable": 14,
    "data_loss": 15, "unauthenticated": 16,
}  # fmt: skip
"""gRPC's numbers of Connect's codes."""
