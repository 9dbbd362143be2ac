//! What valgrind's memcheck is told of stacks, by a client request of its documentation: instructions that do nothing elsewhere.
//!
//! That there are several stacks it knows by the registrations of `corosensei`. But what a coroutine has left of its stack stays
//! forbidden, and the next one is written there by code that runs on another stack.

use std::arch::asm;

/// `VG_USERREQ__MAKE_MEM_UNDEFINED`: of memcheck (`MC`), the second.
const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;

/// Lets `bytes` from `low` on be written, and read once they are written. `false`: memcheck does not run.
pub(crate) fn renew(low: usize, bytes: usize) -> bool {
    request(&[MAKE_MEM_UNDEFINED, low as u64, bytes as u64, 0, 0, 0]) != 0
}

/// The answer to a question; 0 where nothing answers.
fn request(question: &[u64; 6]) -> u64 {
    let mut answer = 0;
    // SAFETY: a register that is rotated by 128 bits in all, and one that is exchanged with itself. Valgrind reads the question
    // and writes the answer.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            inout("rdx") answer,
            in("rax") question.as_ptr(),
            options(nostack),
        );
    }
    // SAFETY: the sequence does nothing outside of valgrind, which reads the question and writes the register that is named.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #61",
            "ror x12, x12, #51",
            "orr x10, x10, x10",
            inout("x3") answer,
            in("x4") question.as_ptr(),
            options(nostack),
        );
    }
    answer
}
