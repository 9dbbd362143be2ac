"""Commands as methods with types, over ``execute``, which takes any command.

Names and arguments are those of redis-py where it has them. What a method returns is a ``Call``: it is sent
when it is awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from citius.redis.commands.base import Data
from citius.redis.commands.hashes import HashCommands
from citius.redis.commands.keys import KeyCommands
from citius.redis.commands.lists import ListCommands
from citius.redis.commands.scripting import ScriptingCommands
from citius.redis.commands.server import ServerCommands
from citius.redis.commands.sets import SetCommands
from citius.redis.commands.sorted_sets import SortedSetCommands
from citius.redis.commands.streams import StreamCommands
from citius.redis.commands.strings import StringCommands

if TYPE_CHECKING:
    from citius.redis.calls import Call
    from citius.redis.commands.base import Word

_T = TypeVar("_T")


class Commands(
    KeyCommands[Data],
    StringCommands[Data],
    HashCommands[Data],
    ListCommands[Data],
    SetCommands[Data],
    SortedSetCommands[Data],
    StreamCommands[Data],
    ScriptingCommands[Data],
    ServerCommands[Data],
):
    """All commands."""

    @overload
    def execute(self, *words: Word) -> Call[Any]: ...
    @overload
    def execute(self, *words: Word, as_: type[_T]) -> Call[Any]: ...
    def execute(self, *words: Word, as_: Any = None) -> Call[Any]:
        """Any command: ``execute("OBJECT", "FREQ", key)``.

        Strings of the reply are ``bytes``, or ``str`` with ``decode_responses=True``, or what ``as_`` says:
        ``str``, ``bytes``, ``int``, ``float``. Other values are those of RESP3: ``int``, ``float``, ``bool``,
        ``None``, lists, sets, dicts; statuses are ``str``.

        Raises:
            ValueError: The command would change what all commands share: its connection.
        """
        return self._call(*words, as_=as_)
