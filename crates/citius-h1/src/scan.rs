//! Where runs of allowed bytes end.
//!
//! Sixteen bytes at a time, as vectors of the processor (`wide`: safe, and plain arithmetic where there are
//! none). A block that reaches behind the run is read all the same: what follows a head in the read
//! buffer costs nothing, and a run that ends near the end of the buffer is read from the last sixteen bytes.

use citius_http::fields::{is_token_byte, is_value_byte};
use wide::u8x16;

/// Whether a byte belongs to a set, as a table.
macro_rules! table {
    ($holds:expr) => {{
        #[expect(
            clippy::indexing_slicing,
            clippy::cast_possible_truncation,
            reason = "evaluated at compile time, where a mistake is a compile error"
        )]
        const TABLE: [bool; 256] = {
            let mut table = [false; 256];
            let mut byte = 0;
            while byte < 256 {
                table[byte] = $holds(byte as u8);
                byte += 1;
            }
            table
        };
        &TABLE
    }};
}

/// Bytes in a block.
const BLOCK: usize = 16;

/// A set of bytes, in both forms: the two agree on every byte but those of which `RARE` says that only
/// `holds` decides.
trait Class {
    /// Whether a marked byte may belong to the set all the same.
    const RARE: bool;
    /// Whether `byte` belongs to the set.
    fn holds(byte: u8) -> bool;
    /// Sets all bits of the bytes that don't belong to the set, or perhaps don't.
    fn marks(block: u8x16) -> u8x16;
}

/// `tchar` (RFC 9110 §5.6.2).
struct Token;
/// What may stand in a request target: visible ASCII but `#`.
///
/// RFC 3986 allows fewer; `"`, `<`, `>`, `\`, `^`, `` ` ``, `{`, `|`, `}` are sent by browsers and curl
/// as they are typed.
struct Target;
/// What may stand in a field value (RFC 9110 §5.5).
struct Value;
/// What may stand for itself in a reg-name (RFC 3986 §3.2.2), commas left out (`host.rs`).
struct RegName;

impl Class for Token {
    const RARE: bool = true;
    #[inline]
    fn holds(byte: u8) -> bool {
        static TOKEN: &[bool; 256] = table!(is_token_byte);
        TOKEN.get(usize::from(byte)).copied().unwrap_or(false)
    }
    #[inline]
    fn marks(block: u8x16) -> u8x16 {
        !is_plain(block)
    }
}

impl Class for RegName {
    const RARE: bool = true;
    #[inline]
    fn holds(byte: u8) -> bool {
        static REG_NAME: &[bool; 256] = table!(is_reg_name_byte);
        REG_NAME.get(usize::from(byte)).copied().unwrap_or(false)
    }
    #[inline]
    fn marks(block: u8x16) -> u8x16 {
        !(is_plain(block) | block.simd_eq(u8x16::splat(b'.')))
    }
}

impl Class for Target {
    const RARE: bool = false;
    #[inline]
    fn holds(byte: u8) -> bool {
        byte.is_ascii_graphic() && byte != b'#'
    }
    #[inline]
    fn marks(block: u8x16) -> u8x16 {
        !is_within(block, b'!', b'~') | block.simd_eq(u8x16::splat(b'#'))
    }
}

impl Class for Value {
    const RARE: bool = false;
    #[inline]
    fn holds(byte: u8) -> bool {
        is_value_byte(byte)
    }
    #[inline]
    fn marks(block: u8x16) -> u8x16 {
        let control = is_within(block, 0, 0x1f) | block.simd_eq(u8x16::splat(0x7f));
        control & !block.simd_eq(u8x16::splat(b'\t'))
    }
}

/// Whether a byte is a `tchar`.
#[inline]
pub(crate) fn is_token(byte: u8) -> bool {
    Token::holds(byte)
}

/// Length of the run of `tchar`s at the start of `rest`, the end of `whole`.
#[inline]
pub(crate) fn token_run(rest: &[u8], whole: &[u8]) -> usize {
    run::<Token>(rest, whole)
}

/// Length of the run of bytes that can stand for themselves in a reg-name.
#[inline]
pub(crate) fn reg_name_run(rest: &[u8], whole: &[u8]) -> usize {
    run::<RegName>(rest, whole)
}

/// Length of the run of bytes that can stand in a request target.
#[inline]
pub(crate) fn target_run(rest: &[u8], whole: &[u8]) -> usize {
    run::<Target>(rest, whole)
}

/// Length of the run of bytes that can stand in a field value.
#[inline]
pub(crate) fn value_run(rest: &[u8], whole: &[u8]) -> usize {
    run::<Value>(rest, whole)
}

#[inline]
fn run<C: Class>(rest: &[u8], whole: &[u8]) -> usize {
    let mut ahead = rest;
    loop {
        let marks = if let Some((block, behind)) = ahead.split_first_chunk::<BLOCK>() {
            let marks = C::marks(u8x16::new(*block)).to_bitmask();
            if marks == 0 {
                ahead = behind;
                continue;
            }
            marks
        } else if let Some(block) = whole.last_chunk::<BLOCK>() {
            let before = BLOCK.wrapping_sub(ahead.len());
            // The bytes before the run are shifted out; the mark behind the last byte stands for the end.
            (C::marks(u8x16::new(*block)).to_bitmask() | 1 << BLOCK) >> before
        } else {
            return rest.len().wrapping_sub(short_run_end::<C>(ahead).len());
        };
        let at = marks.trailing_zeros() as usize;
        let (_, stop) = ahead.split_at_checked(at).unwrap_or_default();
        match stop.split_first() {
            Some((&byte, behind)) if C::RARE && C::holds(byte) => ahead = behind,
            _ => return rest.len().wrapping_sub(stop.len()),
        }
    }
}

/// What is left of less than a block.
#[cold]
fn short_run_end<C: Class>(mut rest: &[u8]) -> &[u8] {
    while let Some((&byte, behind)) = rest.split_first() {
        if !C::holds(byte) {
            break;
        }
        rest = behind;
    }
    rest
}

/// Letters, digits and hyphens: what names consist of.
#[inline]
fn is_plain(block: u8x16) -> u8x16 {
    let folded = block | u8x16::splat(0x20);
    is_within(folded, b'a', b'z') | is_within(block, b'0', b'9') | block.simd_eq(u8x16::splat(b'-'))
}

#[inline]
fn is_within(block: u8x16, least: u8, most: u8) -> u8x16 {
    let clamped = block.max(u8x16::splat(least)).min(u8x16::splat(most));
    clamped.simd_eq(block)
}

const fn is_reg_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
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

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn check<C: Class>(bytes: &[u8], start: usize) {
        let (_, rest) = bytes.split_at(start);
        let stop = rest.iter().position(|&byte| !C::holds(byte));
        let expected = stop.unwrap_or(rest.len());
        assert_eq!(run::<C>(rest, bytes), expected, "{bytes:?} {start}");
    }

    fn check_all(bytes: &[u8], start: usize) {
        check::<Token>(bytes, start);
        check::<RegName>(bytes, start);
        check::<Target>(bytes, start);
        check::<Value>(bytes, start);
    }

    #[test]
    fn finds_every_byte_at_every_place() {
        for length in 0..36 {
            for at in 0..length {
                for byte in 0..=255u8 {
                    let mut bytes = vec![b'a'; at];
                    bytes.push(byte);
                    bytes.resize(length, b'a');
                    for start in [0, at / 2, at] {
                        check_all(&bytes, start);
                    }
                }
            }
        }
    }

    #[test]
    fn two_odd_bytes_in_one_block_report_the_first() {
        for first in 0..=255u8 {
            for second in [0u8, 9, 10, 13, 32, 33, 46, 95, 126, 127, 128, 255] {
                let mut bytes = vec![b'a', first, b'b', second];
                check_all(&bytes, 0);
                bytes.resize(40, b'c');
                check_all(&bytes, 0);
                check_all(&bytes, 2);
            }
        }
    }

    #[test]
    fn a_run_starts_behind_the_end() {
        for length in [0, 3, 16, 17] {
            let bytes: Vec<u8> = vec![b'a'; length];
            check_all(&bytes, length);
        }
    }
}
