"""Counters of a node: what it has sent over engines, what has come, and what went wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class Stats:
    """Counts since the start of the process; ``Cluster.stats``."""

    messages_sent: int = 0
    """Messages of rooms and broadcasts that the engine has confirmed."""
    messages_received: int = 0
    """Messages that were delivered here, those of this node too."""
    batches_sent: int = 0
    batches_received: int = 0
    duplicates: int = 0
    """Messages that had been delivered before: an engine that was asked again, or told again after a loss."""
    lost: int = 0
    """Messages of this node that found its queue full."""
    gaps: int = 0
    """Messages that are lost for this node: they found a full queue, or were no longer in the engine when it
    came back. Its members were told."""
    foreign: dict[str, int] = field(default_factory=dict[str, int])
    """Records, cached values and members that no node of this cluster has written, by what was wrong."""
    republished: int = 0
    """Messages sent again because the engine had lost its memory."""
    outages: int = 0
    """How often the engine was found away."""
    is_connected: bool = False
    queued_bytes: int = 0
    """Bytes that wait for the engine."""
    seams_away: int = 0
    """Seams (sessions, limits, caches, members) whose engine did not respond when they asked it last."""
    seam_outages: int = 0
    """How often one of them found its engine away."""
    limits_without_engine: int = 0
    """Requests that were limited by this server alone, or not at all, because the engine was away."""
    single_flight_waits: int = 0
    """Times that a value of a cache was waited for, because it was being made already."""
    cache_hits: int = 0
    cache_misses: int = 0

    def row(self) -> list[int]:
        """The counters as metrics have them (``citius.observability.metrics.CLUSTER``)."""
        return [
            int(self.is_connected), self.outages, self.queued_bytes, self.messages_sent,
            self.messages_received, self.lost, self.duplicates, self.republished, self.gaps,
            sum(self.foreign.values()), self.cache_hits, self.cache_misses, self.seams_away,
            self.seam_outages, self.limits_without_engine,
        ]  # fmt: skip

    def as_dict(self) -> dict[str, object]:
        """All of them by their names."""
        return asdict(self)
