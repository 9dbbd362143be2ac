//! Rows as JSON, without an object in between.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::array_text::{Piece, TextArray};
use crate::calendar::civil_of_days;
use crate::description::Description;
use crate::fault::Fault;
use crate::range_text;
use crate::row::Row;
use crate::types::{NESTING_MAX, Types};
use crate::value::{Array, Composite, Interval, Kind, Value, boolean, integer, jsonb, text};

/// Writes rows of one statement as JSON objects.
///
/// A column `a.b` is the member `b` of an object `a`, together with its neighbours of the same prefix.
#[derive(Debug)]
pub struct JsonRows {
    /// What stands before the value of each column.
    columns: Vec<(String, Kind)>,
    end: &'static str,
    types: Arc<Types>,
}

impl JsonRows {
    /// What is the same for all rows of a statement.
    pub fn new(description: &Description, types: &Arc<Types>) -> Self {
        let mut columns = Vec::with_capacity(description.columns.len());
        let mut inside: Option<&str> = None;
        let mut separator = "{";
        for column in &description.columns {
            let (outer, inner) = match column.name.split_once('.') {
                Some((outer, inner)) => (Some(outer), inner),
                None => (None, column.name.as_str()),
            };
            let mut before = String::new();
            if inside == outer {
                before.push_str(separator);
            } else {
                if inside.is_some() {
                    before.push('}');
                }
                before.push_str(separator);
                if let Some(outer) = outer {
                    push_text(&mut before, outer);
                    before.push_str(":{");
                }
                inside = outer;
            }
            push_text(&mut before, inner);
            before.push(':');
            let kind = match Kind::of(column.type_oid) {
                // The text of JSON is JSON.
                Kind::Json | Kind::Jsonb if column.kind == Kind::Other => Kind::Json,
                _ => column.kind,
            };
            columns.push((before, kind));
            separator = ",";
        }
        let end = match (columns.is_empty(), inside) {
            (true, _) => "{}",
            (false, None) => "}",
            (false, Some(_)) => "}}",
        };
        let types = Arc::clone(types);
        Self {
            columns,
            end,
            types,
        }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The row is not what its description says.
    pub fn push(&self, row: Row<'_>, json: &mut String) -> Result<(), Fault> {
        if row.len() != self.columns.len() {
            return Err(Fault::Protocol(
                "a row with more or fewer values than columns",
            ));
        }
        for (value, (before, kind)) in row.values().zip(&self.columns) {
            json.push_str(before);
            match value? {
                None => json.push_str("null"),
                Some(bytes) => self.push_value(json, *kind, bytes, NESTING_MAX)?,
            }
        }
        json.push_str(self.end);
        Ok(())
    }

    /// What most columns are is written from its bytes: a [`Value`] is so large that moving it takes as long as all the
    /// rest of a row.
    #[inline]
    fn push_value(
        &self,
        json: &mut String,
        kind: Kind,
        bytes: &[u8],
        levels: usize,
    ) -> Result<(), Fault> {
        match kind {
            Kind::Bool => json.push_str(if boolean(bytes)? { "true" } else { "false" }),
            Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => {
                json.push_str(itoa::Buffer::new().format(integer(kind, bytes)?));
            }
            Kind::Text | Kind::Other => push_text(json, text(bytes)?),
            Kind::Json => json.push_str(text(bytes)?),
            Kind::Jsonb => json.push_str(jsonb(bytes)?),
            _ => return self.push_other(json, &Value::of(kind, bytes)?, levels),
        }
        Ok(())
    }

    /// A value of a kind that [`Self::push_value`] does not write itself.
    fn push_other(&self, json: &mut String, value: &Value<'_>, levels: usize) -> Result<(), Fault> {
        match value {
            Value::Array(array) => return self.push_array(json, array, levels),
            Value::Composite(composite) => return self.push_composite(json, composite, levels),
            Value::TextArray(array) => return push_text_array(json, array),
            Value::Range(range) => {
                let mut text = String::new();
                range_text::push_range(&mut text, range)?;
                push_text(json, &text);
            }
            Value::Multirange(ranges) => {
                let mut text = String::new();
                range_text::push_multirange(&mut text, ranges)?;
                push_text(json, &text);
            }
            scalar => push_scalar(json, scalar),
        }
        Ok(())
    }

    /// A value within another one.
    fn push_inner(
        &self,
        json: &mut String,
        kind: Kind,
        bytes: Option<&[u8]>,
        levels: usize,
    ) -> Result<(), Fault> {
        let levels = levels.checked_sub(1).ok_or(TOO_DEEP)?;
        match bytes {
            None => json.push_str("null"),
            Some(bytes) => self.push_value(json, kind, bytes, levels)?,
        }
        Ok(())
    }

    fn push_array(&self, json: &mut String, array: &Array<'_>, levels: usize) -> Result<(), Fault> {
        let lengths = array.lengths();
        if lengths.is_empty() || lengths.contains(&0) {
            json.push_str("[]");
            return Ok(());
        }
        let kind = self.types.kind_of(array.element);
        for (at, element) in (0_u64..).zip(array.elements()) {
            // How many dimensions begin here.
            let mut run = 1_u64;
            let mut edges = 0;
            for &length in lengths.iter().rev() {
                run = run.saturating_mul(length.into());
                edges += usize::from(at.is_multiple_of(run));
            }
            if at > 0 {
                for _ in 0..edges {
                    json.push(']');
                }
                json.push(',');
            }
            for _ in 0..edges {
                json.push('[');
            }
            self.push_inner(json, kind, element?, levels)?;
        }
        for _ in lengths {
            json.push(']');
        }
        Ok(())
    }

    /// An object; the fields of a row without a type are `f1`, `f2`, …, as the server's own JSON calls them.
    fn push_composite(
        &self,
        json: &mut String,
        composite: &Composite<'_>,
        levels: usize,
    ) -> Result<(), Fault> {
        let names = self.types.fields(composite.type_oid);
        if composite.type_oid != 0 && names.len() != composite.len() {
            return Err(TYPE_CHANGED);
        }
        let mut names = names.iter();
        json.push('{');
        for (at, field) in composite.fields().enumerate() {
            let (type_oid, bytes) = field?;
            if at > 0 {
                json.push(',');
            }
            match names.next() {
                Some((_, of)) if *of != type_oid => return Err(TYPE_CHANGED),
                Some((name, _)) => push_text(json, name),
                None => write(json, format_args!("\"f{}\"", at + 1)),
            }
            json.push(':');
            let kind = self.types.kind_of(type_oid);
            if !kind.is_binary() && bytes.is_some() {
                return Err(NO_TEXT);
            }
            self.push_inner(json, kind, bytes, levels)?;
        }
        json.push('}');
        Ok(())
    }
}

const TOO_DEEP: Fault = Fault::Value("values are nested too deeply");
pub(crate) const TYPE_CHANGED: Fault =
    Fault::Value("a composite type has other fields than it had; execute the statement again");
pub(crate) const NO_TEXT: Fault = Fault::Value(
    "a row without a type has a field that comes as text only, such as a point: cast the field to text",
);

fn push_text_array(json: &mut String, array: &TextArray<'_>) -> Result<(), Fault> {
    let mut is_first = true;
    array.walk(|piece| {
        let ends = piece == Piece::Close;
        if !is_first && !ends {
            json.push(',');
        }
        is_first = piece == Piece::Open;
        match piece {
            Piece::Open => json.push('['),
            Piece::Close => json.push(']'),
            Piece::Null => json.push_str("null"),
            Piece::Text(text) => push_text(json, &text),
        }
        Ok(())
    })
}

fn push_scalar(json: &mut String, value: &Value<'_>) {
    match value {
        Value::Float4(value) if value.is_finite() => write(json, format_args!("{value:?}")),
        Value::Float8(value) if value.is_finite() => write(json, format_args!("{value:?}")),
        Value::Numeric(text) if text.ends_with(|last: char| last.is_ascii_digit()) => {
            json.push_str(text);
        }
        // NaN and the infinite: JSON has no numbers for them.
        Value::Float4(_) | Value::Float8(_) | Value::Numeric(_) => json.push_str("null"),
        Value::Bytes(bytes) => {
            json.push('"');
            STANDARD.encode_string(bytes, json);
            json.push('"');
        }
        Value::Uuid(bytes) => push_uuid(json, bytes),
        Value::Interval(interval) => push_interval(json, interval),
        Value::Date(_)
        | Value::Time(_)
        | Value::TimeTz(..)
        | Value::Timestamp(_)
        | Value::TimestampTz(_) => {
            json.push('"');
            push_time(json, value);
            json.push('"');
        }
        // What `push_value` and `push_other` write.
        Value::Bool(_)
        | Value::Int(_)
        | Value::Text(_)
        | Value::Json(_)
        | Value::Array(_)
        | Value::TextArray(_)
        | Value::Range(_)
        | Value::Multirange(_)
        | Value::Composite(_) => {}
    }
}

fn write(json: &mut String, arguments: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = json.write_fmt(arguments);
}

pub(crate) fn push_uuid(json: &mut String, bytes: &[u8; 16]) {
    json.push('"');
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            json.push('-');
        }
        write(json, format_args!("{byte:02x}"));
    }
    json.push('"');
}

const US_PER_DAY: i64 = 86_400_000_000;

/// ISO 8601.
fn push_time(json: &mut String, value: &Value<'_>) {
    match *value {
        Value::Date(i32::MAX) | Value::Timestamp(i64::MAX) | Value::TimestampTz(i64::MAX) => {
            json.push_str("infinity");
        }
        Value::Date(i32::MIN) | Value::Timestamp(i64::MIN) | Value::TimestampTz(i64::MIN) => {
            json.push_str("-infinity");
        }
        Value::Date(days) => push_date(json, days),
        Value::Time(us) => push_clock(json, us),
        Value::TimeTz(us, west) => {
            push_clock(json, us);
            let (sign, east) = if west > 0 {
                ('-', west)
            } else {
                ('+', west.saturating_neg())
            };
            write(
                json,
                format_args!("{sign}{:02}:{:02}", east / 3600, east / 60 % 60),
            );
        }
        Value::Timestamp(us) | Value::TimestampTz(us) => {
            push_date(
                json,
                i32::try_from(us.div_euclid(US_PER_DAY)).unwrap_or(i32::MAX),
            );
            json.push('T');
            push_clock(json, us.rem_euclid(US_PER_DAY));
            if matches!(value, Value::TimestampTz(_)) {
                json.push('Z');
            }
        }
        _ => {}
    }
}

/// ISO 8601: the year 0 is 1 BC, and years that have not four digits have a sign.
fn push_date(json: &mut String, days: i32) {
    let date = civil_of_days(days);
    match date.year {
        ..0 => json.push('-'),
        0..=9999 => {}
        _ => json.push('+'),
    }
    let year = date.year.unsigned_abs();
    write(
        json,
        format_args!("{year:04}-{:02}-{:02}", date.month, date.day),
    );
}

pub(crate) fn push_clock(json: &mut String, us: i64) {
    let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    write(
        json,
        format_args!("{hours:02}:{minutes:02}:{:02}", seconds % 60),
    );
    if fraction != 0 {
        write(json, format_args!(".{fraction:06}"));
    }
}

/// ISO 8601 too: a month and a day are no number of seconds.
fn push_interval(json: &mut String, interval: &Interval) {
    let Interval {
        months,
        days,
        microseconds,
    } = *interval;
    let sign = if microseconds < 0 { "-" } else { "" };
    let (seconds, fraction) = (
        microseconds.unsigned_abs() / 1_000_000,
        microseconds.unsigned_abs() % 1_000_000,
    );
    write(
        json,
        format_args!("\"P{months}M{days}DT{sign}{seconds}.{fraction:06}S\""),
    );
}

/// Whether a byte of UTF-8 cannot stand in a JSON string as it is.
fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// A JSON string.
fn push_text(json: &mut String, text: &str) {
    json.push('"');
    // Without a way out of the loop the compiler tests sixteen bytes at a time.
    let is_plain = text
        .bytes()
        .fold(true, |is_plain, byte| is_plain & !is_escaped(byte));
    if is_plain {
        json.push_str(text);
        json.push('"');
        return;
    }
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !is_escaped(byte) {
            continue;
        }
        // What is escaped is ASCII, so both sides of it are whole characters.
        json.push_str(text.get(from..at).unwrap_or_default());
        from = at + 1;
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            _ => write(json, format_args!("\\u{byte:04x}")),
        }
    }
    json.push_str(text.get(from..).unwrap_or_default());
    json.push('"');
}
