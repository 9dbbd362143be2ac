"""SQLAlchemy's dialect on ``citius.pg``: ``create_async_engine("postgresql+citius://app@localhost/shop")``.

dialect.py is what SQLAlchemy asks for by that name; types.py says how values go in and out; dbapi.py is the
face of PEP 249 that SQLAlchemy calls, around one session. SQLAlchemy pools these sessions. Tests:
tests/pg/test_sqlalchemy.py, and SQLAlchemy's own by ``scripts/sqlalchemy-suite``.
"""

from __future__ import annotations

from citius.pg.sqlalchemy.dialect import CitiusDialect

__all__ = ["CitiusDialect"]
