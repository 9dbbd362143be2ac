"""What the agent of ``--acme`` tells its supervisor: lines of JSON on standard output."""

from __future__ import annotations

import json
from typing import Any


def say(level: str, message: str) -> None:
    """Have the supervisor log a message, as it logs its own."""
    print(json.dumps({"level": level, "message": message}), flush=True)


def finish(next_s: float) -> None:
    """End the round; the next one begins after this time."""
    print(json.dumps({"next_s": next_s}), flush=True)


def read(line: bytes) -> dict[str, Any]:
    """What a line says; nothing if it is none of the agent's."""
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        return {}
