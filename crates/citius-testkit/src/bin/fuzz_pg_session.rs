//! `fuzz-pg-session [--seconds S] [--seed N]`: calls on sessions of PostgreSQL, without nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;

use citius_testkit::{pg_session, search};

fn main() -> ExitCode {
    search::main(
        "fuzz-pg-session",
        pg_session::compose,
        pg_session::check,
        "sessions played",
    )
}
