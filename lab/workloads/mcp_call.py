"""The result of the tool, as structured content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response


def check(response: Response, target: str) -> None:
    """Compare the sum, and the identifier of the request."""
    said = json.loads(response.body)
    expect(f"mcp, {target}", (7, {"total": 5}), (said["id"], said["result"]["structuredContent"]))
