//! Arbitrary bytes as a script of a client of HTTP/3 in any cut: the campaigns of `citius_testkit::http3`, steered by coverage.
//!
//! The first eight bytes are the seed of cuts, limits and responses, the rest is the script.
#![no_main]

use citius_testkit::http3;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        http3::check(input, u64::from_le_bytes(*seed));
    }
});
