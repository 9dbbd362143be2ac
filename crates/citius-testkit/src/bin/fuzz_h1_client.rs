//! `fuzz-h1-client [--seconds S] [--seed N]`: composed and damaged responses, without nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;

use citius_testkit::{client, search};

fn main() -> ExitCode {
    search::main(
        "fuzz-h1-client",
        client::compose_damaged,
        client::check,
        "inputs read",
    )
}
