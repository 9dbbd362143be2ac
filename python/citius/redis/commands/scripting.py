"""Scripts in Lua, and functions of libraries."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from citius.redis.commands.base import Caller, Data, flags
from citius.unknown_options import with_known_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Word

_T = TypeVar("_T")


class Script(Generic[Data]):
    """A script: sent by its hash, and in full when the server does not know it."""

    def __init__(self, caller: ScriptingCommands[Data], source: str, is_read_only: bool) -> None:
        self._caller, self._is_read_only = caller, is_read_only
        self.source = source
        self.sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()

    def __call__(
        self, keys: Sequence[Key] = (), args: Sequence[Word] = (), *, as_: type | None = None
    ) -> Call[Any]:
        """Execute it; what it returns.

        Args:
            keys: ``KEYS``.
            args: ``ARGV``.
            as_: What strings of the result are, as for ``get``.
        """
        return self._caller.call_script(self, (len(keys), *keys, *args), self._is_read_only, as_)


class ScriptingCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=scripting``."""

    @with_known_options
    def register_script(self, source: str, *, is_read_only: bool = False) -> Script[Data]:
        """A script that can be called: ``await script(keys=["k"], args=[1])``.

        Args:
            source: In Lua.
            is_read_only: It changes nothing, so that a replica may execute it.
        """
        return Script(self, source, is_read_only)

    def call_script(
        self, script: Script[Data], arguments: tuple[Any, ...], is_read_only: bool, as_: Any
    ) -> Call[Any]:
        """Execute a script; what ``Script`` calls."""
        return self._call("EVAL_RO" if is_read_only else "EVAL", script.source, *arguments, as_=as_)

    def eval(
        self,
        source: str,
        keys: Sequence[Key] = (),
        args: Sequence[Word] = (),
        *,
        as_: type | None = None,
    ) -> Call[Any]:
        """Execute a script that is sent in full. One that is executed often is better registered."""
        return self._call("EVAL", source, len(keys), *keys, *args, as_=as_)

    def script_load(self, source: str) -> Call[str]:
        """Have the server know a script; its hash."""
        return self._call("SCRIPT", "LOAD", source, as_=str)

    def script_exists(self, *hashes: str) -> Call[list[bool]]:
        """Whether the server knows scripts."""
        return self._call("SCRIPT", "EXISTS", *hashes, then=_booleans)

    def script_flush(self) -> Call[str]:
        """Have the server forget all scripts."""
        return self._call("SCRIPT", "FLUSH")

    def fcall(
        self,
        function: str,
        keys: Sequence[Key] = (),
        args: Sequence[Word] = (),
        *,
        as_: type | None = None,
    ) -> Call[Any]:
        """Call a function of a library."""
        return self._call("FCALL", function, len(keys), *keys, *args, as_=as_)

    def fcall_ro(
        self,
        function: str,
        keys: Sequence[Key] = (),
        args: Sequence[Word] = (),
        *,
        as_: type | None = None,
    ) -> Call[Any]:
        """Call a function that changes nothing."""
        return self._call("FCALL_RO", function, len(keys), *keys, *args, as_=as_)

    def function_load(self, code: str, *, replace: bool = False) -> Call[str]:
        """Have the server know a library; its name."""
        return self._call("FUNCTION", "LOAD", *flags(("REPLACE", replace)), code, as_=str)

    def function_delete(self, library: str) -> Call[str]:
        """Have the server forget a library."""
        return self._call("FUNCTION", "DELETE", library)

    def function_list(self, library: str | None = None) -> Call[list[dict[str, Any]]]:
        """The libraries that the server knows."""
        named = () if library is None else ("LIBRARYNAME", library)
        return self._call("FUNCTION", "LIST", *named, as_=str)


def _booleans(found: list[int]) -> list[bool]:
    return [bool(one) for one in found]
