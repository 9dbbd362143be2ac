//! Three coroutines that are suspended at different depths; then the process waits for its standard input to end.
//!
//! `gdb -p PID -x scripts/gdb_goroutines.py` shows them; see `tests/debugger.rs`.

use std::hint::black_box;
use std::io::{Read, Write};

use citius_coroutine::{Coroutine, Progress, Stacks, suspend};

#[inline(never)]
fn descend(depth: u64) -> u64 {
    if depth == 0 {
        suspend();
        suspend();
        return 1;
    }
    black_box(descend(black_box(depth - 1))) + depth
}

#[inline(never)]
fn begin(depth: u64) {
    // It has been deeper before: what is left of that on the stack is old.
    black_box(descend(depth + 5));
    black_box(descend(depth));
}

fn main() {
    let stacks = Stacks::new(64 * 1024, 16);
    let mut coroutines = Vec::new();
    for depth in [0, 3, 7] {
        let stack = stacks.take().expect("a stack");
        let mut coroutine = Coroutine::new(stack, move || begin(depth));
        for _ in 0..3 {
            assert!(
                matches!(coroutine.resume(), Progress::Suspended),
                "it waits"
            );
        }
        coroutines.push(coroutine);
    }
    // One that has ended is not shown.
    let mut ended = Coroutine::new(stacks.take().expect("a stack"), suspend);
    assert!(matches!(ended.resume(), Progress::Suspended), "it waits");
    assert!(matches!(ended.resume(), Progress::Returned), "it ends");
    stacks.give_hot(ended.into_stack());
    writeln!(std::io::stdout(), "parked").expect("standard output");
    std::io::stdin()
        .read_to_end(&mut Vec::new())
        .expect("standard input");
    for mut coroutine in coroutines {
        assert!(
            matches!(coroutine.resume(), Progress::Suspended),
            "it waits"
        );
        assert!(matches!(coroutine.resume(), Progress::Returned), "it ends");
        stacks.give(coroutine.into_stack());
    }
    writeln!(std::io::stdout(), "ended").expect("standard output");
}
