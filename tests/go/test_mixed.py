"""Threads, greenlets, asyncio and uvloop on the same channels: nothing lost, nothing twice."""

from __future__ import annotations

import pytest
from places import check_alone, program

STORM = program("mixed_parties")


@pytest.mark.parametrize("capacity", [0, 1, 10])
def test_nothing_is_lost_between_all_of_them(capacity: int) -> None:
    pytest.importorskip("gevent")
    assert check_alone(STORM, str(capacity)) == "all 4200\n"
