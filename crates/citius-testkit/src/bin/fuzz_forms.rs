//! `fuzz-forms [--seconds S] [--seed N]`: composed and mutated forms, without nightly or instrumentation.
//!
//! The same seed gives the same run. When an invariant breaks, prints the input and the seed that shows it, and ends with
//! status 1.

use std::process::ExitCode;

use citius_testkit::{forms, search};

fn main() -> ExitCode {
    search::main("fuzz-forms", forms::compose, forms::check, "forms parsed")
}
