//! Values of PostgreSQL's types, from their binary format; those without a reader here come as text.

use alloc::string::String;

use crate::array_text::TextArray;
use crate::fault::Fault;
use crate::numeric;
use crate::row::take_value;
use crate::types::{multirange_of, range_of};

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
    /// An array of a type that is read in binary format.
    Array,
    /// An array in text format, whose elements have this byte between them.
    TextArray(u8),
    /// A range of values of a type.
    Range(u32),
    /// A set of ranges of values of a type.
    Multirange(u32),
    /// A value of this composite type.
    Composite(u32),
    /// A row without a type of its own: `ROW(1, 'a')`.
    Record,
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
            2249 => Self::Record,
            3802 => Self::Jsonb,
            _ => Self::of_several(type_oid),
        }
    }

    /// The kind of a type that is made of others (arrays, ranges, composites).
    fn of_several(type_oid: u32) -> Self {
        if let Some(of) = range_of(type_oid) {
            Self::Range(of)
        } else if let Some(of) = multirange_of(type_oid) {
            Self::Multirange(of)
        } else {
            match Self::element_of(type_oid).map(|element| (element, Self::of(element))) {
                None => Self::Other,
                // The only one in the text format that has another separator.
                Some((603, Self::Other)) => Self::TextArray(b';'),
                Some((_, Self::Other)) => Self::TextArray(b','),
                Some(_) => Self::Array,
            }
        }
    }

    /// The type of an array's elements, if `array_oid` is an array that every server has.
    pub fn element_of(array_oid: u32) -> Option<u32> {
        let at = ARRAYS.binary_search_by_key(&array_oid, |&(array, _)| array);
        at.ok().map(|at| ARRAYS[at].1)
    }

    /// Whether values are asked for in binary format.
    pub fn is_binary(self) -> bool {
        !matches!(self, Self::Other | Self::TextArray(_))
    }

    /// Whether it is read in binary format and not made of other types.
    pub fn is_scalar(self) -> bool {
        self.is_binary()
            && !matches!(
                self,
                Self::Array
                    | Self::Range(_)
                    | Self::Multirange(_)
                    | Self::Composite(_)
                    | Self::Record
            )
    }
}

/// Arrays and their elements, by the identities that every server has; sorted.
#[rustfmt::skip]
const ARRAYS: [(u32, u32); 77] = [
    (143, 142), (199, 114), (271, 5069), (629, 628), (651, 650), (719, 718), (775, 774), (791, 790),
    (1000, 16), (1001, 17), (1002, 18), (1003, 19), (1005, 21), (1006, 22), (1007, 23), (1008, 24),
    (1009, 25), (1010, 27), (1011, 28), (1012, 29), (1013, 30), (1014, 1042), (1015, 1043), (1016, 20),
    (1017, 600), (1018, 601), (1019, 602), (1020, 603), (1021, 700), (1022, 701), (1027, 604), (1028, 26),
    (1034, 1033), (1040, 829), (1041, 869), (1115, 1114), (1182, 1082), (1183, 1083), (1185, 1184), (1187, 1186),
    (1231, 1700), (1270, 1266), (1561, 1560), (1563, 1562), (2201, 1790), (2207, 2202), (2208, 2203), (2209, 2204),
    (2210, 2205), (2211, 2206), (2287, 2249), (2949, 2970), (2951, 2950), (3221, 3220), (3643, 3614), (3644, 3642),
    (3645, 3615), (3735, 3734), (3770, 3769), (3807, 3802), (3905, 3904), (3907, 3906), (3909, 3908), (3911, 3910),
    (3913, 3912), (3927, 3926), (4073, 4072), (4090, 4089), (4097, 4096), (4192, 4191), (5039, 5038), (6150, 4451),
    (6151, 4532), (6152, 4533), (6153, 4534), (6155, 4535), (6157, 4536),
];

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
    /// Microseconds since midnight, and seconds west of UTC.
    TimeTz(i64, i32),
    /// Microseconds since 2000-01-01; the least and the greatest are infinite.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 in UTC; the least and the greatest are infinite.
    TimestampTz(i64),
    /// A span of time.
    Interval(Interval),
    /// 16 bytes.
    Uuid([u8; 16]),
    /// The text of `json` or `jsonb`.
    Json(&'a str),
    /// An array.
    Array(Array<'a>),
    /// An array in the text format.
    TextArray(TextArray<'a>),
    /// A range.
    Range(Range<'a>),
    /// A set of ranges.
    Multirange(Multirange<'a>),
    /// A composite value.
    Composite(Composite<'a>),
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
            Kind::Bool => Self::Bool(boolean(bytes)?),
            Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => Self::Int(integer(kind, bytes)?),
            Kind::Float4 => Self::Float4(f32::from_be_bytes(array(bytes)?)),
            Kind::Float8 => Self::Float8(f64::from_be_bytes(array(bytes)?)),
            Kind::Text | Kind::Other => Self::Text(text(bytes)?),
            Kind::Bytea => Self::Bytes(bytes),
            Kind::Json => Self::Json(text(bytes)?),
            Kind::Jsonb => Self::Json(jsonb(bytes)?),
            Kind::Uuid => Self::Uuid(array(bytes)?),
            Kind::Numeric => Self::Numeric(numeric::text_of(bytes)?),
            Kind::Date
            | Kind::Time
            | Kind::TimeTz
            | Kind::Timestamp
            | Kind::TimestampTz
            | Kind::Interval => Self::of_time(kind, bytes)?,
            Kind::Array => Self::Array(Array::of(bytes)?),
            Kind::TextArray(delimiter) => Self::TextArray(TextArray::of(text(bytes)?, delimiter)),
            Kind::Range(of) => Self::Range(Range::of(of, bytes)?),
            Kind::Multirange(of) => Self::Multirange(Multirange::of(of, bytes)?),
            Kind::Composite(type_oid) => Self::Composite(Composite::of(type_oid, bytes)?),
            Kind::Record => Self::Composite(Composite::of(0, bytes)?),
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
pub(crate) fn boolean(bytes: &[u8]) -> Result<bool, Fault> {
    Ok(array::<1>(bytes)? != [0])
}

/// An integer of one of the kinds that are integers.
#[inline]
pub(crate) fn integer(kind: Kind, bytes: &[u8]) -> Result<i64, Fault> {
    Ok(match kind {
        Kind::Int2 => i16::from_be_bytes(array(bytes)?).into(),
        Kind::Int4 => i32::from_be_bytes(array(bytes)?).into(),
        Kind::Int8 => i64::from_be_bytes(array(bytes)?),
        Kind::Oid => u32::from_be_bytes(array(bytes)?).into(),
        _ => return Err(MALFORMED),
    })
}

#[inline]
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Fault> {
    core::str::from_utf8(bytes).map_err(|_| Fault::Protocol("text that is not UTF-8"))
}

/// The text of `jsonb`, which follows the version of its format.
#[inline]
pub(crate) fn jsonb(bytes: &[u8]) -> Result<&str, Fault> {
    match bytes.split_first() {
        Some((1, json)) => text(json),
        _ => Err(MALFORMED),
    }
}

/// An array of one or more dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    /// The type of its elements.
    pub element: u32,
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
        let element = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
        let dimensions = dimensions as usize;
        if dimensions > DIMENSIONS_MAX {
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
            element,
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
    pub fn elements(&self) -> impl Iterator<Item = Result<Option<&'a [u8]>, Fault>> + use<'a> {
        let mut rest = self.elements;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let value = take_value(&mut rest);
            if value.is_err() {
                rest = &[];
            }
            Some(value)
        })
    }
}

/// A range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<'a> {
    /// The type of its bounds.
    pub bound: u32,
    /// It has no value in it.
    pub is_empty: bool,
    /// `[`: the lower bound is one of its values.
    pub has_lower: bool,
    /// `]`: the upper bound is one of its values.
    pub has_upper: bool,
    /// The lower bound, `None` if there is none.
    pub lower: Option<&'a [u8]>,
    /// The upper bound, `None` if there is none.
    pub upper: Option<&'a [u8]>,
}

const MALFORMED_RANGE: Fault = Fault::Protocol("a malformed range");

impl<'a> Range<'a> {
    fn of(bound: u32, bytes: &'a [u8]) -> Result<Self, Fault> {
        // PostgreSQL's rangetypes.h: empty, lower and upper inclusive, lower and upper infinite.
        let (&flags, mut rest) = bytes.split_first().ok_or(MALFORMED_RANGE)?;
        let is = |flag: u8| flags & flag != 0;
        let is_empty = is(0x01);
        let mut value = |is_there: bool| {
            if is_there {
                take_value(&mut rest)?.ok_or(MALFORMED_RANGE).map(Some)
            } else {
                Ok(None)
            }
        };
        let lower = value(!is_empty && !is(0x08))?;
        let upper = value(!is_empty && !is(0x10))?;
        if !rest.is_empty() || flags & 0x60 != 0 {
            return Err(MALFORMED_RANGE);
        }
        Ok(Self {
            bound,
            is_empty,
            has_lower: is(0x02) && lower.is_some(),
            has_upper: is(0x04) && upper.is_some(),
            lower,
            upper,
        })
    }
}

/// A set of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multirange<'a> {
    bound: u32,
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Multirange<'a> {
    fn of(bound: u32, bytes: &'a [u8]) -> Result<Self, Fault> {
        let (count, bytes) = bytes.split_first_chunk().ok_or(MALFORMED_RANGE)?;
        let count = u32::from_be_bytes(*count);
        // Each range has a length of four bytes and its flags.
        if u64::from(count) * 5 > bytes.len() as u64 {
            return Err(MALFORMED_RANGE);
        }
        Ok(Self {
            bound,
            count,
            bytes,
        })
    }

    /// Its ranges in their order.
    pub fn ranges(&self) -> impl Iterator<Item = Result<Range<'a>, Fault>> + use<'a> {
        let (bound, mut left, mut rest) = (self.bound, self.count, self.bytes);
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let range = take_value(&mut rest)
                .and_then(|bytes| Range::of(bound, bytes.ok_or(MALFORMED_RANGE)?));
            if range.is_err() {
                left = 0;
            }
            Some(range)
        })
    }
}

/// A value of a composite type, or a row without a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Composite<'a> {
    /// Its type; 0 for a row without one.
    pub type_oid: u32,
    count: u32,
    bytes: &'a [u8],
}

const MALFORMED_COMPOSITE: Fault = Fault::Protocol("a malformed composite value");

impl<'a> Composite<'a> {
    fn of(type_oid: u32, bytes: &'a [u8]) -> Result<Self, Fault> {
        let (count, bytes) = bytes.split_first_chunk().ok_or(MALFORMED_COMPOSITE)?;
        let count = u32::from_be_bytes(*count);
        // Each field has a type and a length of four bytes.
        if u64::from(count) * 8 > bytes.len() as u64 {
            return Err(MALFORMED_COMPOSITE);
        }
        Ok(Self {
            type_oid,
            count,
            bytes,
        })
    }

    /// How many fields it has.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The type and the value of each field, `None` for NULL.
    pub fn fields(&self) -> impl Iterator<Item = Result<(u32, Option<&'a [u8]>), Fault>> + use<'a> {
        let (mut left, mut rest) = (self.count, self.bytes);
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let field = match rest.split_first_chunk() {
                None => Err(MALFORMED_COMPOSITE),
                Some((type_oid, after)) => {
                    rest = after;
                    take_value(&mut rest).map(|value| (u32::from_be_bytes(*type_oid), value))
                }
            };
            if field.is_err() {
                left = 0;
            }
            Some(field)
        })
    }
}
