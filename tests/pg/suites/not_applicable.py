"""Tests of another project that do not apply to ``citius.pg``: each is expected to fail, for a reason."""

# pyright: basic

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def expect_failures(items: list[Any], reasons: dict[str, tuple[str, ...]]) -> None:
    """Mark tests by their names; one that passes all the same is reported as such.

    One with `!` before its name is not executed, because of what it would leave in the database.

    Raises:
        pytest.UsageError: A name is that of no test, although all tests are there.
    """
    used: set[str] = set()
    for item in items:
        path, _, name = item.nodeid.partition("::")
        names = name.partition("[")[0], f"{Path(path).name}::{name}".partition("[")[0]
        for reason, patterns in reasons.items():
            for pattern in patterns:
                if pattern.lstrip("!") in names:
                    used.add(pattern)
                    run = not pattern.startswith("!")
                    item.add_marker(pytest.mark.xfail(reason=reason, run=run, strict=False))
    unused = {pattern for patterns in reasons.values() for pattern in patterns} - used
    if unused and len(items) > MOST_OF_A_SUITE:
        raise pytest.UsageError(f"expected to fail, but not there: {', '.join(sorted(unused))}")


MOST_OF_A_SUITE = 150
