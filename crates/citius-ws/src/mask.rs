//! The mask of a client's frames (§5.3): it keeps scripts from writing what a proxy could take for a
//! request, and costs a pass over the bytes.

use alloc::vec::Vec;

/// Appends `bytes` without their mask; `at` is where in the frame they begin.
///
/// Whole words at a time, which the compiler turns into vectors.
#[inline]
pub(crate) fn unmask_into(out: &mut Vec<u8>, bytes: &[u8], key: [u8; 4], at: u64) {
    let mut key = key;
    key.rotate_left((at % 4) as usize);
    let start = out.len();
    out.extend_from_slice(bytes);
    unmask(out.get_mut(start..).unwrap_or_default(), key);
}

#[inline]
fn unmask(bytes: &mut [u8], key: [u8; 4]) {
    let [a, b, c, d] = key;
    let word = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let mut words = bytes.chunks_exact_mut(8);
    for chunk in &mut words {
        if let Ok(masked) = <[u8; 8]>::try_from(&*chunk) {
            chunk.copy_from_slice(&(u64::from_ne_bytes(masked) ^ word).to_ne_bytes());
        }
    }
    for (byte, key) in words.into_remainder().iter_mut().zip([a, b, c, d, a, b, c]) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_the_definition_says() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        let bytes: Vec<u8> = (0..200u8).collect();
        for at in 0..9 {
            for length in 0..70 {
                let bytes = &bytes[..length];
                let mut out = b"before".to_vec();
                unmask_into(&mut out, bytes, key, at);
                let expected: Vec<u8> = bytes
                    .iter()
                    .enumerate()
                    .map(|(i, byte)| byte ^ key[(i + at as usize) % 4])
                    .collect();
                assert_eq!(&out[6..], expected, "at {at}, length {length}");
            }
        }
    }
}
