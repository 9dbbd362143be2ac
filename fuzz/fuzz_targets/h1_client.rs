//! Arbitrary bytes as what a server of HTTP/1.1 sends to a client, in any cut: the campaigns of `citius_testkit::client`,
//! steered by coverage.
//!
//! The first eight bytes are the seed of cuts, limits and requests, the rest is what the server sends.
#![no_main]

use citius_testkit::client;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        client::check(input, u64::from_le_bytes(*seed));
    }
});
