"""HTML and SVG out of text: whatever is not markup already is escaped, so nothing can be forgotten."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Markup(str):
    """Text that is markup and stands as it is; any other text is escaped when it joins one."""

    __slots__ = ()


def el(tag: str, *children: object, **attributes: object) -> Markup:
    """Return an element.

    ``None`` children are left out, lists are their items. Attributes that are ``None`` or ``False``
    are left out, ``True`` stands without a value; ``class_`` is ``class``, ``data_x`` ``data-x``.
    """
    words = [tag]
    for name, value in attributes.items():
        name = name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words.append(f'{name}="{escape(str(value))}"')
    if tag in EMPTY:
        return Markup(f"<{' '.join(words)}>")
    inner = join(children)
    return Markup(f"<{' '.join(words)}>{inner}</{tag}>")


def join(children: Iterable[object], between: str = "") -> Markup:
    """Return children one after the other."""
    return Markup(between.join(_texts(children)))


def _texts(children: Iterable[object]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, list | tuple):
            yield from _texts(child)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(child, Markup):
            yield child
        else:
            yield escape(str(child))


EMPTY = ("br", "meta", "hr")
