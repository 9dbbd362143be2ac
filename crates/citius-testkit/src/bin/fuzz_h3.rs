//! `fuzz-h3 [--seconds S] [--seed N]`: composed and damaged scripts of a client of HTTP/3, without nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;

use citius_testkit::{http3, search};

fn main() -> ExitCode {
    search::main(
        "fuzz-h3",
        http3::compose_damaged,
        http3::check,
        "scripts played",
    )
}
