"""Services that a contestant may need, and whether this machine has them.

``processes.services`` starts, fills and stops them.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

ServiceName = Literal["postgresql", "postgresql-arena", "redis", "upstream", "origin"]


def missing(names: Iterable[str]) -> str | None:
    """Return why a service cannot be started on this machine, ``None`` if all can."""
    if set(names) & set(DATABASES) and postgresql_binaries() is None:
        return "needs PostgreSQL's initdb and postgres (Debian: postgresql)"
    if "redis" in names and redis_server() is None:
        return "needs redis-server (Debian: redis-server)"
    if "upstream" in names and haproxy() is None:
        return "needs haproxy (Debian: haproxy)"
    return None


def haproxy() -> str | None:
    """Return the program that is the service that others call."""
    return shutil.which("haproxy")


def redis_server() -> str | None:
    """Return the program, Redis' or Valkey's."""
    return shutil.which("redis-server") or shutil.which("valkey-server")


def postgresql_binaries() -> Path | None:
    """Return the directory of ``initdb`` and ``postgres``, the newest where there are several."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    numbered = [(int(path.parts[-3]), path) for path in versions if path.parts[-3].isdigit()]
    return max(numbered)[1].parent if numbered else None


# Each is filled by the file of its name in ``lab/workloads``.
DATABASES: dict[ServiceName, str] = {"postgresql": "db", "postgresql-arena": "arena"}
