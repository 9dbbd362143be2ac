//! Runs of one check after another with inputs of its own, until the time is over or an invariant breaks.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::rng::Rng;
use crate::transcript::escape;

/// Checks inputs of `first` and the seeds after it for `seconds`, and says at the end how many were `done`. One that breaks an
/// invariant, for which `check` panics, is printed as a transcript line with its seed; that ends the search with status 1.
pub fn run(
    seconds: u64,
    first: u64,
    compose: impl Fn(u64) -> Vec<u8>,
    check: fn(&[u8], u64),
    done: &str,
) -> ExitCode {
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
            eprintln!("broken with seed {seed} by\n> {}", escape(&input));
            return ExitCode::FAILURE;
        }
        n_inputs += 1;
    }
    eprintln!("{n_inputs} {done}");
    ExitCode::SUCCESS
}

/// The `main` of a program that is called as `NAME [--seconds S] [--seed N]`.
pub fn main(
    name: &str,
    compose: fn(&mut Rng) -> Vec<u8>,
    check: fn(&[u8], u64),
    done: &str,
) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, otherwise: u64| match words.iter().position(|word| word == name) {
        Some(at) => words.get(at + 1).and_then(|word| word.parse().ok()),
        None => Some(otherwise),
    };
    let (Some(seconds), Some(first)) = (number("--seconds", 20), number("--seed", 1)) else {
        eprintln!("usage: {name} [--seconds S] [--seed N]");
        return ExitCode::from(2);
    };
    run(
        seconds,
        first,
        |seed| compose(&mut Rng::new(seed)),
        check,
        done,
    )
}
