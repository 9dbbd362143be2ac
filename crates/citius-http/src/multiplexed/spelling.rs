//! Integers and strings of HPACK (RFC 7541 §5) and QPACK (RFC 9204 §4.1): a number behind a prefix of some bits, and a
//! string behind its length and the bit that says whether it is Huffman-coded.

use alloc::vec::Vec;

use super::huffman;

/// Takes an integer (RFC 7541 §5.1); `None` if it does not end, or is larger than any of use here.
#[inline]
pub fn integer(block: &mut &[u8], prefix_bits: u32) -> Option<usize> {
    let (first, mut rest) = block.split_first()?;
    let mask = 0xffu8 >> 8u32.saturating_sub(prefix_bits);
    let mut number = usize::from(first & mask);
    if number == usize::from(mask) {
        let mut shift = 0u32;
        loop {
            let (byte, after) = rest.split_first()?;
            rest = after;
            // Four more bytes reach beyond any size that is allowed; longer ones only say zero.
            if shift > 21 {
                return None;
            }
            number = number.checked_add(usize::from(byte & 0x7f).checked_shl(shift)?)?;
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Some(number)
}

/// Takes a string (RFC 7541 §5.2) whose length has a prefix of `prefix_bits` behind the bit for Huffman coding, and appends
/// it to `out`.
#[inline]
pub fn string(block: &mut &[u8], prefix_bits: u32, out: &mut Vec<u8>) -> Option<()> {
    let is_huffman = block.first()? & 1u8.checked_shl(prefix_bits)? != 0;
    let length = integer(block, prefix_bits)?;
    let (coded, rest) = block.split_at_checked(length)?;
    *block = rest;
    if is_huffman {
        huffman::decode(coded, out)
    } else {
        out.extend_from_slice(coded);
        Some(())
    }
}

/// Appends an integer behind the bits of `pattern`.
#[inline]
pub fn put_integer(out: &mut Vec<u8>, pattern: u8, prefix_bits: u32, number: usize) {
    let mask = 0xffu8 >> 8u32.saturating_sub(prefix_bits);
    match u8::try_from(number) {
        Ok(small) if small < mask => out.push(pattern | small),
        _ => {
            out.push(pattern | mask);
            let mut rest = number.saturating_sub(usize::from(mask));
            while rest >= 0x80 {
                out.push(0x80 | low_bits(rest));
                rest >>= 7;
            }
            out.push(low_bits(rest));
        }
    }
}

/// Appends a string as it is, behind the bits of `pattern` and its length. Bytes saved by Huffman coding would cost more
/// instructions than they are worth.
#[inline]
pub fn put_string(out: &mut Vec<u8>, pattern: u8, prefix_bits: u32, text: &[u8]) {
    put_integer(out, pattern, prefix_bits, text.len());
    out.extend_from_slice(text);
}

fn low_bits(number: usize) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back_behind_every_prefix() {
        for prefix_bits in 3..=8 {
            for number in [
                0, 6, 7, 8, 126, 127, 128, 254, 255, 256, 16_383, 16_384, 100_000,
            ] {
                let mut out = Vec::new();
                put_integer(&mut out, 0, prefix_bits, number);
                let mut block = out.as_slice();
                assert_eq!(integer(&mut block, prefix_bits), Some(number));
                assert!(block.is_empty());
                let mut cut = out.get(..out.len() - 1).unwrap_or_default();
                assert_eq!(integer(&mut cut, prefix_bits), None);
            }
        }
        assert_eq!(integer(&mut &b"\xff\x80\x80\x80\x80\x00"[..], 7), None);
    }

    #[test]
    fn strings_are_read_plain_and_huffman_coded() {
        let mut out = Vec::new();
        let coded: &[u8] = &[
            0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(string(&mut &coded[..], 7, &mut out), Some(()));
        assert_eq!(out, b"www.example.com");
        out.clear();
        let mut plain = Vec::new();
        put_string(&mut plain, 0x20, 3, b"a name of some length");
        assert_eq!(string(&mut plain.as_slice(), 3, &mut out), Some(()));
        assert_eq!(out, b"a name of some length");
    }
}
