//! Arbitrary bytes, cuts and application behaviour: the campaigns of `citius_testkit::campaign`, steered by coverage.
//!
//! The first eight bytes are the seed of cuts, limits and moods, the rest is what the peer sends.
#![no_main]

use citius_testkit::campaign;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        campaign::check(input, u64::from_le_bytes(*seed));
    }
});
