"""Iteration over what a server has, a portion at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from citius.redis.calls import Call

_T = TypeVar("_T")


class Scan(Generic[_T]):
    """``async for key in redis.scan()``."""

    def __init__(
        self,
        portion: Callable[[bytes, int | None], Call[Any]],
        elements: Callable[[Any], list[_T]],
        nodes: Callable[[], list[int | None]],
    ) -> None:
        self._portion, self._elements, self._nodes = portion, elements, nodes

    async def __aiter__(self) -> AsyncIterator[_T]:
        for node in self._nodes():
            cursor, is_begun = b"0", False
            while not is_begun or cursor not in (b"0", "0"):
                is_begun = True
                cursor, found = await self._portion(cursor, node)
                for element in self._elements(found):
                    yield element


def in_pairs(found: list[Any]) -> list[tuple[Any, Any]]:
    """Elements that come in turn, as pairs."""
    return list(zip(found[::2], found[1::2], strict=True))
