//! Runs of one check after another with inputs of its own, until the time is over or an invariant breaks.

use std::time::{Duration, Instant};

use crate::transcript::escape;

/// Checks inputs of `first` and the seeds after it for `seconds`, and returns how many.
///
/// # Errors
/// An input breaks an invariant, for which `check` panics: its seed, and the input as a transcript line.
pub fn run(
    seconds: u64,
    first: u64,
    compose: impl Fn(u64) -> Vec<u8>,
    check: fn(&[u8], u64),
) -> Result<u64, String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a time limit for people, not protocol time"
    )]
    let start = Instant::now();
    let mut n_inputs = 0u64;
    while start.elapsed() < Duration::from_secs(seconds) {
        let seed = first.wrapping_add(n_inputs);
        let input = compose(seed);
        if std::panic::catch_unwind(|| check(&input, seed)).is_err() {
            return Err(format!("broken with seed {seed} by\n> {}", escape(&input)));
        }
        n_inputs += 1;
    }
    Ok(n_inputs)
}
