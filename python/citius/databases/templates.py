"""Statements that are no plain strings: t-strings (PEP 750) and subclasses of ``str``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence


class TemplateLike(Protocol):
    """What a t-string is (``string.templatelib.Template``, since Python 3.14)."""

    @property
    def strings(self) -> Sequence[str]:
        """The texts between the interpolations, one more than of these."""
        ...

    @property
    def interpolations(self) -> Sequence[object]:
        """What is interpolated."""
        ...


Statement: TypeAlias = str | TemplateLike
"""A statement with ``$1``, ``$2``, … for its parameters, or a t-string that has them in itself."""


def render(sql: Any, arguments: tuple[object, ...]) -> tuple[str, tuple[object, ...]]:
    """A statement's text and its parameters; what a t-string interpolates are parameters, never text.

    Raises:
        TypeError: It is neither, or a t-string with further arguments, a conversion or a format.
    """
    if isinstance(sql, str):
        return str.__str__(sql), arguments
    kind: type[object] = type(sql)  # pyright: ignore[reportUnknownVariableType]
    if (kind.__module__, kind.__qualname__) != ("string.templatelib", "Template"):
        raise TypeError(f"a statement is a str or a t-string, got {kind.__name__}")
    if arguments:
        raise TypeError("a t-string has its parameters in itself; further arguments are not taken")
    text = sql.strings[0]
    for number, (part, following) in enumerate(
        zip(sql.interpolations, sql.strings[1:], strict=True), 1
    ):
        if part.conversion or part.format_spec:
            raise TypeError(
                f"{{{part.expression}}}: a parameter has no conversion or format; it is sent as it is"
            )
        text += f"${number}{following}"
    return text, tuple(part.value for part in sql.interpolations)
