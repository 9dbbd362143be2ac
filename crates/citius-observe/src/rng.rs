//! Random numbers for identities: fast, seeded by the system, not for secrets.

/// A generator of identities (xoroshiro128++ by Blackman and Vigna).
#[derive(Clone, Debug)]
pub struct Rng([u64; 2]);

impl Rng {
    /// Seeded by the system, so that two processes of one parent differ.
    ///
    /// # Panics
    /// The system has no random numbers to give; nothing that needs identities can run on it.
    pub fn new() -> Self {
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).expect("random numbers");
        let (low, high) = seed.split_at(8);
        let word =
            |half: &[u8]| u64::from_le_bytes(half.try_into().expect("half of sixteen bytes"));
        // A state of zeros would stay one.
        Self([word(low), word(high) | 1])
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b] = self.0;
        let mixed = a.wrapping_add(b).rotate_left(17).wrapping_add(a);
        let c = a ^ b;
        self.0 = [a.rotate_left(49) ^ c ^ (c << 21), c.rotate_left(28)];
        mixed
    }

    /// Sixteen lower-case hexadecimal digits, not all zero.
    pub fn hex16(&mut self) -> [u8; 16] {
        let mut number = self.next_u64();
        if number == 0 {
            number = 1;
        }
        hex16(number)
    }
}

impl Default for Rng {
    fn default() -> Self {
        Self::new()
    }
}

fn hex16(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 16];
    for (at, byte) in text.iter_mut().enumerate() {
        *byte = DIGITS[(number >> (60 - 4 * at) & 15) as usize];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_in_hexadecimal() {
        assert_eq!(&hex16(0x0123_4567_89ab_cdef), b"0123456789abcdef");
        assert_eq!(&hex16(1), b"0000000000000001");
    }

    #[test]
    fn two_generators_differ_and_one_does_not_repeat() {
        let (mut one, mut other) = (Rng::new(), Rng::new());
        let mut seen: Vec<u64> = (0..1000)
            .flat_map(|_| [one.next_u64(), other.next_u64()])
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2000);
    }
}
