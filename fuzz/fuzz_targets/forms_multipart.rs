//! Arbitrary bytes as a multipart form in any cut: the campaigns of `citius_testkit::forms`, steered by coverage.
//!
//! The first eight bytes are the seed of cuts and limits, the rest is the body; its boundary is `b`.
#![no_main]

use citius_testkit::forms;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        forms::check(input, u64::from_le_bytes(*seed));
    }
});
