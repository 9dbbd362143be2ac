//! Values of PostgreSQL's types, from their binary format.

use alloc::string::String;

use crate::fault::Fault;
use crate::numeric;
use crate::row::take_value;

/// How the values of a type are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the types' own names")]
pub enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    /// Text, and every type that is asked for in text format because it is not listed here.
    Text,
    /// A type that is not listed here: in text format.
    Other,
    Bytea,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    Json,
    Jsonb,
    /// An array of any of these but `Other`.
    Array,
}

impl Kind {
    /// The kind of a type by its identity in `pg_type`; those of built-in types never change.
    pub fn of(type_oid: u32) -> Self {
        match type_oid {
            16 => Self::Bool,
            17 => Self::Bytea,
            // name, text, xml, unknown, bpchar, varchar; not "char", which has a zero byte in the place of no character
            // in binary format.
            19 | 25 | 142 | 705 | 1042 | 1043 => Self::Text,
            20 => Self::Int8,
            21 => Self::Int2,
            23 => Self::Int4,
            26 => Self::Oid,
            114 => Self::Json,
            700 => Self::Float4,
            701 => Self::Float8,
            1082 => Self::Date,
            1083 => Self::Time,
            1114 => Self::Timestamp,
            1184 => Self::TimestampTz,
            1186 => Self::Interval,
            1266 => Self::TimeTz,
            1700 => Self::Numeric,
            2950 => Self::Uuid,
            3802 => Self::Jsonb,
            _ if Self::element_of(type_oid).is_some() => Self::Array,
            _ => Self::Other,
        }
    }

    /// The type of an array's elements, if `array_oid` is an array of a listed type.
    pub fn element_of(array_oid: u32) -> Option<u32> {
        Some(match array_oid {
            143 => 142,
            199 => 114,
            1000 => 16,
            1001 => 17,
            1002 => 18,
            1003 => 19,
            1005 => 21,
            1007 => 23,
            1009 => 25,
            1014 => 1042,
            1015 => 1043,
            1016 => 20,
            1021 => 700,
            1022 => 701,
            1028 => 26,
            1115 => 1114,
            1182 => 1082,
            1183 => 1083,
            1185 => 1184,
            1187 => 1186,
            1231 => 1700,
            1270 => 1266,
            2951 => 2950,
            3807 => 3802,
            _ => return None,
        })
    }

    /// Whether values are asked for in binary format.
    pub fn is_binary(self) -> bool {
        self != Self::Other
    }
}

/// A value of a row; the units are those of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `boolean`.
    Bool(bool),
    /// Integers of all lengths.
    Int(i64),
    /// `real`.
    Float4(f32),
    /// `double precision`.
    Float8(f64),
    /// `numeric` as decimal text; also `NaN`, `Infinity`, `-Infinity`.
    Numeric(String),
    /// Text.
    Text(&'a str),
    /// `bytea`.
    Bytes(&'a [u8]),
    /// Days since 2000-01-01; the least and the greatest are infinite.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// The same, and seconds west of UTC.
    TimeTz(i64, i32),
    /// Microseconds since 2000-01-01; the least and the greatest are infinite.
    Timestamp(i64),
    /// The same in UTC.
    TimestampTz(i64),
    /// A span of time.
    Interval(Interval),
    /// 16 bytes.
    Uuid([u8; 16]),
    /// The text of `json` or `jsonb`.
    Json(&'a str),
    /// An array.
    Array(Array<'a>),
}

/// A span of time; a month and a day have no fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub microseconds: i64,
}

const MALFORMED: Fault = Fault::Protocol("a value that is not of its column's type");

impl<'a> Value<'a> {
    /// Reads a value of a kind.
    ///
    /// # Errors
    /// The bytes are no value of that kind.
    #[inline]
    pub fn of(kind: Kind, bytes: &'a [u8]) -> Result<Self, Fault> {
        Ok(match kind {
            Kind::Bool => Self::Bool(array::<1>(bytes)? != [0]),
            Kind::Int2 => Self::Int(i16::from_be_bytes(array(bytes)?).into()),
            Kind::Int4 => Self::Int(i32::from_be_bytes(array(bytes)?).into()),
            Kind::Int8 => Self::Int(i64::from_be_bytes(array(bytes)?)),
            Kind::Oid => Self::Int(u32::from_be_bytes(array(bytes)?).into()),
            Kind::Float4 => Self::Float4(f32::from_be_bytes(array(bytes)?)),
            Kind::Float8 => Self::Float8(f64::from_be_bytes(array(bytes)?)),
            Kind::Text | Kind::Other => Self::Text(text(bytes)?),
            Kind::Bytea => Self::Bytes(bytes),
            Kind::Json => Self::Json(text(bytes)?),
            Kind::Jsonb => match bytes.split_first() {
                Some((1, json)) => Self::Json(text(json)?),
                _ => return Err(MALFORMED),
            },
            Kind::Uuid => Self::Uuid(array(bytes)?),
            Kind::Numeric => Self::Numeric(numeric::text_of(bytes)?),
            Kind::Date
            | Kind::Time
            | Kind::TimeTz
            | Kind::Timestamp
            | Kind::TimestampTz
            | Kind::Interval => Self::of_time(kind, bytes)?,
            Kind::Array => Self::Array(Array::of(bytes)?),
        })
    }

    fn of_time(kind: Kind, bytes: &[u8]) -> Result<Self, Fault> {
        Ok(match kind {
            Kind::Date => Self::Date(i32::from_be_bytes(array(bytes)?)),
            Kind::Time => Self::Time(i64::from_be_bytes(array(bytes)?)),
            Kind::Timestamp => Self::Timestamp(i64::from_be_bytes(array(bytes)?)),
            Kind::TimestampTz => Self::TimestampTz(i64::from_be_bytes(array(bytes)?)),
            Kind::TimeTz => {
                let (time, zone) = bytes.split_first_chunk().ok_or(MALFORMED)?;
                Self::TimeTz(i64::from_be_bytes(*time), i32::from_be_bytes(array(zone)?))
            }
            _ => {
                let (time, rest) = bytes.split_first_chunk().ok_or(MALFORMED)?;
                let (days, months) = rest.split_first_chunk().ok_or(MALFORMED)?;
                Self::Interval(Interval {
                    months: i32::from_be_bytes(array(months)?),
                    days: i32::from_be_bytes(*days),
                    microseconds: i64::from_be_bytes(*time),
                })
            }
        })
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Fault> {
    bytes.try_into().map_err(|_| MALFORMED)
}

#[inline]
fn text(bytes: &[u8]) -> Result<&str, Fault> {
    core::str::from_utf8(bytes).map_err(|_| Fault::Protocol("text that is not UTF-8"))
}

/// An array of one or more dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    /// How its elements are read.
    pub kind: Kind,
    dimensions: usize,
    lengths: [u32; DIMENSIONS_MAX],
    elements: &'a [u8],
}

/// PostgreSQL's own limit.
const DIMENSIONS_MAX: usize = 6;

const MALFORMED_ARRAY: Fault = Fault::Protocol("a malformed array");

impl<'a> Array<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, Fault> {
        let (head, mut rest) = bytes.split_first_chunk::<12>().ok_or(MALFORMED_ARRAY)?;
        let dimensions = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let kind = Kind::of(u32::from_be_bytes([head[8], head[9], head[10], head[11]]));
        let dimensions = dimensions as usize;
        if dimensions > DIMENSIONS_MAX || matches!(kind, Kind::Array | Kind::Other) {
            return Err(MALFORMED_ARRAY);
        }
        let (mut lengths, mut count) = ([0; DIMENSIONS_MAX], u64::from(dimensions > 0));
        for length in lengths.iter_mut().take(dimensions) {
            let (dimension, after) = rest.split_first_chunk::<8>().ok_or(MALFORMED_ARRAY)?;
            *length = u32::from_be_bytes([dimension[0], dimension[1], dimension[2], dimension[3]]);
            count = count
                .checked_mul(u64::from(*length))
                .ok_or(MALFORMED_ARRAY)?;
            rest = after;
        }
        // Each element has a length of four bytes.
        if count
            .checked_mul(4)
            .is_none_or(|least| least > rest.len() as u64)
        {
            return Err(MALFORMED_ARRAY);
        }
        Ok(Self {
            kind,
            dimensions,
            lengths,
            elements: rest,
        })
    }

    /// The lengths of its dimensions, the outermost first; none if it is empty.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths[..self.dimensions]
    }

    /// Its elements in order, `None` for NULL.
    pub fn elements(&self) -> impl Iterator<Item = Result<Option<Value<'a>>, Fault>> + use<'a> {
        let (kind, mut rest) = (self.kind, self.elements);
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let value = take_value(&mut rest);
            if value.is_err() {
                rest = &[];
            }
            let read =
                |bytes: Option<&'a [u8]>| bytes.map(|bytes| Value::of(kind, bytes)).transpose();
            Some(value.and_then(read))
        })
    }
}
