//! Arbitrary bytes, cuts and application behaviour: the storms of `citius_testkit::storm`, steered by coverage.
//!
//! The first eight bytes are the seed of cuts, limits and moods, the rest is what the peer sends.
#![no_main]

use citius_testkit::storm;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        storm::check(input, u64::from_le_bytes(*seed));
    }
});
