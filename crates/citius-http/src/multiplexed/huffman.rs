//! Huffman-coded strings (RFC 7541 §5.2, appendix B): bytes in, bytes out, four bits a step.
//!
//! The code is canonical, so its lengths say everything; the automaton over nibbles is computed from
//! them at compile time. A state is an inner node of the code's tree.

use alloc::vec::Vec;

/// Appends what `coded` spells to `out`; at most `8 * coded.len() / 5` bytes.
///
/// `None` for the end-of-string symbol in the text, or padding that is longer than seven bits
/// or not all ones: each would be a second spelling of the same text.
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut state = 0u8;
    let mut may_end = true;
    for &byte in coded {
        for nibble in [byte >> 4, byte & 15] {
            let step = STEPS
                .get(usize::from(state))
                .and_then(|steps| steps.get(usize::from(nibble)))?;
            if step.flags & INVALID != 0 {
                return None;
            }
            if step.flags & EMITS != 0 {
                out.push(step.symbol);
            }
            state = step.next;
            may_end = step.flags & MAY_END != 0;
        }
    }
    may_end.then_some(())
}

/// What four more bits do.
#[derive(Clone, Copy)]
struct Step {
    next: u8,
    symbol: u8,
    flags: u8,
}

/// `symbol` is complete. The shortest code has five bits, so one step completes at most one.
const EMITS: u8 = 1;
/// The text may end behind these bits: what is left over is fewer than eight ones.
const MAY_END: u8 = 2;
/// These bits spell the end of the string.
const INVALID: u8 = 4;

/// Number of inner nodes: one fewer than symbols.
const N_NODES: usize = 256;
/// Marks a child that is a symbol.
const LEAF: u16 = 0x8000;
/// The end-of-string symbol.
const END_OF_STRING: u16 = 256;

/// Bits of the code of each byte, appendix B; the end of the string has 30.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

static STEPS: [[Step; 16]; N_NODES] = automaton();

/// The tree: for each inner node its children for 0 and 1, and whether it is reached by ones alone, fewer than eight.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "computed at compile time: what is out of bounds does not compile"
)]
const fn tree() -> ([[u16; 2]; N_NODES], [bool; N_NODES]) {
    let mut nodes = [[0u16; 2]; N_NODES];
    let mut is_padding = [false; N_NODES];
    let (mut n_nodes, mut code, mut length) = (1usize, 0u32, 1u8);
    while length <= 30 {
        let mut symbol = 0u16;
        while symbol <= END_OF_STRING {
            let has_length = if symbol == END_OF_STRING {
                length == 30
            } else {
                LENGTHS[symbol as usize] == length
            };
            if has_length {
                let (mut node, mut bit) = (0usize, length);
                while bit > 1 {
                    bit -= 1;
                    let side = ((code >> bit) & 1) as usize;
                    if nodes[node][side] == 0 {
                        nodes[node][side] = n_nodes as u16;
                        n_nodes += 1;
                    }
                    node = nodes[node][side] as usize;
                }
                nodes[node][(code & 1) as usize] = symbol | LEAF;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    assert!(n_nodes == N_NODES, "the code is complete");
    let (mut node, mut depth) = (0usize, 0u8);
    while depth < 8 {
        is_padding[node] = true;
        node = nodes[node][1] as usize;
        depth += 1;
    }
    (nodes, is_padding)
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "computed at compile time: what is out of bounds does not compile"
)]
const fn automaton() -> [[Step; 16]; N_NODES] {
    let (nodes, is_padding) = tree();
    let blank = Step {
        next: 0,
        symbol: 0,
        flags: 0,
    };
    let mut steps = [[blank; 16]; N_NODES];
    let mut state = 0;
    while state < N_NODES {
        let mut nibble = 0;
        while nibble < 16 {
            let mut step = blank;
            let (mut node, mut bit) = (state, 4);
            while bit > 0 {
                bit -= 1;
                let child = nodes[node][(nibble >> bit) & 1];
                if child & LEAF == 0 {
                    node = child as usize;
                } else if child == LEAF | END_OF_STRING {
                    step.flags |= INVALID;
                    node = 0;
                } else {
                    step.flags |= EMITS;
                    step.symbol = child as u8;
                    node = 0;
                }
            }
            if is_padding[node] {
                step.flags |= MAY_END;
            }
            step.next = node as u8;
            steps[state][nibble] = step;
            nibble += 1;
        }
        state += 1;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn reads_the_examples_of_appendix_c() {
        let host = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(decoded(&host).as_deref(), Some(&b"www.example.com"[..]));
        assert_eq!(decoded(&[]).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn refuses_other_spellings_of_the_same_text() {
        // `0` is 00000: with the padding it should have, with zeros, with eight bits too many.
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Some(&b"0"[..]));
        assert_eq!(decoded(&[0b0000_0110]), None);
        assert_eq!(decoded(&[0b0000_0111, 0xff]), None);
        assert_eq!(decoded(&[0xff]), None, "a whole byte of padding");
        assert_eq!(
            decoded(&[0xff; 4]),
            None,
            "the end of the string, spelled out"
        );
    }

    #[test]
    fn every_byte_has_its_own_code() {
        let (mut code, mut previous) = (0u64, 0u8);
        let mut symbols: Vec<(u8, u8)> = LENGTHS.iter().copied().zip(0..=255).collect();
        symbols.sort_unstable();
        for (length, symbol) in symbols {
            code <<= length - previous;
            // Left-aligned in 32 bits, the rest ones: at most one byte of padding is kept.
            let bits = (code << (32 - length)) | ((1 << (32 - length)) - 1);
            let n_bytes = usize::from(length.div_ceil(8));
            let bytes = u32::try_from(bits).unwrap().to_be_bytes();
            assert_eq!(decoded(&bytes[..n_bytes]), Some([symbol].to_vec()));
            code += 1;
            previous = length;
        }
    }
}
