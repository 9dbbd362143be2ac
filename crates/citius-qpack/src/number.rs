//! Integers and strings that may end in the middle: what instructions of either QPACK stream are made of (RFC 9204 §4.1).

use crate::decoder::Malformed;

/// What the start of an input is.
pub(crate) enum Read<T> {
    /// This, and it was taken.
    Whole(T),
    /// The start of something longer; nothing was taken.
    Partial,
}

/// Takes an integer of up to 62 bits.
///
/// # Errors
/// It has more.
pub(crate) fn integer(input: &mut &[u8], prefix_bits: u32) -> Result<Read<u64>, Malformed> {
    let Some((first, mut rest)) = input.split_first() else {
        return Ok(Read::Partial);
    };
    let mask = 0xffu8 >> 8u32.saturating_sub(prefix_bits);
    let mut number = u64::from(first & mask);
    if number == u64::from(mask) {
        let mut shift = 0u32;
        loop {
            if shift > 56 {
                return Err(Malformed);
            }
            let Some((byte, after)) = rest.split_first() else {
                return Ok(Read::Partial);
            };
            rest = after;
            let part = u64::from(byte & 0x7f).checked_shl(shift).ok_or(Malformed)?;
            number = number.checked_add(part).ok_or(Malformed)?;
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    if number >= 1 << 62 {
        return Err(Malformed);
    }
    *input = rest;
    Ok(Read::Whole(number))
}

/// A coded string within an input.
#[derive(Clone, Copy)]
pub(crate) struct Coded<'i> {
    pub(crate) is_huffman: bool,
    pub(crate) bytes: &'i [u8],
}

/// Takes a string of up to `bytes_max` coded bytes; it is not decoded.
///
/// # Errors
/// It is longer.
pub(crate) fn string<'i>(
    input: &mut &'i [u8],
    prefix_bits: u32,
    bytes_max: usize,
) -> Result<Read<Coded<'i>>, Malformed> {
    let Some(first) = input.first() else {
        return Ok(Read::Partial);
    };
    let is_huffman = first & 1u8.checked_shl(prefix_bits).unwrap_or(0) != 0;
    let mut rest = *input;
    let Read::Whole(length) = integer(&mut rest, prefix_bits)? else {
        return Ok(Read::Partial);
    };
    let length = usize::try_from(length).map_err(|_| Malformed)?;
    if length > bytes_max {
        return Err(Malformed);
    }
    let Some((bytes, rest)) = rest.split_at_checked(length) else {
        return Ok(Read::Partial);
    };
    *input = rest;
    Ok(Read::Whole(Coded { is_huffman, bytes }))
}

/// Takes whole instructions of the client's decoder (RFC 9204 §4.4), which has nothing to say to an encoder without a
/// dynamic table but that it abandons a stream. What is left of `input` is to be offered again, longer. Counts them in `n_taken`.
///
/// # Errors
/// It acknowledges what was never sent, or is no instruction.
pub fn take_instructions_of_decoder(input: &mut &[u8], n_taken: &mut u32) -> Result<(), Malformed> {
    while let Some(first) = input.first() {
        if first & 0xc0 != 0x40 {
            // A section with references, or an insertion: there was none.
            return Err(Malformed);
        }
        match integer(input, 6)? {
            Read::Whole(_stream) => *n_taken = n_taken.saturating_add(1),
            Read::Partial => break,
        }
    }
    Ok(())
}
