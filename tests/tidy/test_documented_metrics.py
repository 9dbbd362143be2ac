"""The guide lists every metric of clusters."""

from __future__ import annotations

from pathlib import Path

from citius.cluster import Stats
from citius.observability.metrics import CLUSTER

GUIDE = Path(__file__).parents[2] / "docs/guides/observability.md"


def test_the_guide_lists_the_metrics_of_clusters() -> None:
    """Scale S13."""
    said = GUIDE.read_text()
    assert [name for name in CLUSTER if f"`citius_cluster_{name}`" not in said] == []
    assert len(Stats().row()) == len(CLUSTER)
