"""Several statements or commands at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


async def wait_for_all(calls: Sequence[Any], expected: str) -> list[Any]:
    """Start all, and wait for all; the first error is raised when all have ended.

    Costs less than ``asyncio.gather``, which makes a task for each.

    Raises:
        TypeError: One of them is no call of a client; ``expected`` says what is.
    """
    for call in calls:
        if not hasattr(call, "start"):
            raise TypeError(f"expected {expected}, got {type(call).__name__}")
        call.start()
    results: list[Any] = []
    failure: Exception | None = None
    for call in calls:
        try:
            results.append(await call)
        except Exception as error:  # the first one is raised below
            failure = failure or error
    if failure is not None:
        raise failure
    return results
