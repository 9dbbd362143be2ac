//! Where runs of allowed bytes end.
//!
//! Eight bytes at a time in plain 64-bit arithmetic: safe code, and no call for the short runs that
//! heads are made of.

use citius_http::fields::{is_token_byte, is_value_byte};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Whether a byte is a `tchar` (RFC 9110 §5.6.2), as a table.
static TOKEN: [bool; 256] = table(Class::Token);

/// Whether a byte may stand in a request target: visible ASCII but `#`.
///
/// RFC 3986 allows fewer; `"`, `<`, `>`, `\`, `^`, `` ` ``, `{`, `|`, `}` are sent by browsers and curl
/// as they are typed.
static TARGET: [bool; 256] = table(Class::Target);

/// Whether a byte may stand for itself in a reg-name (RFC 3986 §3.2.2), commas left out (`host.rs`).
static REG_NAME: [bool; 256] = table(Class::RegName);

/// A set of bytes.
#[derive(Clone, Copy)]
enum Class {
    Token,
    Target,
    RegName,
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "evaluated at compile time, where a mistake is a compile error"
)]
const fn table(class: Class) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = match class {
            Class::Token => is_token_byte(b),
            Class::Target => b > b' ' && b < 0x7f && b != b'#',
            Class::RegName => {
                b.is_ascii_alphanumeric()
                    || matches!(
                        b,
                        b'-' | b'.'
                            | b'_'
                            | b'~'
                            | b'!'
                            | b'$'
                            | b'&'
                            | b'\''
                            | b'('
                            | b')'
                            | b'*'
                            | b'+'
                            | b';'
                            | b'='
                    )
            }
        };
        byte += 1;
    }
    table
}

#[inline]
fn is_in(table: &[bool; 256], byte: u8) -> bool {
    table.get(usize::from(byte)).copied().unwrap_or(false)
}

/// Whether `byte` is a `tchar`.
#[inline]
pub(crate) fn is_token(byte: u8) -> bool {
    is_in(&TOKEN, byte)
}

/// Index of the first byte from `start` on that is not a `tchar`; the length of `bytes` if there is none.
#[inline]
pub(crate) fn token_end(bytes: &[u8], start: usize) -> usize {
    let mut rest = bytes.get(start..).unwrap_or_default();
    while let Some((block, after)) = rest.split_first_chunk::<8>() {
        let marks = not_plain(u64::from_le_bytes(*block));
        if marks == 0 {
            rest = after;
            continue;
        }
        let (_, from_mark) = rest.split_at_checked(first(marks)).unwrap_or_default();
        match from_mark.split_first() {
            Some((&byte, after)) if is_token(byte) => rest = after,
            _ => return bytes.len().wrapping_sub(from_mark.len()),
        }
    }
    run_end(bytes, bytes.len().wrapping_sub(rest.len()), is_token)
}

/// Index of the first byte that cannot stand for itself in a reg-name.
#[inline]
pub(crate) fn reg_name_end(bytes: &[u8]) -> usize {
    run_end(bytes, 0, |byte| is_in(&REG_NAME, byte))
}

/// Index of the first byte from `start` on that cannot stand in a request target.
#[inline]
pub(crate) fn target_end(bytes: &[u8], start: usize) -> usize {
    run_end(bytes, start, |byte| is_in(&TARGET, byte))
}

#[inline]
fn run_end(bytes: &[u8], start: usize, allowed: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let run = rest.iter().position(|&byte| !allowed(byte));
    start.saturating_add(run.unwrap_or(rest.len()))
}

/// Index of the first byte from `start` on that cannot stand in a field value.
#[inline]
pub(crate) fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut rest = bytes.get(start..).unwrap_or_default();
    loop {
        // Two blocks a step until one of them has a mark: half the loop for long values.
        while let Some((pair, after)) = rest.split_first_chunk::<16>() {
            let [one, other] = halves(pair);
            if controls(one) | controls(other) != 0 {
                break;
            }
            rest = after;
        }
        let Some((block, after)) = rest.split_first_chunk::<8>() else {
            break;
        };
        let marks = controls(u64::from_le_bytes(*block));
        if marks == 0 {
            rest = after;
            continue;
        }
        let (_, from_mark) = rest.split_at_checked(first(marks)).unwrap_or_default();
        match from_mark.split_first() {
            Some((b'\t', after)) => rest = after,
            _ => return bytes.len().wrapping_sub(from_mark.len()),
        }
    }
    run_end(bytes, bytes.len().wrapping_sub(rest.len()), is_value_byte)
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves of 128 bits have 64 each"
)]
fn halves(pair: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*pair);
    [both as u64, (both >> 64) as u64]
}

/// Index of the lowest byte that is marked.
#[inline]
fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Marks the bytes of `block` that are neither letters, digits nor hyphens, which is what names consist of.
///
/// Sums of seven-bit bytes don't carry, so every mark is exact.
#[inline]
fn not_plain(block: u64) -> u64 {
    let ascii = block & !HIGHS;
    // The highest bit of each byte of `byte + (0x80 - n)` says whether that byte is at least n.
    let at_least =
        |bytes: u64, n: u64| bytes.wrapping_add(ONES.wrapping_mul(0x80_u64.wrapping_sub(n)));
    let folded = ascii | ONES.wrapping_mul(0x20);
    let letter = at_least(folded, 0x61) & !at_least(folded, 0x7b);
    let digit = at_least(ascii, 0x30) & !at_least(ascii, 0x3a);
    let hyphen = !at_least(ascii ^ ONES.wrapping_mul(0x2d), 1);
    (block | !(letter | digit | hyphen)) & HIGHS
}

/// Marks the bytes of `block` below 0x20 or equal to 0x7f with their highest bit.
///
/// A borrow can only reach bytes above one that is marked already, so the lowest mark is exact.
#[inline]
fn controls(block: u64) -> u64 {
    let deleted = block ^ ONES.wrapping_mul(0x7f);
    let below = block.wrapping_sub(ONES.wrapping_mul(0x20)) & !block;
    (below | (deleted.wrapping_sub(ONES) & !deleted)) & HIGHS
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn finds_every_byte_at_every_place() {
        for length in 0..20 {
            for at in 0..length {
                for byte in 0..=255u8 {
                    let mut bytes = vec![b'a'; at];
                    bytes.push(byte);
                    bytes.resize(length, b'a');
                    for start in 0..=at {
                        let expected = |ok: bool| if ok { length } else { at };
                        let value = value_end(&bytes, start);
                        assert_eq!(value, expected(is_value_byte(byte)), "{length} {at} {byte}");
                        assert_eq!(token_end(&bytes, start), expected(is_token_byte(byte)));
                        let visible = byte.is_ascii_graphic() && byte != b'#';
                        assert_eq!(target_end(&bytes, start), expected(visible));
                    }
                }
            }
        }
    }

    #[test]
    fn two_controls_in_one_block_report_the_first() {
        for first in [0u8, 9, 13, 31, 127] {
            for second in [0u8, 10, 32, 33, 126, 127, 128, 255] {
                let bytes = [b'a', first, second, b'b', b'c', b'd', b'e', b'f', b'g'];
                let expected = bytes.iter().position(|&b| !is_value_byte(b)).unwrap_or(9);
                assert_eq!(value_end(&bytes, 0), expected, "{first} {second}");
            }
        }
    }
}
