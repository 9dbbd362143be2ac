//! The same behind a head that announces chunks, so that every mutation meets the decoder.
#![no_main]

use citius_testkit::campaign;
use libfuzzer_sys::fuzz_target;

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fuzz_target!(|data: &[u8]| {
    if let Some((seed, body)) = data.split_first_chunk::<8>() {
        campaign::check(&[HEAD, body].concat(), u64::from_le_bytes(*seed));
    }
});
