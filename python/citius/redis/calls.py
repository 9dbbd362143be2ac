"""What a method of a client returns: a command on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, overload

from citius.databases.waiting import wait_for_all

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

_T = TypeVar("_T")
_T1 = TypeVar("_T1")
_T2 = TypeVar("_T2")
_T3 = TypeVar("_T3")
_Result_co = TypeVar("_Result_co", covariant=True)


class Call(Protocol[_Result_co]):
    """A command; it is sent when it is awaited or waited for, or by ``start``."""

    def __await__(self) -> Generator[object, object, _Result_co]:
        """The result, in a coroutine."""
        ...

    def wait(self) -> _Result_co:
        """The result, in a thread, a greenlet or a goroutine, which it stops until then."""
        ...

    def start(self) -> None:
        """Send it without waiting for its result."""
        ...


@overload
async def gather(one: Call[_T1], two: Call[_T2], /) -> tuple[_T1, _T2]: ...
@overload
async def gather(one: Call[_T1], two: Call[_T2], three: Call[_T3], /) -> tuple[_T1, _T2, _T3]: ...
@overload
async def gather(*calls: Call[_T]) -> tuple[_T, ...]: ...
async def gather(*calls: Call[Any]) -> tuple[Any, ...]:
    """Send several commands in one write and wait for all; the first error is raised when all have ended.

    Costs less than ``asyncio.gather``, which makes a task for each.
    """
    return tuple(await wait_for_all(calls, "commands of citius.redis"))
