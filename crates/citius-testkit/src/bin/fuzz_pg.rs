//! `fuzz-pg [--seconds S] [--seed N]`: what a server of PostgreSQL could send, without nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;

use citius_testkit::{postgres, search};

fn main() -> ExitCode {
    search::main(
        "fuzz-pg",
        postgres::compose,
        postgres::check,
        "sessions heard",
    )
}
