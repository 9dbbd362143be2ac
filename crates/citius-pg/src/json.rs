//! Rows as JSON, without an object in between.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::calendar::civil_of_days;
use crate::description::Description;
use crate::fault::Fault;
use crate::row::Row;
use crate::value::{Array, Interval, Kind, Value};

/// Writes rows of one statement as JSON objects.
///
/// A column `a.b` is the member `b` of an object `a`, together with its neighbours of the same prefix.
#[derive(Debug)]
pub struct JsonRows {
    /// What stands before the value of each column.
    columns: Vec<(String, Kind)>,
    end: &'static str,
}

impl JsonRows {
    /// What is the same for all rows of a statement.
    pub fn new(description: &Description) -> Self {
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
            columns.push((before, column.kind));
            separator = ",";
        }
        let end = match (columns.is_empty(), inside) {
            (true, _) => "{}",
            (false, None) => "}",
            (false, Some(_)) => "}}",
        };
        Self { columns, end }
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
                Some(bytes) => push_value(json, &Value::of(*kind, bytes)?)?,
            }
        }
        json.push_str(self.end);
        Ok(())
    }
}

fn push_value(json: &mut String, value: &Value<'_>) -> Result<(), Fault> {
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
        Value::Array(array) => return push_array(json, array),
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
    }
    Ok(())
}

fn write(json: &mut String, arguments: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = json.write_fmt(arguments);
}

fn push_array(json: &mut String, array: &Array<'_>) -> Result<(), Fault> {
    let lengths = array.lengths();
    if lengths.is_empty() || lengths.contains(&0) {
        json.push_str("[]");
        return Ok(());
    }
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
        match element? {
            None => json.push_str("null"),
            Some(value) => push_value(json, &value)?,
        }
    }
    for _ in lengths {
        json.push(']');
    }
    Ok(())
}

fn push_uuid(json: &mut String, bytes: &[u8; 16]) {
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

fn push_date(json: &mut String, days: i32) {
    let date = civil_of_days(days);
    write(
        json,
        format_args!("{:04}-{:02}-{:02}", date.year, date.month, date.day),
    );
}

fn push_clock(json: &mut String, us: i64) {
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
