"""What was sent comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response


def check(response: Response, target: str) -> None:
    """Compare the message, in either of its encodings."""
    if response.content_type == "application/json":
        expect(f"Connect, {target}", "hello world", json.loads(response.body))
    else:
        expect(f"Connect, {target}", b"\n\x0bhello world", response.body)
