//! `fuzz-redis [--seconds S] [--seed N]`: composed and damaged replies of Redis, without nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use citius_testkit::redis;
use citius_testkit::rng::Rng;
use citius_testkit::transcript::escape;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, otherwise: u64| match words.iter().position(|word| word == name) {
        Some(at) => words.get(at + 1).and_then(|word| word.parse().ok()),
        None => Some(otherwise),
    };
    let (Some(seconds), Some(first)) = (number("--seconds", 20), number("--seed", 1)) else {
        eprintln!("usage: fuzz-redis [--seconds S] [--seed N]");
        return ExitCode::from(2);
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "a time limit for people, not protocol time"
    )]
    let start = Instant::now();
    let mut n_inputs = 0u64;
    while start.elapsed() < Duration::from_secs(seconds) {
        let seed = first.wrapping_add(n_inputs);
        let input = redis::compose_damaged(&mut Rng::new(seed));
        if std::panic::catch_unwind(|| redis::check(&input, seed)).is_err() {
            eprintln!("broken with seed {seed} by\n> {}", escape(&input));
            return ExitCode::FAILURE;
        }
        n_inputs += 1;
    }
    eprintln!("{n_inputs} inputs read");
    ExitCode::SUCCESS
}
