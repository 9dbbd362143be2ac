"""Types that a database defines: each is looked up once, and codecs convert its values.

A statement that has a parameter or a column of an unknown type waits while its session asks; the answer is
kept for all sessions of the pool. Tests: ``tests/pg/test_own_types.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from citius.errors import ConfigError
from citius.observability import logging
from citius.pg.errors import ServerError
from citius.unknown_options import known_options

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Iterable, Sequence

    from citius._core import PgConnection, PgPool, PgTypes

_T = TypeVar("_T")

# With the types that they are made of: elements, bounds, fields, what is below a domain.
_LOOK_UP = """
WITH RECURSIVE wanted(oid) AS (
    SELECT unnest($1::oid[])
  UNION
    SELECT part.oid FROM wanted JOIN pg_catalog.pg_type t ON t.oid = wanted.oid CROSS JOIN LATERAL (
        SELECT t.typelem AS oid WHERE t.typelem <> 0 AND t.typlen = -1 AND t.typcategory = 'A'
      UNION ALL SELECT t.typbasetype WHERE t.typtype = 'd'
      UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid{multirange}
      UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ) part
)
SELECT t.oid,
    CASE (SELECT p.proname FROM pg_catalog.pg_proc p WHERE p.oid = t.typsend AND t.typtype = 'b')
        WHEN 'hstore_send' THEN 'hstore'
        WHEN 'citextsend' THEN 'e'
        ELSE t.typtype::text
    END,
    CASE WHEN t.typlen = -1 AND t.typcategory = 'A' THEN t.typelem ELSE 0 END,
    t.typdelim::text, t.typbasetype,
    coalesce((SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid{multirange}), 0),
    ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attnum),
    ARRAY(SELECT a.atttypid FROM pg_catalog.pg_attribute a
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attnum)
FROM wanted JOIN pg_catalog.pg_type t ON t.oid = wanted.oid
"""
_NAMED = """
SELECT place, pg_catalog.to_regtype(name)::oid FROM (VALUES {names}) AS named(place, name)
WHERE pg_catalog.to_regtype(name)::oid = ANY ($1::oid[])
"""
# Below are those that every server has under the same number.
_FIRST_OF_DATABASE = 12_000
_FIRST_WITH_MULTIRANGES = 14
# No such table, column, function or syntax, or no right to read: the next look-up would fail as well.
_NO_CATALOG = {"42P01", "42703", "42883", "42601", "42501", "0A000"}


@known_options
@dataclass(frozen=True, slots=True)
class Codec(Generic[_T]):
    """How values of a type of the database become objects, and objects values.

    Both functions stand on what there is without them: ``decode`` is called with the object that a column
    would be, ``encode`` returns an object that a parameter could be. They are used within arrays, ranges and
    composite types too. JSON of ``fetch_json`` is written without them.
    """

    type_name: str
    """``mood``, ``"Mood"``, ``shop.address``: as ``'…'::regtype`` takes it."""
    decode: Callable[[Any], _T] | None = None
    encode: Callable[[_T], object] | None = None
    as_text: bool = False
    """``decode`` gets, and ``encode`` returns, the text format of the type."""

    @classmethod
    def enum(cls, type_name: str, members: type[enum.Enum]) -> Codec[Any]:
        """Members of an ``Enum`` for the labels of an enumeration; their values are the labels."""
        decode: Callable[[Any], Any] = members
        return Codec(type_name, decode, _value_of)

    @classmethod
    def composite(cls, type_name: str, of: Callable[..., object]) -> Codec[Any]:
        """Objects of a class for a composite type: it is called with the fields, which are its attributes."""

        def decode(fields: Iterable[object]) -> Any:
            return of(*fields)

        return Codec(type_name, decode)


def _value_of(member: Any) -> Any:
    return getattr(member, "value", member)


async def look_up(
    core: PgPool,
    types: PgTypes,
    session: PgConnection,
    asked: Sequence[int],
    version: str,
    codecs: Sequence[Codec[Any]] = (),
) -> None:
    """Ask what types are; those of a server without the catalogs for it are text.

    A type that was dropped and created has another number; it gets the codec that there is for its name.

    Raises:
        PostgresError: It could not be found out this time.
    """
    # "17.2 (Debian 17.2-1)", "18beta1", "19devel"
    number = re.match(r"[0-9]{1,9}", version)
    major = int(number[0]) if number else 0
    multirange = " OR r.rngmultitypid = t.oid" if major >= _FIRST_WITH_MULTIRANGES else ""
    rows: list[Any]
    try:
        rows = await core.look_up(_LOOK_UP.format(multirange=multirange), list(asked), session)
    except ServerError as error:
        if error.sqlstate not in _NO_CATALOG:
            raise
        logging.warning(f"PostgreSQL: {error}; values of types of its own come as text")
        rows = []
    found: list[tuple[int, int]] = []
    if codecs and rows:
        quoted = [codec.type_name.replace("'", "''") for codec in codecs]
        names = ", ".join(f"({place}, '{name}')" for place, name in enumerate(quoted))
        sql = _NAMED.format(names=names)
        found = await core.look_up(sql, [row[0] for row in rows], session)
    # Other sessions see a type together with its codec.
    types.learn(list(asked), [row for row in rows if row[0] >= _FIRST_OF_DATABASE])
    for place, oid in found:
        codec = codecs[place]
        types.set_codec(oid, codec.decode, codec.encode, codec.as_text)


async def set_codecs(
    core: PgPool, types: PgTypes, session: PgConnection, codecs: Sequence[Codec[Any]]
) -> None:
    """Find the types of codecs and have them used.

    Raises:
        ConfigError: The database has no such type.
    """
    names = [codec.type_name for codec in codecs]
    sql = (
        "SELECT pg_catalog.to_regtype(name)::oid "
        "FROM unnest($1::text[]) WITH ORDINALITY AS named(name, place) ORDER BY place"
    )
    found: Any = await core.fetch(sql, names, session=session)
    for codec, (oid,) in zip(codecs, found, strict=True):
        if oid is None:
            raise ConfigError(
                f"the database has no type {codec.type_name!r}, for which there is a codec"
            )
        types.set_codec(oid, codec.decode, codec.encode, codec.as_text)
