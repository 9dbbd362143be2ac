"""Functions made of text: a source in, the function out; tracebacks and debuggers show its lines.

The text goes to ``linecache`` under a name that no other text has, as ``attrs`` and ``doctest`` do.
Tests: ``tests/unit/test_generated.py``.
"""

from __future__ import annotations

import linecache
from typing import Any


def make_function(name: str, source: str, names: dict[str, Any], about: str) -> Any:
    """The function ``name`` that ``source`` defines.

    Args:
        name: Its name in the source.
        source: Text that defines it; what stands in it are identifiers that Python has accepted before.
        names: The global names of the source; the function is added to them.
        about: What it is for, as the name of its file in tracebacks: ``arguments of hello``.
    """
    file = f"<{about}>"
    number = 1
    # The text of a file is compared as well: what is made twice of one text has one entry.
    while file in linecache.cache and linecache.getlines(file) != source.splitlines(keepends=True):
        number += 1
        file = f"<{about}, {number}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), names)
    return names[name]
