"""A megabyte of one block after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response


def check(response: Response, target: str) -> None:
    """Compare all of it."""
    expect(f"download, {target}", b"0123456789abcdef" * 62_500, response.body)
