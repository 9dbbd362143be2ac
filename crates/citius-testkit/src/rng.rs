//! Pseudo-random numbers (xorshift64*): the same for the same seed, on every machine.

/// A source of numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Numbers that depend on `seed` alone.
    pub fn new(seed: u64) -> Self {
        // A state of zero would stay zero; the constant is the golden ratio's fraction.
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).max(1))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`; 0 if `bound` is.
    pub fn below(&mut self, bound: usize) -> usize {
        let roll = usize::try_from(self.next_u64() >> 33).unwrap_or(0);
        roll.checked_rem(bound).unwrap_or(0)
    }

    /// `input` cut anywhere, into pieces that are not empty.
    pub fn pieces<'a>(&mut self, input: &'a [u8]) -> Vec<&'a [u8]> {
        let (mut rest, mut pieces) = (input, Vec::new());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + self.below(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
