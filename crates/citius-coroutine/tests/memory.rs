//! What a parked coroutine takes. Alone in its process, whose memory it counts.

use citius_coroutine::{Coroutine, Progress, Stacks, suspend};

/// Resident bytes of this process.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse().ok())
        .expect("a number");
    pages * 4096
}

#[test]
fn a_parked_stack_is_a_page_or_two() {
    const COUNT: usize = 20_000;
    let stacks = Stacks::new(256 * 1024, COUNT);
    let before = resident_bytes();
    let mut parked: Vec<_> = (0..COUNT)
        .map(|_| {
            let stack = stacks.take().expect("a stack");
            let mut coroutine = Coroutine::new(stack, suspend);
            assert!(matches!(coroutine.resume(), Progress::Suspended));
            coroutine
        })
        .collect();
    let each = (resident_bytes() - before) / COUNT;
    // Two without optimization.
    assert!(each < 2 * 4096 + 1024, "{each} bytes");
    for mut coroutine in parked.drain(..) {
        assert!(matches!(coroutine.resume(), Progress::Returned));
        stacks.give(coroutine.into_stack());
    }
    let left = resident_bytes().saturating_sub(before) / COUNT;
    assert!(left < 1000, "{left} bytes");
}
