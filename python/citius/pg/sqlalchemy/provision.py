"""For SQLAlchemy's test-suite, which imports it by this name: databases are made as for its own dialects."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql import provision

__all__ = ["provision"]
