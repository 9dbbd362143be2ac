"""What all commands are made with: one function that makes a call, and the types of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from citius.redis.commands.scanning import Scan
from citius.unknown_options import check_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from citius.redis.calls import Call

Data = TypeVar("Data", bytes, str)
"""What strings of replies are: ``bytes``, or ``str`` with ``decode_responses=True``."""

Key: TypeAlias = "str | bytes"
Word: TypeAlias = "str | bytes | bytearray | memoryview | int | float"
"""What an argument of a command can be. Objects are encoded first, as ``set_msgpack`` and ``set_json`` do."""
Words: TypeAlias = "Mapping[str, Word] | Mapping[bytes, Word] | Mapping[int, Word]"
Scores: TypeAlias = "Mapping[str, float] | Mapping[bytes, float] | Mapping[int, float]"
Ids: TypeAlias = "Mapping[str, str] | Mapping[bytes, str]"


class Caller(Generic[Data]):
    """Something that sends commands, or keeps them for a transaction."""

    def _call(
        self,
        *words: Word,
        as_: Any = None,
        then: Callable[[Any], Any] | None = None,
        blocks_ms: int | None = None,
        node: int | None = None,
    ) -> Call[Any]:
        """A command.

        Args:
            words: Its name and arguments.
            as_: What strings of the reply become: ``str``, ``bytes``, ``int``, ``float``, or what a function
                of bytes returns.
            then: ``bool``: whether the reply is a status or not 0; or a function of the reply's value.
            blocks_ms: How long the server may keep it waiting, if it is one of those; ``None`` without an
                end.
            node: The number of the server that it goes to, whatever its key is.
        """
        raise self.not_open()

    def _nodes(self) -> list[int | None]:
        """The servers that have keys; ``None``: any."""
        return [None]

    def _scan(
        self,
        portion: Callable[[bytes, int | None], Call[Any]],
        elements: Callable[[Any], list[Any]],
        nodes: Callable[[], list[int | None]] = lambda: [None],
    ) -> Scan[Any]:
        """An iteration over what comes a portion at a time; each is a cursor and what ``elements`` reads."""
        return Scan(portion, elements, nodes)

    def not_open(self) -> BaseException:
        """What a method raises when commands cannot be sent."""
        raise NotImplementedError


def pairs(mapping: Mapping[Any, Any]) -> list[Any]:
    """Keys and values in turn."""
    return [word for pair in mapping.items() for word in pair]


def options(*named: tuple[str, Word | None]) -> list[Word]:
    """Names and values of those options that are not ``None``."""
    return [word for name, value in named if value is not None for word in (name, value)]


def flags(*named: tuple[str, bool]) -> list[Word]:
    """The names of those flags that are set.

    Raises:
        ConfigError: One is neither ``True`` nor ``False``: the text ``"no"`` would be true.
    """
    words: list[Word] = []
    for name, is_set in named:
        if is_set is False:
            continue
        check_flag(name, is_set)
        words.append(name)
    return words


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither ``True`` nor ``False``.

    Raises:
        ConfigError: It is not.
    """
    if value is not True and value is not False:
        check_value("a command", name.lower(), value, "bool")


def counted(keys: Iterable[Key]) -> list[Word]:
    """The number of keys, and the keys."""
    found = list(keys)
    return [len(found), *found]


def milliseconds(seconds: float) -> int | None:
    """How long a command with this timeout may be kept waiting; 0 means without an end."""
    return round(seconds * 1000) if seconds else None


def listed(keys: Key | Iterable[Key]) -> list[Key]:
    """One key, or several, as a list."""
    return [keys] if isinstance(keys, str | bytes) else list(keys)
