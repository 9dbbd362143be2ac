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
use crate::value::{Array, Composite, Interval, Kind, Value};

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
                Some(bytes) => self.push_value(json, &Value::of(*kind, bytes)?, NESTING_MAX)?,
            }
        }
        json.push_str(self.end);
        Ok(())
    }

    fn push_value(&self, json: &mut String, value: &Value<'_>, levels: usize) -> Result<(), Fault> {
        match value {
            Value::Array(array) => self.push_array(json, array, levels),
            Value::Composite(composite) => self.push_composite(json, composite, levels),
            Value::TextArray(array) => push_text_array(json, array),
            Value::Range(range) => {
                let mut text = String::new();
                range_text::push_range(&mut text, range)?;
                push_text(json, &text);
                Ok(())
            }
            Value::Multirange(ranges) => {
                let mut text = String::new();
                range_text::push_multirange(&mut text, ranges)?;
                push_text(json, &text);
                Ok(())
            }
            scalar => {
                push_scalar(json, scalar);
                Ok(())
            }
        }
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
            Some(bytes) => self.push_value(json, &Value::of(kind, bytes)?, levels)?,
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
        json.push('{');
        for (at, field) in composite.fields().enumerate() {
            let (type_oid, bytes) = field?;
            if at > 0 {
                json.push(',');
            }
            match names.get(at) {
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
        Value::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => json.push_str(itoa::Buffer::new().format(*value)),
        Value::Float4(value) if value.is_finite() => write(json, format_args!("{value:?}")),
        Value::Float8(value) if value.is_finite() => write(json, format_args!("{value:?}")),
        Value::Numeric(text) if text.ends_with(|last: char| last.is_ascii_digit()) => {
            json.push_str(text);
        }
        // NaN and the infinite: JSON has no numbers for them.
        Value::Float4(_) | Value::Float8(_) | Value::Numeric(_) => json.push_str("null"),
        Value::Text(text) => push_text(json, text),
        Value::Bytes(bytes) => {
            json.push('"');
            STANDARD.encode_string(bytes, json);
            json.push('"');
        }
        Value::Json(text) => json.push_str(text),
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
        Value::Array(_)
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

pub(crate) fn push_date(json: &mut String, days: i32) {
    let date = civil_of_days(days);
    write(
        json,
        format_args!("{:04}-{:02}-{:02}", date.year, date.month, date.day),
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

/// A JSON string.
fn push_text(json: &mut String, text: &str) {
    json.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
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
