//! Ranges as the server writes them (PostgreSQL's manual, section 8.17): `[1,10)`, `empty`, `{[1,2),[5,9)}`.
//!
//! Moments are in UTC, whatever the session's time zone is.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use crate::calendar::civil_of_days;
use crate::fault::Fault;
use crate::json::push_clock;
use crate::value::{Kind, Multirange, Range, Value};

/// Appends a range whose bounds are scalars.
pub(crate) fn push_range(text: &mut String, range: &Range<'_>) -> Result<(), Fault> {
    if range.is_empty {
        text.push_str("empty");
        return Ok(());
    }
    text.push(if range.has_lower { '[' } else { '(' });
    push_bound(text, range.bound, range.lower)?;
    text.push(',');
    push_bound(text, range.bound, range.upper)?;
    text.push(if range.has_upper { ']' } else { ')' });
    Ok(())
}

/// Appends a set of ranges.
pub(crate) fn push_multirange(text: &mut String, ranges: &Multirange<'_>) -> Result<(), Fault> {
    text.push('{');
    for (at, range) in ranges.ranges().enumerate() {
        if at > 0 {
            text.push(',');
        }
        push_range(text, &range?)?;
    }
    text.push('}');
    Ok(())
}

fn push_bound(text: &mut String, type_oid: u32, bytes: Option<&[u8]>) -> Result<(), Fault> {
    let Some(bytes) = bytes else { return Ok(()) };
    let bound = text_of(&Value::of(Kind::of(type_oid), bytes)?);
    let is_special = |byte: u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\\' | b',' | b'(' | b')' | b'[' | b']')
    };
    if !bound.is_empty() && !bound.bytes().any(is_special) {
        text.push_str(&bound);
        return Ok(());
    }
    text.push('"');
    for character in bound.chars() {
        // As the server does it here: twice.
        if matches!(character, '"' | '\\') {
            text.push(character);
        }
        text.push(character);
    }
    text.push('"');
    Ok(())
}

const US_PER_DAY: i64 = 86_400_000_000;

/// The text of a scalar in the text format of its type.
fn text_of(value: &Value<'_>) -> String {
    let mut text = String::new();
    match value {
        Value::Int(value) => return format!("{value}"),
        Value::Float4(value) => return format!("{value:?}"),
        Value::Float8(value) => return format!("{value:?}"),
        Value::Numeric(value) => return value.clone(),
        Value::Text(value) | Value::Json(value) => return (*value).into(),
        Value::Bool(value) => text.push(if *value { 't' } else { 'f' }),
        Value::Date(i32::MAX) | Value::Timestamp(i64::MAX) | Value::TimestampTz(i64::MAX) => {
            text.push_str("infinity");
        }
        Value::Date(i32::MIN) | Value::Timestamp(i64::MIN) | Value::TimestampTz(i64::MIN) => {
            text.push_str("-infinity");
        }
        Value::Date(days) => {
            push_day(&mut text, *days);
            text.push_str(era(*days));
        }
        Value::Time(us) => push_short_clock(&mut text, *us),
        Value::Timestamp(us) | Value::TimestampTz(us) => {
            let days = us.div_euclid(US_PER_DAY);
            let days = i32::try_from(days).unwrap_or(i32::MAX);
            push_day(&mut text, days);
            text.push(' ');
            push_short_clock(&mut text, us.rem_euclid(US_PER_DAY));
            if matches!(value, Value::TimestampTz(_)) {
                text.push_str("+00");
            }
            text.push_str(era(days));
        }
        // Bytes, intervals and what else has no order that a range is made of.
        other => return format!("{other:?}"),
    }
    text
}

/// A date as the server writes it: there is no year 0, and BC stands at the end of the whole value.
fn push_day(text: &mut String, days: i32) {
    let date = civil_of_days(days);
    let year = if date.year > 0 {
        date.year
    } else {
        1 - date.year
    };
    // Writing to a string does not fail.
    let _ = write!(text, "{year:04}-{:02}-{:02}", date.month, date.day);
}

fn era(days: i32) -> &'static str {
    if civil_of_days(days).year > 0 {
        ""
    } else {
        " BC"
    }
}

/// A time of day without zeros at its end.
fn push_short_clock(text: &mut String, us: i64) {
    push_clock(text, us);
    if us % 1_000_000 != 0 {
        text.truncate(text.trim_end_matches('0').len());
    }
}
