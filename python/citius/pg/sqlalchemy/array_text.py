"""Arrays in PostgreSQL's text format (section 8.15 of its manual): ``{1,NULL,"a,b"}``, ``{{1,2},{3,4}}``.

For elements whose type ``citius.pg`` takes as text: ``inet``, ``hstore``, types of extensions.
"""

from __future__ import annotations

from typing import cast


def encode(value: object) -> str:
    """The text of a list, or of a list of lists."""
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(encode, cast("list[object]", value))) + "}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
