"""How SQLAlchemy's types go to PostgreSQL and come back.

``citius.pg`` takes and returns Python's objects by the types that the server says, so a parameter is cast to
the type that SQLAlchemy has for it. What is left to convert is JSON with an encoder of the engine's, decimals
that are floats, ranges, and arrays of enums.
"""

# SQLAlchemy's dialects have no types of their own.
# pyright: basic

from __future__ import annotations

import decimal
import ipaddress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import exc
from sqlalchemy.dialects.postgresql import base, json, pg_catalog, ranges
from sqlalchemy.dialects.postgresql.array import ARRAY
from sqlalchemy.dialects.postgresql.types import BYTEA, CIDR, CITEXT, INET
from sqlalchemy.engine import processors
from sqlalchemy.sql import sqltypes

from citius.pg.sqlalchemy import array_text, range_text

if TYPE_CHECKING:
    from collections.abc import Callable

    Processor = Callable[[Any], Any] | None

# float4, float8 and arrays of them; numeric, the integers and arrays of these.
_FLOATS = (700, 701, 1021, 1022)
_WHOLE = (20, 21, 23, 26, 1005, 1007, 1016, 1231, 1700)


def _cast(kind: type) -> type:
    """The type with its parameters cast to it, so that the server knows what they are."""
    return type(f"Citius{kind.__name__}", (kind,), {"render_bind_cast": True})


class Date(sqltypes.Date):
    """A ``date``; of a ``datetime``, which is one too, its day."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Processor:
        """What a parameter is converted by."""
        return lambda value: value.date() if isinstance(value, datetime) else value


class Interval(base.INTERVAL):
    """A ``timedelta``."""

    render_bind_cast = True

    @classmethod
    def adapt_emulated_to_native(cls, interval: Any, **_: Any) -> Interval:
        """The type for a generic ``Interval``."""
        return cls(precision=interval.second_precision)


class _NumericValues(sqltypes.NumericCommon):
    """``numeric`` is ``Decimal``, the types of IEEE 754 are ``float``."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Processor:
        """What a parameter is converted by."""
        return None

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """What a value of a row is converted by."""
        if coltype not in (*_FLOATS, *_WHOLE):
            raise exc.InvalidRequestError(f"not a numeric type of PostgreSQL: {coltype}")
        if self.asdecimal and coltype in _FLOATS:
            scale: Any = self._effective_decimal_return_scale
            return processors.to_decimal_processor_factory(decimal.Decimal, scale)
        return processors.to_float if not self.asdecimal and coltype in _WHOLE else None


class Numeric(_NumericValues, sqltypes.Numeric):
    """Declared as ``NUMERIC``."""


class Float(_NumericValues, sqltypes.Float):
    """Declared as ``FLOAT``."""


class _JSONValues:
    """JSON is decoded by ``citius.pg``, and encoded unless the engine has a ``json_serializer``."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Processor:
        """What a parameter is converted by."""
        made = super().bind_processor(dialect)  # type: ignore[misc]
        if made is None:
            return None

        def encoded(value: Any) -> bytes | None:
            text = made(value)
            # Bytes are JSON; text would be a JSON string.
            return text.encode() if isinstance(text, str) else text

        return encoded

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """What a value of a row is converted by."""
        decode = dialect._json_deserializer
        if decode is None:
            return None
        return lambda value: None if value is None else decode(msgspec.json.encode(value).decode())


class JSON(_JSONValues, json.JSON):
    """``json``."""


class JSONB(_JSONValues, json.JSONB):
    """``jsonb``."""


class JSONIntIndex(sqltypes.JSON.JSONIntIndexType):
    """An index of an array."""

    __visit_name__ = "json_int_index"
    render_bind_cast = True


class JSONStrIndex(sqltypes.JSON.JSONStrIndexType):
    """A key of an object."""

    __visit_name__ = "json_str_index"
    render_bind_cast = True


class JSONPath(json.JSONPathType):
    """A path as ``text[]``, or as the language of paths if it is a string."""

    def bind_processor(self, dialect: Any) -> Processor:
        """What a parameter is converted by."""
        return lambda value: value if isinstance(value, str) else [str(one) for one in value or ()]


# Arrays of these go and come as lists: their types have the same identity in every database.
_KNOWN_ELEMENTS = (
    sqltypes.String,
    sqltypes.Integer,
    sqltypes.Numeric,
    sqltypes.Float,
    sqltypes.Boolean,
    sqltypes.Date,
    sqltypes.Time,
    sqltypes.DateTime,
    sqltypes.Interval,
    sqltypes.Uuid,
    sqltypes.JSON,
    sqltypes.LargeBinary,
    base.INTERVAL,
    base.OID,
)


class Array(ARRAY):
    """A list; one whose elements have a type of the database's own goes as text."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Processor:
        """What a parameter is converted by."""
        made = super().bind_processor(dialect)
        if self._has_known_elements(dialect):
            return made

        def as_text(value: Any) -> str | None:
            return None if value is None else array_text.encode(made(value) if made else value)

        return as_text

    def _has_known_elements(self, dialect: Any) -> bool:
        item = self.item_type.dialect_impl(dialect)
        return isinstance(item, _KNOWN_ELEMENTS) and not self._against_native_enum


class Inet(INET):
    """Text; an address, or one with its network, if the engine has ``native_inet_types=True``."""

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """What a value of a row is converted by."""
        return _address if dialect._native_inet_types else None


class Cidr(CIDR):
    """Text; a network if the engine has ``native_inet_types=True``."""

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """What a value of a row is converted by."""
        if not dialect._native_inet_types:
            return None
        return lambda value: None if value is None else ipaddress.ip_network(value)


def _address(value: str | None) -> object:
    if value is None:
        return None
    return ipaddress.ip_interface(value) if "/" in value else ipaddress.ip_address(value)


class Range(ranges.AbstractSingleRangeImpl):
    """``Range`` of SQLAlchemy; it goes in the text format."""

    def bind_processor(self, dialect: Any) -> Processor:
        """What a parameter is converted by."""
        return lambda value: range_text.encode(value) if isinstance(value, ranges.Range) else value

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """What a value of a row is converted by."""
        return lambda value: None if value is None else range_text.of(value)


class MultiRange(ranges.AbstractMultiRangeImpl):
    """``MultiRange`` of SQLAlchemy; it goes in the text format."""

    def bind_processor(self, dialect: Any) -> Processor:
        """What a parameter is converted by."""

        def encoded(value: Any) -> str | None:
            if value is None or isinstance(value, str):
                return value
            return "{" + ",".join(map(range_text.encode, value)) + "}"

        return encoded

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """What a value of a row is converted by."""
        return lambda value: None if value is None else range_text.multi_of(value)


class _Vector:
    """Integers with spaces between them, in columns of the catalogue."""

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """What a value of a row is converted by."""
        return lambda value: None if value is None else [int(one) for one in value.split()]


class Int2Vector(_Vector, pg_catalog.INT2VECTOR):
    """``int2vector``."""

    cache_ok = True


class OidVector(_Vector, pg_catalog.OIDVECTOR):
    """``oidvector``."""

    cache_ok = True


COLSPECS: dict[Any, Any] = {
    **base.PGDialect.colspecs,
    **{
        kind: _cast(kind)
        for kind in (
            sqltypes.String,
            sqltypes.CHAR,
            sqltypes.Time,
            sqltypes.DateTime,
            sqltypes.Boolean,
            sqltypes.Integer,
            sqltypes.BigInteger,
            sqltypes.SmallInteger,
            base.OID,
            base.REGCLASS,
            base.REGCONFIG,
        )
    },
    sqltypes.ARRAY: Array,
    CITEXT: CITEXT,
    INET: Inet,
    CIDR: Cidr,
    sqltypes.Date: Date,
    sqltypes.Interval: Interval,
    base.INTERVAL: Interval,
    sqltypes.Numeric: Numeric,
    sqltypes.Float: Float,
    sqltypes.LargeBinary: _cast(BYTEA),
    sqltypes.Enum: _cast(base.ENUM),
    sqltypes.JSON: JSON,
    json.JSONB: JSONB,
    sqltypes.JSON.JSONPathType: JSONPath,
    sqltypes.JSON.JSONIndexType: sqltypes.JSON.JSONIndexType,
    sqltypes.JSON.JSONIntIndexType: JSONIntIndex,
    sqltypes.JSON.JSONStrIndexType: JSONStrIndex,
    pg_catalog.INT2VECTOR: Int2Vector,
    pg_catalog.OIDVECTOR: OidVector,
    ranges.AbstractSingleRange: Range,
    ranges.AbstractMultiRange: MultiRange,
}
