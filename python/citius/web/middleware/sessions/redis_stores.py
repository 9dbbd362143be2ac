"""Stores in Redis, which are the cluster's (``citius.cluster``)."""

from citius.cluster.redisbuckets import RedisBuckets
from citius.cluster.redissessions import RedisStore

__all__ = ["RedisBuckets", "RedisStore"]
