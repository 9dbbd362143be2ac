//! Arbitrary bytes as what a server of PostgreSQL sends, in any cut: the campaigns of `citius_testkit::postgres`, steered by
//! coverage.
//!
//! The first eight bytes are the seed of cuts and requests, the rest is what is sent.
#![no_main]

use citius_testkit::postgres;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        postgres::check(input, u64::from_le_bytes(*seed));
    }
});
