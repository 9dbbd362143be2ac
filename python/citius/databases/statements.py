"""What can be asked of a pool and of a transaction of ``citius.pg`` and ``citius.sqlite``.

An open pool or transaction has the methods of its engine as attributes, so that nothing stands in between;
without them it is not open.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from citius.databases.waiting import wait_for_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius.databases.templates import Statement

_T = TypeVar("_T")
_T1 = TypeVar("_T1")
_T2 = TypeVar("_T2")
_T3 = TypeVar("_T3")
_T4 = TypeVar("_T4")
_Row = TypeVar("_Row")
_Parameters: TypeAlias = "Iterable[tuple[Any, ...] | list[Any]]"
_Result_co = TypeVar("_Result_co", covariant=True)

METHODS = (
    "fetch", "fetch_many", "fetch_one", "fetch_value", "fetch_json", "fetch_json_one", "execute",
)  # fmt: skip


class Call(Coroutine[Any, Any, _Result_co]):
    """A statement; it is sent when it is awaited, or by ``start``. A coroutine for ``asyncio``."""

    @abstractmethod
    def start(self) -> None:
        """Send it without waiting for its result."""


class Statements:
    """Statements with parameters ``$1``, ``$2``, …, which travel beside the text and never in it."""

    def not_open(self) -> BaseException:
        """What a method raises now."""
        raise NotImplementedError

    @overload
    def fetch(self, sql: Statement, /, *arguments: object) -> Call[list[tuple[Any, ...]]]: ...
    @overload
    def fetch(self, sql: Statement, /, *arguments: object, as_: type[_Row]) -> Call[list[_Row]]: ...
    def fetch(self, sql: Statement, /, *arguments: object, as_: Any = None) -> Any:
        """All rows: as tuples; with ``as_`` as dicts or as objects of a class (a Struct, a dataclass)."""
        raise self.not_open()

    @overload
    def fetch_many(self, sql: str, rows: _Parameters, /) -> Call[list[tuple[Any, ...]]]: ...
    @overload
    def fetch_many(self, sql: str, rows: _Parameters, /, as_: type[_Row]) -> Call[list[_Row]]: ...
    def fetch_many(self, sql: str, rows: _Parameters, /, as_: Any = None) -> Any:
        """The rows of a statement that is executed once with each of ``rows``, one list for all.

        The executions are one request and one transaction: the first that fails undoes those before it, and
        those behind it are not made. It costs much less than as many calls of ``fetch``.
        """
        raise self.not_open()

    @overload
    def fetch_one(self, sql: Statement, /, *arguments: object) -> Call[tuple[Any, ...] | None]: ...
    @overload
    def fetch_one(
        self, sql: Statement, /, *arguments: object, as_: type[_Row]
    ) -> Call[_Row | None]: ...
    def fetch_one(self, sql: Statement, /, *arguments: object, as_: Any = None) -> Any:
        """The first row, or ``None``."""
        raise self.not_open()

    def fetch_value(self, sql: Statement, /, *arguments: object) -> Call[Any]:
        """The first column of the first row, or ``None``."""
        raise self.not_open()

    def fetch_json(
        self, sql: Statement, /, *arguments: object, items: str | None = None
    ) -> Call[bytes]:
        """All rows as a JSON array of objects, encoded without a Python object in between.

        With ``items`` an object that has the array as this member, and ``count``, the number of rows.
        A column ``"a.b"`` is the member ``b`` of an object ``a``.
        """
        raise self.not_open()

    def fetch_json_one(self, sql: Statement, /, *arguments: object) -> Call[bytes]:
        """The first row as a JSON object, or ``null``."""
        raise self.not_open()

    def execute(self, sql: Statement, /, *arguments: object) -> Call[int]:
        """Execute without rows; the number of those changed."""
        raise self.not_open()


# Typed as `asyncio.gather` is: statements that are named one by one keep their types.
@overload
async def gather(one: Call[_T1], two: Call[_T2], /) -> tuple[_T1, _T2]: ...
@overload
async def gather(one: Call[_T1], two: Call[_T2], three: Call[_T3], /) -> tuple[_T1, _T2, _T3]: ...
@overload
async def gather(
    one: Call[_T1], two: Call[_T2], three: Call[_T3], four: Call[_T4], /
) -> tuple[_T1, _T2, _T3, _T4]: ...
@overload
async def gather(*calls: Call[_T]) -> list[_T]: ...
async def gather(*calls: Call[Any]) -> Any:
    """Send several statements at once and wait for all; the first error is raised when all have ended.

    Costs less than ``asyncio.gather``, which makes a task for each.
    """
    return await wait_for_all(calls, "statements of a pool or transaction")
