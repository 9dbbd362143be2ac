//! QUIC's integers of variable length (RFC 9000 §16).

use alloc::vec::Vec;

/// The largest number that there is.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Takes an integer; `None`: the input ends before it, and nothing was taken.
#[inline]
pub(crate) fn take(input: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = input.split_first()?;
    let n_more = match first >> 6 {
        0 => {
            *input = rest;
            return Some(u64::from(first));
        }
        1 => 1,
        2 => 3,
        _ => 7,
    };
    let (more, rest) = rest.split_at_checked(n_more)?;
    *input = rest;
    let number = u64::from(first & 0x3f);
    Some(
        more.iter()
            .fold(number, |number, &byte| number << 8 | u64::from(byte)),
    )
}

/// Appends an integer in its shortest form.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, number: u64) {
    let number = number.min(MAX);
    let bytes = number.to_be_bytes();
    let (n_bytes, pattern) = match number {
        0..=0x3f => (1, 0),
        0x40..=0x3fff => (2, 0x40),
        0x4000..=0x3fff_ffff => (4, 0x80),
        _ => (8, 0xc0u8),
    };
    let start = out.len();
    out.extend_from_slice(
        bytes
            .get(8usize.saturating_sub(n_bytes)..)
            .unwrap_or_default(),
    );
    if let Some(first) = out.get_mut(start) {
        *first |= pattern;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back_in_their_shortest_form() {
        for (number, n_bytes) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            (0x3fff_ffff, 4),
            (0x4000_0000, 8),
            (MAX, 8),
        ] {
            let mut out = Vec::new();
            put(&mut out, number);
            assert_eq!(out.len(), n_bytes);
            assert_eq!(take(&mut out.as_slice()), Some(number));
            for cut in 0..n_bytes {
                assert_eq!(take(&mut &out[..cut]), None);
            }
        }
        // The examples of RFC 9000 appendix A.1.
        assert_eq!(
            take(&mut &b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..]),
            Some(151_288_809_941_952_652)
        );
        assert_eq!(take(&mut &b"\x40\x25"[..]), Some(37));
    }
}
