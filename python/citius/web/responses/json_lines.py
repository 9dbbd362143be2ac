"""JSON Lines: an iterator of values in, one of lines out, each the JSON of a value.

The response of a handler that is annotated with ``Iterator[Model]`` or ``AsyncIterator[Model]``. The values
are made to fit the model one by one. Tests: ``tests/gateway/test_json_lines.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from citius.web.declarations import codecs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

MEDIA_TYPE: Final = "application/jsonl"


def json_lines(values: Any, keep: Callable[[Any], Any] | None) -> Any:
    """The lines of an iterable or an asynchronous iterable.

    Args:
        values: What a handler has returned.
        keep: Makes a value fit the declared type; ``None`` for types without fields.
    """
    if hasattr(values, "__aiter__"):
        return _AsyncLines(values.__aiter__(), keep)
    return _Lines(iter(values), keep)


def _line(value: Any, keep: Callable[[Any], Any] | None) -> bytes:
    return codecs.encode_json(value if keep is None else keep(value)) + b"\n"


class _Lines:
    """No generator, which would not close its source if it has not begun."""

    __slots__ = ("_keep", "_values")

    def __init__(self, values: Iterator[Any], keep: Callable[[Any], Any] | None) -> None:
        self._values = values
        self._keep = keep

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> bytes:
        return _line(next(self._values), self._keep)

    def close(self) -> None:
        """End the source."""
        close = getattr(self._values, "close", None)
        if close is not None:
            close()


class _AsyncLines:
    """JSON Lines of an asynchronous iterator."""

    __slots__ = ("_keep", "_values")

    def __init__(self, values: AsyncIterator[Any], keep: Callable[[Any], Any] | None) -> None:
        self._values = values
        self._keep = keep

    def __aiter__(self) -> _AsyncLines:
        return self

    async def __anext__(self) -> bytes:
        return _line(await self._values.__anext__(), self._keep)

    async def aclose(self) -> None:
        """End the source."""
        aclose = getattr(self._values, "aclose", None)
        if aclose is not None:
            await aclose()
