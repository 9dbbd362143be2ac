//! `numeric` from its binary format to decimal text.

use alloc::string::String;
use alloc::vec::Vec;

use crate::fault::Fault;

const MALFORMED: Fault = Fault::Protocol("a malformed numeric");

/// The decimal text of a numeric, as the server itself would write it.
pub(crate) fn text_of(bytes: &[u8]) -> Result<String, Fault> {
    let (head, digits) = bytes.split_first_chunk::<8>().ok_or(MALFORMED)?;
    let field = |at: usize| i16::from_be_bytes([head[at], head[at + 1]]);
    let (count, weight, scale) = (field(0), i32::from(field(2)), field(6));
    let sign = match u16::from_be_bytes([head[4], head[5]]) {
        0x0000 => "",
        0x4000 => "-",
        0xC000 => return Ok("NaN".into()),
        0xD000 => return Ok("Infinity".into()),
        0xF000 => return Ok("-Infinity".into()),
        _ => return Err(MALFORMED),
    };
    let digits: Vec<u16> = digits
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| u16::from_be_bytes(*pair))
        .collect();
    if usize::try_from(count) != Ok(digits.len()) || digits.iter().any(|&digit| digit > 9999) {
        return Err(MALFORMED);
    }
    let scale = usize::try_from(scale).map_err(|_| MALFORMED)?;
    Ok(write(sign, &digits, weight, scale))
}

/// `digits` are of base 10000, the first of the value 10000 to the power of `weight`.
fn write(sign: &str, digits: &[u16], weight: i32, scale: usize) -> String {
    // A server sends no zeros in front; with one that does there would be numbers that are none in JSON.
    let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
    let digits = digits.get(zeros..).unwrap_or_default();
    let weight = match digits {
        [] => 0,
        _ => weight - i32::try_from(zeros).unwrap_or(0),
    };
    let digit = |group: i32| {
        let at = usize::try_from(i64::from(weight) - i64::from(group));
        at.ok().and_then(|at| digits.get(at)).copied().unwrap_or(0)
    };
    let mut text = String::from(sign);
    for group in (0..=weight.max(0)).rev() {
        push_group(&mut text, digit(group), group == weight.max(0));
    }
    if scale > 0 {
        text.push('.');
        let end = text.len() + scale;
        let mut group = -1;
        while text.len() < end {
            push_group(&mut text, digit(group), false);
            group -= 1;
        }
        text.truncate(end);
    }
    text
}

/// Four decimal digits; the first group of a number without leading zeros.
fn push_group(text: &mut String, group: u16, is_first: bool) {
    if is_first {
        text.push_str(itoa::Buffer::new().format(group));
        return;
    }
    for power in [1000, 100, 10, 1] {
        text.push(char::from_digit(u32::from(group / power % 10), 10).unwrap_or('0'));
    }
}
