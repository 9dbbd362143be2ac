"""One server per limit, with that limit lowered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rig import Server, application

APP = application("limits_app")


@pytest.fixture
def limited(serve) -> Callable[..., Server]:
    """``limited(head_bytes_max=100)``."""

    def start(**limits: int) -> Server:
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
        return serve(APP, *flags)

    return start
