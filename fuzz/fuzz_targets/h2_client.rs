//! Arbitrary bytes as a script of a server of HTTP/2 and of the caller of a client, in any cut: the campaigns of
//! `citius_testkit::http2_client`, steered by coverage.
//!
//! The first eight bytes are the seed of cuts and limits, the rest is the script.
#![no_main]

use citius_testkit::http2_client;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        http2_client::check(input, u64::from_le_bytes(*seed));
    }
});
