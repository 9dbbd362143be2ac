//! Numbers in paths and queries: one parser for handlers in Python (`binding.py`), typed ones
//! (`gateway/compiled/arguments.rs`) and native ones (`citius_integer`).
//!
//! A number has JSON's form (RFC 8259 §6), is finite, and may begin with zeros. A whole number may have a fraction and an
//! exponent if its value is whole (`1e3`). The words for infinities and NaN are none. msgspec accepts the same but for leading
//! zeros, whole numbers beyond 64 bits and these words. Tests: `tests/unit/test_numbers.py`.

use pyo3::prelude::*;

/// Floats up to this tell every whole number from the next one.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The whole number that `text` stands for.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if is_digits(text.strip_prefix('-').unwrap_or(text)) {
        return text.parse().ok();
    }
    let number = decimal(text)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and within 54 bits"
    )]
    (number.fract() == 0.0 && number.abs() <= WHOLE_MAX).then_some(number as i64)
}

/// The number that `text` stands for.
pub(crate) fn real(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    decimal(text)
}

/// The integer that `text` stands for, for Python; `None` if it is none that fits 64 bits.
#[pyfunction]
pub(crate) fn read_integer(text: &str) -> Option<i64> {
    integer(text.as_bytes())
}

/// The real number that `text` stands for, for Python; `None` if it is none.
#[pyfunction]
pub(crate) fn read_real(text: &str) -> Option<f64> {
    real(text.as_bytes())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A finite number in digits.
fn decimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_exponent = |text: &str| is_digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    let is_number =
        is_digits(whole) && fraction.is_none_or(is_digits) && exponent.is_none_or(is_exponent);
    let number = is_number.then(|| text.parse::<f64>().ok()).flatten()?;
    number.is_finite().then_some(number)
}
