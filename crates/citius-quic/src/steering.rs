//! The packet filter by which the kernel gives each datagram to the socket of its worker (`SO_ATTACH_REUSEPORT_CBPF`).
//!
//! A program of the classic kind: it decrypts the connection id ([`cid`](crate::cid)) and returns the slot in it, which is the
//! place of the worker's socket in its group. A client that begins has an id of its own choice: its address and port choose
//! among the first so many sockets, so that one whose worker is to go gets no new clients. Test: `tests/http3/test_steering.py`, with real sockets.

use crate::cid::{CHECK, CID_BYTES, LONG_HEADER};
use crate::keys::Keys;

/// One instruction, `struct sock_filter` of `linux/filter.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What is done.
    pub code: u16,
    /// How many instructions are skipped if a comparison holds.
    pub if_true: u8,
    /// How many if it does not.
    pub if_false: u8,
    /// The operand.
    pub operand: u32,
}

// linux/bpf_common.h. A and X are the two registers, M the memory.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_AT_X: u16 = 0x40;
const LOAD_MEMORY: u16 = 0x60;
const SET_X: u16 = 0x01;
const COPY_TO_X: u16 = 0x07;
const LOAD_X_MEMORY: u16 = 0x61;
const STORE: u16 = 0x02;
const SUB_X: u16 = 0x1c;
const MULTIPLY: u16 = 0x24;
const OR_X: u16 = 0x4c;
const AND: u16 = 0x54;
const SHIFT_LEFT: u16 = 0x64;
const SHIFT_RIGHT: u16 = 0x74;
const REMAINDER: u16 = 0x94;
const XOR: u16 = 0xa4;
const XOR_X: u16 = 0xac;
const SKIP: u16 = 0x05;
const SKIP_IF_EQUAL: u16 = 0x15;
const SKIP_IF_SET: u16 = 0x45;
const RETURN_A: u16 = 0x16;

/// What is added to an offset that counts from the IP header (`SKF_NET_OFF` of `linux/filter.h`).
const IP_HEADER: u32 = (-0x10_0000_i32).cast_unsigned();

/// Places in the memory.
const X: u32 = 0;
const Y: u32 = 1;
const SPARE: u32 = 2;

/// The program for connection ids of `keys`, with `sockets` among which new clients are spread.
pub fn steering_program(keys: &Keys, is_ipv6: bool, sockets: u32) -> Vec<Instruction> {
    let by_address = by_address(is_ipv6, sockets.max(1));
    let mut program = Vec::with_capacity(24 * keys.cids.0.len() + 64);
    program.push(plain(LOAD_BYTE, 0));
    program.push(skip(SKIP_IF_SET, u32::from(LONG_HEADER), 2, 0));
    program.push(plain(SET_X, 1));
    #[expect(clippy::cast_possible_truncation, reason = "some ten")]
    program.push(plain(SKIP, 3 + by_address.len() as u32));
    // A long header: the length of the id, and the id.
    program.push(plain(LOAD_BYTE, 5));
    #[expect(clippy::cast_possible_truncation, reason = "some ten, and 8")]
    program.push(skip(
        SKIP_IF_EQUAL,
        CID_BYTES as u32,
        by_address.len() as u8,
        0,
    ));
    program.extend_from_slice(&by_address);
    program.push(plain(SET_X, 6));
    for (offset, place) in [(0, X), (4, Y)] {
        program.push(plain(LOAD_WORD_AT_X, offset));
        program.push(plain(STORE, place));
    }
    for &round in keys.cids.0.iter().rev() {
        program.extend(undo_round(round));
    }
    program.push(plain(LOAD_MEMORY, X));
    program.push(plain(AND, 0xff));
    program.push(skip(SKIP_IF_EQUAL, u32::from(CHECK), 0, 3));
    program.push(plain(LOAD_MEMORY, X));
    program.push(plain(SHIFT_RIGHT, 16));
    program.push(plain(RETURN_A, 0));
    program.extend(by_address);
    program
}

/// Returns one of `sockets` by the client's address and port.
fn by_address(is_ipv6: bool, sockets: u32) -> Vec<Instruction> {
    // The last word of the source address, and the source port behind a header without options.
    let (address, port) = if is_ipv6 { (20, 40) } else { (12, 20) };
    [
        (LOAD_WORD, IP_HEADER.wrapping_add(address)),
        (COPY_TO_X, 0),
        (LOAD_HALF, IP_HEADER.wrapping_add(port)),
        (XOR_X, 0),
        // Fibonacci's hash: the high bits depend on all of the low ones.
        (MULTIPLY, 0x9e37_79b1),
        (SHIFT_RIGHT, 16),
        (REMAINDER, sockets),
        (RETURN_A, 0),
    ]
    .map(|(code, operand)| plain(code, operand))
    .to_vec()
}

fn plain(code: u16, operand: u32) -> Instruction {
    skip(code, operand, 0, 0)
}

fn skip(code: u16, operand: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction {
        code,
        if_true,
        if_false,
        operand,
    }
}

/// `y = (y ^ x).rotate_right(3); x = (x ^ round).wrapping_sub(y).rotate_left(8)`.
fn undo_round(round: u32) -> impl Iterator<Item = Instruction> {
    [
        (LOAD_MEMORY, Y),
        (LOAD_X_MEMORY, X),
        (XOR_X, 0),
        (STORE, SPARE),
        (SHIFT_RIGHT, 3),
        (STORE, Y),
        (LOAD_MEMORY, SPARE),
        (SHIFT_LEFT, 29),
        (LOAD_X_MEMORY, Y),
        (OR_X, 0),
        (STORE, Y),
        (LOAD_MEMORY, X),
        (XOR, round),
        (LOAD_X_MEMORY, Y),
        (SUB_X, 0),
        (STORE, SPARE),
        (SHIFT_LEFT, 8),
        (STORE, X),
        (LOAD_MEMORY, SPARE),
        (SHIFT_RIGHT, 24),
        (LOAD_X_MEMORY, X),
        (OR_X, 0),
        (STORE, X),
    ]
    .into_iter()
    .map(|(code, operand)| plain(code, operand))
}
