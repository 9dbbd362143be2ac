//! The Huffman code of HPACK (RFC 7541 Appendix B), decoding only: what this side sends is short.
//!
//! The code is canonical, so the lengths say it all: codes of one length are consecutive, in the
//! order of their symbols. Codes of up to eight bits, which are those of most text, are looked up;
//! longer ones are found by their length.

/// Codes to symbols.
#[derive(Debug)]
pub(crate) struct Huffman {
    /// By the next eight bits: the symbol and its length, or a length of 0 if the code is longer.
    short: [(u8, u8); 256],
    /// By length: the first code, and where its symbol is in `symbols`.
    first: [(u32, u16); LENGTH_MAX + 2],
    /// In the order of their codes; 256 is the end of a string.
    symbols: Vec<u16>,
}

impl Default for Huffman {
    fn default() -> Self {
        let mut symbols: Vec<u16> = (0..=256).collect();
        symbols.sort_by_key(|symbol| LENGTHS[usize::from(*symbol)]);
        let mut first = [(0, 0); LENGTH_MAX + 2];
        let mut code = 0_u32;
        let mut place = 0_u16;
        for (length, first) in first.iter_mut().enumerate() {
            *first = (code, place);
            let n_codes = LENGTHS.iter().filter(|l| usize::from(**l) == length);
            let n_codes = u16::try_from(n_codes.count()).expect("257 symbols");
            place += n_codes;
            code = (code + u32::from(n_codes)) << 1;
        }
        let mut huffman = Self {
            short: [(0, 0); 256],
            first,
            symbols,
        };
        for bits in 0..=255_u8 {
            if let Some((symbol, length)) = huffman.find(u32::from(bits) << 24, 8)
                && let Ok(symbol) = u8::try_from(symbol)
            {
                huffman.short[usize::from(bits)] = (symbol, length);
            }
        }
        huffman
    }
}

impl Huffman {
    /// Appends what `bytes` decode to; `None` if they are no code (RFC 7541 §5.2).
    pub(crate) fn decode(&self, bytes: &[u8], output: &mut Vec<u8>) -> Option<()> {
        // The next bits, leftmost first, and how many of them are there.
        let (mut bits, mut n_bits) = (0_u64, 0_u32);
        let mut input = bytes.iter();
        loop {
            while n_bits <= 56
                && let Some(byte) = input.next()
            {
                bits |= u64::from(*byte) << (56 - n_bits);
                n_bits += 8;
            }
            let [top, ..] = bits.to_be_bytes();
            let (symbol, length) = match self.short[usize::from(top)] {
                (_, 0) => {
                    let next = u32::try_from(bits >> 32).expect("32 bits");
                    match self.find(next, LENGTH_MAX) {
                        Some((symbol, length)) if u32::from(length) <= n_bits => {
                            // The end symbol may not be spelled out.
                            (u8::try_from(symbol).ok()?, length)
                        }
                        _ => break,
                    }
                }
                short => short,
            };
            if u32::from(length) > n_bits {
                break;
            }
            output.push(symbol);
            bits <<= length;
            n_bits -= u32::from(length);
        }
        // Less than a byte of ones may be left, which begins the end symbol.
        let padding = !0_u64 << (64 - n_bits.max(1));
        (n_bits == 0 || n_bits < 8 && bits == padding).then_some(())
    }

    /// The symbol that the leftmost bits are, and its length.
    fn find(&self, bits: u32, length_max: usize) -> Option<(u16, u8)> {
        (LENGTH_MIN..=length_max).find_map(|length| {
            let (first, place) = self.first[length];
            let n_codes = self.first[length + 1].1 - place;
            let offset = (bits >> (32 - length)).checked_sub(first)?;
            let place = place + u16::try_from(offset).ok().filter(|o| *o < n_codes)?;
            Some((self.symbols[usize::from(place)], u8::try_from(length).ok()?))
        })
    }
}

const LENGTH_MIN: usize = 5;
const LENGTH_MAX: usize = 30;
/// Bits of the code of each symbol, the end of a string last.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

#[cfg(test)]
mod tests {
    use super::Huffman;

    #[test]
    fn strings_of_the_specification_are_read() {
        // RFC 7541 Appendix C.4 and C.6.
        let vectors: [(&[u8], &str); 4] = [
            (
                b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
                "www.example.com",
            ),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x64\x02", "302"),
            (
                b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
        ];
        let huffman = Huffman::default();
        for (bytes, text) in vectors {
            let mut output = Vec::new();
            assert_eq!(huffman.decode(bytes, &mut output), Some(()), "{text}");
            assert_eq!(output, text.as_bytes());
        }
    }

    #[test]
    fn padding_is_less_than_a_byte_of_ones() {
        let huffman = Huffman::default();
        let mut output = Vec::new();
        // "0" is 00000: good padding, then a zero in it, then a byte too much, then the end symbol.
        assert_eq!(huffman.decode(&[0b0000_0111], &mut output), Some(()));
        assert_eq!(output, b"0");
        assert_eq!(huffman.decode(&[0b0000_0110], &mut output), None);
        assert_eq!(huffman.decode(&[0b0000_0111, 0xFF], &mut output), None);
        assert_eq!(huffman.decode(&[0xFF; 4], &mut output), None);
    }
}
