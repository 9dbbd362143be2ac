//! Arbitrary bytes as replies of Redis in any cut: the campaigns of `citius_testkit::redis`, steered by coverage.
//!
//! The first eight bytes are the seed of cuts and limits, the rest is what the server sends.
#![no_main]

use citius_testkit::redis;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        redis::check(input, u64::from_le_bytes(*seed));
    }
});
