"""Stores of sessions without an engine, which are the cluster's (``citius.cluster``)."""

from citius.cluster.sessionstores import (
    AsyncSessionStore,
    MemoryStore,
    SessionStore,
    SharedStore,
    Unreadable,
)

__all__ = ["AsyncSessionStore", "MemoryStore", "SessionStore", "SharedStore", "Unreadable"]
