"""Arrays in PostgreSQL's text format (section 8.15 of its manual): ``{1,NULL,"a,b"}``, ``{{1,2},{3,4}}``.

For elements whose type ``citius.pg`` does not know: enums, ``inet``, ``hstore``, types of extensions.
"""

from __future__ import annotations

import re
from typing import TypeAlias, cast

Elements: TypeAlias = "list[str | Elements | None]"

# An element in quotes, one without, or what is around them.
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)|([{}])|,', re.DOTALL)


def encode(value: object) -> str:
    """The text of a list, or of a list of lists."""
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(encode, cast("list[object]", value))) + "}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def decode(text: str) -> Elements:
    """The elements of an array, as text.

    Raises:
        ValueError: It is no array.
    """
    # Bounds that do not begin at 1 come before the array: [0:1]={a,b}.
    start = text.find("{")
    outer: Elements = []
    open_lists: list[Elements] = [outer]
    for token in _TOKEN.finditer(text, max(start, 0)):
        quoted, plain, brace = token.groups()
        if brace == "{":
            inner: Elements = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif brace == "}":
            open_lists.pop()
            if not open_lists:
                break
        elif quoted is not None:
            open_lists[-1].append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        elif plain is not None:
            open_lists[-1].append(None if plain == "NULL" else plain)
    if start < 0 or len(open_lists) != 1 or len(outer) != 1:
        raise ValueError(f"not an array: {text!r}")
    found = outer[0]
    assert isinstance(found, list), "it begins with a brace"
    return found
