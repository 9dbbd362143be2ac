//! `fuzz-redis [--seconds S] [--seed N]`: composed and damaged replies of Redis, without nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;

use citius_testkit::{redis, search};

fn main() -> ExitCode {
    search::main(
        "fuzz-redis",
        redis::compose_damaged,
        redis::check,
        "inputs read",
    )
}
