//! `fuzz-h2-client [--seconds S] [--seed N]`: composed and damaged scripts of a server of HTTP/2 against the client's half, without
//! nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;

use citius_testkit::{http2_client, search};

fn main() -> ExitCode {
    search::main(
        "fuzz-h2-client",
        http2_client::compose_damaged,
        http2_client::check,
        "scripts played",
    )
}
