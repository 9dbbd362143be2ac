"""Stores of sessions without an engine, which are the cluster's (``citius.cluster``)."""

from citius.cluster.sessionstores import AsyncSessionStore, MemoryStore, SessionStore, SharedStore

__all__ = ["AsyncSessionStore", "MemoryStore", "SessionStore", "SharedStore"]
